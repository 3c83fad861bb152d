//! `larch bench replay`: shows the runs of a result again, as they were shown while they went on.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "intervals are shown in the machine's time")]

use crate::args::ReplayArgs;
use crate::ending::Ending;
use crate::live::Live;
use crate::live::view::Head;
use crate::print;
use crate::stop::Stop;
use crate::tpcc_runs::known_by;
use harness::report::{Report, Run, text};
use harness::{Failure, Interval};
use std::time::{Duration, Instant};

/// The longest sleep before the command looks whether ^C was pressed.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Result<Ending, Failure> {
    let usage = |text: String| Failure::session("target", text);
    let report = Report::read(&args.result).map_err(|error| usage(error.to_string()))?;
    if report.runs.iter().all(|run| run.measured.intervals.is_empty()) {
        return Err(usage(format!("{}: no run of this result has intervals", args.result.display())));
    }
    let stop = Stop::catch()?;
    for run in &report.runs {
        let head = Head::of_run(run, report.environment.machine.processors);
        let head = Head { known_by: known_by(run), ..head };
        show(run, Live::new(head, !args.plain), args.speed, &stop)?;
        if stop.is_pressed() {
            return Ok(Ending::Interrupted);
        }
    }
    Ok(Ending::Good)
}

/// Shows the intervals of a run, `speed` times as fast as they were.
fn show(run: &Run, mut live: Live, speed: f64, stop: &Stop) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut shown_nanos = 0;
    for interval in &run.measured.intervals {
        if live.is_wanted() {
            shown_nanos += interval.to_nanos.saturating_sub(interval.from_nanos);
            let due = Duration::from_nanos((shown_nanos as f64 / speed) as u64);
            while let Some(left) = due.checked_sub(begin.elapsed()).filter(|_| !stop.is_pressed()) {
                std::thread::park_timeout(left.min(LOOK));
            }
        }
        if stop.is_pressed() {
            return Ok(());
        }
        if !live.add(interval) {
            print(&line(&run.name, interval))?;
        }
    }
    // The screen is given back before its last picture is printed.
    live.end().map_or(Ok(()), |picture| print(&picture))
}

fn line(name: &str, interval: &Interval) -> String {
    format!("{name:10} {}\n", text::line(interval))
}

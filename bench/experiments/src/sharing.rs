//! `larch bench experiment sharing`: what readers of the same rows save by sharing index pages. Two sides make the
//! same reads in turn: with private index pages, which a reader drops after each read, and with the index pages of
//! a shared cache. Neither side keeps data pages.
//!
//! It follows ScyllaDB's experiment of 2021, when its readers began to share the pages of a partition index: 100
//! readers read 10 partitions with the row cache off. `docs/benchmarks/sharing.md` says what is the same in both
//! experiments and what differs.

mod data;
mod readers;
mod summary;
#[cfg(test)]
mod tests;

use crate::WRONG;
use crate::args::{Scale, SharingArgs};
use crate::ground::Ground;
use crate::measured::in_longer_times;
use crate::outcome::Ending;
use crate::system;
use data::{Data, Reads};
use harness::report::live::{self, Shown};
use harness::report::{Pair, Run};
use harness::{Failure, Length, Measured, Million, Plan, RunError, Store};
use readers::{Counts, Readers, Sharing};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use suite::results;
use suite::stop::Stop;

/// Concurrent readers, as in ScyllaDB's experiment.
const READERS: usize = 100;

/// The sides, in the order of the first repeat.
const SIDES: [Sharing; 2] = [Sharing::Private, Sharing::Shared];

/// How much is measured.
struct Size {
    /// Few long rows, and many short ones.
    data: [Data; 2],
    /// The time of each side in each repeat.
    time: Duration,
    repeats: u64,
}

impl Size {
    fn of(scale: Scale, time: Option<Duration>) -> Self {
        let (keys, millis, repeats) = match scale {
            Scale::Tiny => (10_000, 200, 2),
            Scale::Small => (100_000, 3000, 3),
            Scale::Medium => (10_000_000, 5000, 5),
            Scale::Full => (10_000_000, 30_000, 7),
        };
        let time = time.unwrap_or(Duration::from_millis(millis));
        Self { data: [Data::partitions(), Data::keys(keys)], time, repeats }
    }

    fn cell(&self, repeat: u64, data: &Data, sharing: Sharing) -> String {
        format!("{repeat}, {}, {} ms, {}", data.title(), self.time.as_millis(), sharing.title())
    }
}

/// One measurement of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Side {
    run: Run,
    /// Counts until all readers ended, which may be after the window.
    counts: Counts,
    /// Bytes that this process read from disk during the measurement, if the system tells.
    disk_bytes: Option<u64>,
    /// What a million reads cost.
    million: Million,
}

/// Runs the experiment, and prints and writes its result.
pub fn run(args: &SharingArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.common.scale, args.time);
    let most_bytes = size.data.iter().map(Data::most_bytes).max().unwrap_or(0);
    let mut ground = Ground::open("sharing", &args.common, most_bytes)?;
    if !measure_all(&mut ground, &size)? {
        return Ok(Ending::Interrupted);
    }
    let all = all_sides(&ground, &size);
    let runs: Vec<&Run> = all.iter().map(|side| &side.run).collect();
    results::write_report(&ground.directory().join("runs.json"), &runs)?;
    summary::outcome(&ground, &size).finish("sharing", &ground, &args.common)
}

/// Measures the missing cells, the sides in turn. Returns false after ^C.
fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    for data in &size.data {
        let is_known = |repeat| SIDES.iter().all(|sharing| ground.has(&size.cell(repeat, data, *sharing)));
        if (0..size.repeats).all(is_known) {
            continue;
        }
        suite::say(&format!("{}: writing them", data.title()));
        let built = ground.built(data.name, |place, stop| data.load(place, stop.flag()))?;
        let Some((place, shape)) = built else { return Ok(false) };
        suite::print(&format!("{}: {shape}\n", data.title()))?;
        for repeat in 0..size.repeats {
            // The order of the sides alternates, so that the disk's own caches do not always help the same one.
            let order = if repeat % 2 == 0 { SIDES } else { [Sharing::Shared, Sharing::Private] };
            for sharing in order {
                let measure = |stop: &Stop| side(data, &place, sharing, (size.time, repeat), stop);
                if ground.cell(&size.cell(repeat, data, sharing), measure)?.is_none() {
                    return Ok(false);
                }
            }
        }
        ground.remove_data()?;
    }
    Ok(true)
}

/// All measured sides, by data, repeat and side.
fn all_sides(ground: &Ground, size: &Size) -> Vec<Side> {
    let repeats =
        |data| (0..size.repeats).flat_map(move |repeat| SIDES.map(|sharing| size.cell(repeat, data, sharing)));
    size.data.iter().flat_map(repeats).filter_map(|cell| ground.known(&cell)).collect()
}

fn plan(time: Duration) -> Plan {
    Plan { clients: READERS, length: Length::Time(time), ..Plan::default() }
}

fn side(
    data: &Data,
    place: &Path,
    sharing: Sharing,
    (time, repeat): (Duration, u64),
    stop: &Stop,
) -> Result<Side, Failure> {
    suite::print(&format!("\n{}, {}:\n\n", data.title(), sharing.title()))?;
    let store = Readers::open(place, sharing, READERS)?;
    // Both sides of a repeat read the same rows.
    let (mut plan, workload) = (plan(time), Reads::new(data, 1 + repeat));
    let mut printed = suite::print(&live::head(Shown::Response));
    let mut watch = |interval: &harness::Interval| {
        if printed.is_ok() {
            printed = suite::print(&live::line(interval, Shown::Response));
        }
    };
    let before = system::disk_bytes();
    let ended = in_longer_times(stop, |times| {
        plan.length = Length::Time(times * time);
        harness::run(&store, &workload, &plan, stop.flag(), &mut watch)
    });
    let disk_bytes = before.zip(system::disk_bytes()).map(|(before, after)| after.saturating_sub(before));
    printed?;

    let counts = store.counts();
    let measured = match ended {
        Ok(measured) if measured.failed > 0 => {
            let failures: Vec<String> =
                measured.failures.iter().map(|(kind, text)| format!("{kind}: {text}")).collect();
            let text = format!("{} rows were not as they had been written, or could not be read", measured.failed);
            return Err(Failure::session(WRONG, format!("{text}: {}", failures.join("; "))));
        }
        Ok(measured) => measured,
        Err(error) => match error.partial() {
            // Interrupted, so the caller does not keep it.
            Some(partial) if partial.interrupted || stop.is_pressed() => partial.clone(),
            _ if matches!(error, RunError::Lost { .. } | RunError::Panicked { .. }) => {
                return Err(Failure::session("lost", error.to_string()));
            }
            _ => return Err(Failure::session(WRONG, error.to_string())),
        },
    };
    let mut run = run_of(data, &store, &plan, measured, &counts, disk_bytes);
    run.seed = 1 + repeat;
    run.warnings.iter().for_each(|wrong| suite::say(&format!("larch: {}: {wrong}", run.name)));
    let million = run.million(None);
    Ok(Side { run, counts, disk_bytes, million })
}

/// The side in the form of a benchmark result.
fn run_of(
    data: &Data,
    store: &Readers,
    plan: &Plan,
    measured: Measured,
    counts: &Counts,
    disk_bytes: Option<u64>,
) -> Run {
    let name = format!("{}, {}", data.title(), store.sharing().title());
    let mut run = Run::new(name, "larch:", plan, measured);
    run.settings = store.settings().into_iter().map(Pair::from).collect();
    run.workload = data.properties();
    run.measured.counters.extend(counts.changes());
    if disk_bytes == Some(0) {
        let text = "the system reports that nothing was read from a disk: name a directory on a disk with --out";
        run.warnings.push(text.to_owned());
    }
    run
}

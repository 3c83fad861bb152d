//! Shows what readers of the same rows save when they share index pages. The same reads are made twice: first each reader has
//! index pages of its own, which are dropped with the read, then all readers use those of one cache. Data pages are not kept
//! either time.
//!
//! It is ScyllaDB's experiment of 2021, whose readers began to share the pages of a partition index, with the cache of rows
//! off: 100 readers of 10 partitions. `docs/benchmarks/sharing.md` says what is alike and what is not.

#![allow(clippy::disallowed_methods, reason = "a temporary directory, never simulated")]

mod data;
mod readers;
mod summary;
#[cfg(test)]
mod tests;

use crate::args::{Scale, SharingArgs};
use crate::outcome::Ending;
use crate::system;
use data::{Data, Reads};
use harness::report::live::{self, Shown};
use harness::report::{Pair, Run};
use harness::{Failure, Length, Measured, Plan, RunError, Store};
use kit::Scratch;
use kit::scratch::check_room;
use readers::{Counts, Readers, Sharing};
use std::fs;
use std::path::Path;
use std::time::Duration;
use suite::results;
use suite::stop::Stop;

/// Readers at once, as in the experiment.
const READERS: usize = 100;

/// One side of the experiment.
struct Side {
    run: Run,
    /// Until all readers had ended, those included that ended after the window.
    counts: Counts,
    /// Bytes that this process had from the disk meanwhile, where the system tells.
    disk_bytes: Option<u64>,
    ending: Ending,
}

/// Makes the experiment, prints and writes its result.
pub fn run(args: &SharingArgs) -> Result<Ending, Failure> {
    if let Some(out) = &args.out {
        results::check_one("--out", out)?;
    }
    let stop = Stop::catch()?;
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let (rows, usual) = match args.scale {
        Scale::Tiny => (10_000, 1),
        Scale::Small => (100_000, 3),
        Scale::Medium => (1_000_000, 10),
        Scale::Full => (10_000_000, 30),
    };
    let time = args.time.unwrap_or(Duration::from_secs(usual));
    let data = [Data::partitions(), Data::keys(rows)];
    let refused = |why| Failure::session("target", why);
    let needed_bytes = data.iter().map(|data| data.most_bytes()).max().unwrap_or(0);
    let advice = "name a directory with more by --dir, or a smaller --scale";
    check_room(&parent, needed_bytes, advice).map_err(refused)?;
    let scratch = Scratch::new_in(&parent, "sharing").map_err(refused)?;
    stop.removes(scratch.path());

    let mut sides = Vec::new();
    let (mut ending, mut is_short) = (Ending::Good, false);
    for data in &data {
        ending = compare(data, &scratch.join(data.name), time, &stop, &mut sides)?;
        if !matches!(ending, Ending::Good | Ending::Short) {
            break;
        }
        is_short |= ending == Ending::Short;
    }
    if let Some(out) = &args.out {
        results::write_report(out, &sides.iter().map(|side: &Side| &side.run).collect::<Vec<_>>())?;
    }
    if !matches!(ending, Ending::Good | Ending::Short) {
        return Ok(ending);
    }
    if is_short && args.check {
        suite::say("larch: --check: the result falls short of the published one");
        return Ok(Ending::Short);
    }
    Ok(Ending::Good)
}

/// Both sides on the same rows.
fn compare(data: &Data, place: &Path, time: Duration, stop: &Stop, sides: &mut Vec<Side>) -> Result<Ending, Failure> {
    suite::say(&format!("{}: writing them", data.title()));
    let shape = data.load(place, stop.flag())?;
    if stop.is_pressed() {
        return Ok(Ending::Interrupted);
    }
    suite::print(&format!("{}: {shape}\n", data.title()))?;
    let first = sides.len();
    for sharing in [Sharing::Private, Sharing::Shared] {
        suite::print(&format!("\n{}:\n\n", sharing.title()))?;
        let store = Readers::open(place, sharing, READERS)?;
        let side = side(data, &store, time, stop)?;
        let ending = side.ending;
        tell_wrong(&side.run);
        sides.push(side);
        if ending != Ending::Good {
            return Ok(ending);
        }
    }
    let [before, after] = &sides[first..] else { unreachable!("both sides were measured") };
    let (text, is_reached) = summary::summary(data, before, after);
    suite::print(&text)?;
    fs::remove_dir_all(place)
        .map_err(|error| Failure::session("io", format!("cannot remove {}: {error}", place.display())))?;
    Ok(if is_reached { Ending::Good } else { Ending::Short })
}

fn plan(time: Duration) -> Plan {
    Plan { clients: READERS, length: Length::Time(time), ..Plan::default() }
}

fn side(data: &Data, store: &Readers, time: Duration, stop: &Stop) -> Result<Side, Failure> {
    let (plan, workload) = (plan(time), Reads::new(data, 1));
    let mut printed = suite::print(&live::head(Shown::Response));
    let mut watch = |interval: &harness::Interval| {
        if printed.is_ok() {
            printed = suite::print(&live::line(interval, Shown::Response));
        }
    };
    let before = system::disk_bytes();
    let ended = harness::run(store, &workload, &plan, stop.flag(), &mut watch);
    let disk_bytes = before.zip(system::disk_bytes()).map(|(before, after)| after.saturating_sub(before));
    printed?;

    let counts = store.counts();
    let is_lost = matches!(&ended, Err(RunError::Lost { .. } | RunError::Panicked { .. }));
    let (measured, error) = match ended {
        Ok(measured) if measured.failed > 0 => {
            let text = format!("{} rows were not as they had been written, or could not be read", measured.failed);
            (measured, Some(text))
        }
        Ok(measured) => (measured, None),
        Err(error) => match error.partial() {
            Some(partial) if partial.interrupted => (partial.clone(), None),
            Some(partial) => (partial.clone(), Some(error.to_string())),
            None => return Err(Failure::session("run", error.to_string())),
        },
    };
    let ending = match &error {
        Some(_) if is_lost => Ending::Failed,
        None if measured.interrupted => Ending::Interrupted,
        None => Ending::Good,
        Some(_) => Ending::Bad,
    };
    let run = run_of(data, store, &plan, measured, error, &counts, disk_bytes);
    Ok(Side { run, counts, disk_bytes, ending })
}

/// The side as a result is kept.
fn run_of(
    data: &Data,
    store: &Readers,
    plan: &Plan,
    measured: Measured,
    error: Option<String>,
    counts: &Counts,
    disk_bytes: Option<u64>,
) -> Run {
    let name = format!("{}, {}", data.title(), store.sharing().title());
    let mut run = Run::new(name, "larch:", plan, measured);
    run.settings = store.settings().into_iter().map(Pair::from).collect();
    run.workload = data.properties();
    run.seed = 1;
    run.error = error;
    run.measured.counters.extend(counts.changes());
    if disk_bytes == Some(0) {
        let text = "the system reports that nothing was read from a disk: name a directory on a disk with --dir";
        run.warnings.push(text.to_owned());
    }
    run
}

/// Prints what is wrong with what was measured.
fn tell_wrong(run: &Run) {
    for wrong in run.warnings.iter().chain(&run.error) {
        suite::say(&format!("larch: {}: {wrong}", run.name));
    }
    for (kind, text) in &run.measured.failures {
        suite::say(&format!("larch: {}: {kind}: {text}", run.name));
    }
}

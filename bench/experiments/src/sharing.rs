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
use crate::args::Scale;
use crate::disk;
use crate::experiment::{About, Experiment, Kept};
use crate::ground::Ground;
use crate::outcome::Goal;
use crate::quoted;
use crate::ycsb_run::in_longer_times;
use data::{Data, Reads};
use harness::report::live::{self, Shown};
use harness::report::{Pair, Run};
use harness::{Failure, Length, Measured, Million, Plan, RunError, Store};
use page::Block;
use readers::{Counts, Readers, Sides};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use suite::results;
use suite::stop::Stop;

/// Concurrent readers, as in ScyllaDB's experiment.
const READERS: usize = 100;

/// The experiment, and how much it measures.
pub struct Sharing {
    /// Few long rows, and many short ones.
    data: [Data; 2],
    /// The time of each side in each repeat.
    time: Duration,
    repeats: u64,
}

/// A side on one data set, in one repeat.
#[derive(Clone, Copy)]
pub struct Cell {
    repeat: u64,
    data: Data,
    time: Duration,
    side: Sides,
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repeat, data, time, side } = self;
        write!(out, "{repeat}, {}, {} ms, {}", data.title(), time.as_millis(), side.title())
    }
}

/// One measurement of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Taken {
    run: Run,
    /// Counts until all readers ended, which may be after the window.
    counts: Counts,
    /// Bytes that this process read from disk during the measurement, if the system tells.
    disk_bytes: Option<u64>,
    /// What a million reads cost.
    million: Million,
}

impl Experiment for Sharing {
    const ABOUT: About = About {
        name: "sharing",
        title: "Index pages that readers share",
        text: &[
            quoted::SCYLLA.text,
            "Before: each reader has index pages of its own, which are dropped with the read. After: all readers share those of one cache. Data \
             pages are kept by neither. Both sides read the same rows in turn, and each value is compared with what was written.",
            "In Larch, a reader that needs a page which another reader is just loading waits for that read, also for pages of rows. With few \
             partitions nearly all do, so the effect of shared index pages alone is in the line of the index, and in the waits.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        self.data.iter().map(Data::most_bytes).max().unwrap_or(0)
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (data, repeat) in self.data.into_iter().flat_map(|data| (0..self.repeats).map(move |repeat| (data, repeat)))
        {
            // The order of the sides alternates, so that the disk's own caches do not always help the same one.
            let order = if repeat % 2 == 0 { Sides::ALL } else { [Sides::Shared, Sides::Private] };
            cells.extend(order.map(|side| self.cell(repeat, data, side)));
        }
        cells
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let title = cell.data.title();
        let (made, _) = ground.built_alone(cell.data.name, |place, stop| {
            suite::say(&format!("{title}: writing them"));
            let shape = cell.data.load(place, stop)?;
            suite::print(&format!("{title}: {shape}\n"))?;
            Ok(shape)
        })?;
        let taken = side(&cell.data, made.place(), cell.side, (self.time, cell.repeat), &ground.stop)?;
        Ok(Kept::new(&taken, format!("{:.0} rows/s", taken.run.measured.per_second())))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let pairs = self.data.iter().flat_map(|data| self.pairs(ground, *data)).flatten();
        let runs: Vec<Run> = pairs.map(|taken| taken.run).collect();
        results::write_report(&ground.directory().join("runs.json"), &runs.iter().collect::<Vec<_>>())?;
        Ok(self.blocks(ground))
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        self.data.iter().flat_map(|data| summary::goals(data, &self.pairs(ground, *data))).collect()
    }
}

impl Sharing {
    /// The experiment at `scale`. `time` replaces the scale's own time of a side.
    pub fn of(scale: Scale, time: Option<Duration>) -> Self {
        let (keys, millis, repeats) = match scale {
            Scale::Tiny => (10_000, 200, 2),
            Scale::Small => (100_000, 3000, 3),
            Scale::Medium => (10_000_000, 5000, 5),
            Scale::Full => (10_000_000, 30_000, 7),
        };
        let time = time.unwrap_or(Duration::from_millis(millis));
        Self { data: [Data::partitions(), Data::keys(keys)], time, repeats }
    }

    fn cell(&self, repeat: u64, data: Data, side: Sides) -> Cell {
        Cell { repeat, data, time: self.time, side }
    }

    /// The sides (private, shared) of each repeat with this data set.
    fn pairs(&self, ground: &Ground, data: Data) -> Vec<[Taken; 2]> {
        let pair = |repeat| {
            let [before, after] = Sides::ALL.map(|side| ground.known(self.cell(repeat, data, side)));
            Some([before?, after?])
        };
        (0..self.repeats).filter_map(pair).collect()
    }
}

fn plan(time: Duration) -> Plan {
    Plan { clients: READERS, length: Length::Time(time), ..Plan::default() }
}

fn side(
    data: &Data,
    place: &Path,
    sharing: Sides,
    (time, repeat): (Duration, u64),
    stop: &Stop,
) -> Result<Taken, Failure> {
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
    let before = disk::read_by_this_process();
    let ended = in_longer_times(stop, |times| {
        plan.length = Length::Time(times * time);
        harness::run(&store, &workload, &plan, stop.flag(), &mut watch)
    });
    let disk_bytes = before.zip(disk::read_by_this_process()).map(|(before, after)| after.saturating_sub(before));
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
    Ok(Taken { run, counts, disk_bytes, million })
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

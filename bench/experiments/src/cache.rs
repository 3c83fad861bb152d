//! `larch bench cache-trace`: replays traces of YCSB workloads with several eviction policies, and counts how many
//! pages each one reads. It measures no time. A cell is the replay of one trace, or the gets of one table.
//!
//! ```text
//!   YCSB ──> Larch on a disk in memory ──pages::Trace──> Recorded ──replay──> Policies ──> Replayed
//!                                                          │  ^
//!                                                          └──┘ --save, --trace
//! ```
//!
//! Gets are replayed as pages and as rows, beside Larch's own cache, which keeps both (`gets`).
//!
//! The database is on a simulated machine, so the command records the same trace each time and leaves nothing behind
//! but its result. Pages are identified as in the cache: when a compaction rewrites rows, they are on new pages.

mod gets;
mod options;
mod policies;
mod policy;
mod record;
mod recorded;
mod replay;
mod tables;
mod trace_file;

pub use options::CacheTrace;

use crate::ended;
use crate::experiment::{Experiment, Kept, run as experiment};
use crate::ground::Ground;
use crate::outcome::About;
use gets::{Compared, GETS};
use harness::Failure;
use page::Block;
use record::COURSES;
use recorded::{Recorded, Trace};
use std::process::ExitCode;
use suite::say;
use tables::Replayed;

/// The default cache sizes, in hundredths of a percent of the data.
const SHARES: [u64; 4] = [50, 100, 500, 2000];

/// Runs the command. The exit code is 0 if all traces were replayed, 1 if a trace is empty, 2 if the options make
/// no sense, 3 if something failed, and 130 after ^C.
pub fn run(options: &CacheTrace) -> ExitCode {
    ended(Replays::of(options).and_then(|replays| experiment(replays, &options.experiment())))
}

/// The options make no sense, or the file to replay cannot be read.
fn unfit(why: impl Into<String>) -> Failure {
    Failure::session("target", why)
}

/// A trace is empty.
fn empty(why: impl Into<String>) -> Failure {
    Failure::session(crate::NOTHING, why)
}

/// The experiment: the traces that are replayed, and with which sizes of the cache.
pub struct Replays {
    options: CacheTrace,
    /// The traces of a file that is read or written. Otherwise, each cell records its own.
    traces: Vec<Trace>,
}

impl Replays {
    /// The experiment with these options. Reads the file to replay, and writes the file to save.
    ///
    /// # Errors
    ///
    /// Fails if the options make no sense, or if a file cannot be read or written.
    pub fn of(options: &CacheTrace) -> Result<Self, Failure> {
        options.check()?;
        let traces = match (&options.trace, &options.save) {
            (Some(path), _) => trace_file::load(path)?,
            (None, Some(path)) => {
                say(&format!("recording {} traces", COURSES.len()));
                let traces = record::all(options.records())?;
                trace_file::save(path, &traces)?;
                traces
            }
            (None, None) => Vec::new(),
        };
        Ok(Self { options: options.clone(), traces })
    }
}

impl Experiment for Replays {
    const ABOUT: About = About {
        name: "cache-trace",
        title: "What the page cache keeps",
        text: &[
            "Which pages YCSB requests from the page cache was recorded, and is replayed with several eviction policies: that of Larch's cache, \
             three of other systems, the clock that Larch had before, and OPT, which knows the future. No time is measured.",
            "Gets of rows of one size are replayed as pages and as rows, beside what Larch's cache does, which keeps \
             pages and copies of hot rows.",
        ],
    };

    /// A trace, or the gets of a table, with the sizes of the cache if they were given.
    type Cell = String;

    /// The databases are in memory.
    fn most_bytes(&self) -> u64 {
        1 << 20
    }

    fn cells(&self) -> Vec<String> {
        let sizes: String = self.options.cache_sizes.iter().flatten().map(|size| format!(", cache {size}")).collect();
        let (records, traces) = (self.options.records(), self.traces.iter());
        match self.options.trace {
            Some(_) => traces.map(|trace| format!("{}, trace {:x}{sizes}", trace.name, trace.hash())).collect(),
            None => {
                let courses = COURSES.iter().map(|course| format!("{}, {records} records{sizes}", course.name));
                let gets = GETS.iter().map(|gets| format!("{}, {} rows{sizes}", gets.name, gets.rows(records)));
                courses.chain(gets).collect()
            }
        }
    }

    fn measure(&mut self, cell: &String, _ground: &mut Ground) -> Result<Kept, Failure> {
        let number = self.cells().iter().position(|name| name == cell).expect("it is one of them");
        if self.options.trace.is_none() && number >= COURSES.len() {
            let gets = &GETS[number - COURSES.len()];
            let compared = gets.compare(self.options.records(), self.options.cache_sizes.as_deref())?;
            return Ok(Kept::new(&compared, compared.line()));
        }
        let recorded = match self.traces.get(number) {
            Some(trace) => Recorded::new(trace),
            None => Recorded::new(&record::record(&COURSES[number], self.options.records())?),
        }?;
        let shares = || SHARES.map(|share| recorded.data_bytes() * share / 10_000).to_vec();
        let replayed = Replayed::of(&recorded, &self.options.cache_sizes.clone().unwrap_or_else(shares));
        Ok(Kept::new(&replayed, format!("{} events of {} pages", recorded.events.len(), recorded.pages.len())))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let legend = |text: &str| Block::Text(text.to_owned());
        let replayed = self.cells().into_iter().filter_map(|cell| ground.known::<Replayed>(cell));
        let mut blocks: Vec<Block> = replayed.flat_map(|replayed| replayed.blocks()).collect();
        blocks.push(legend(tables::LEGEND));
        if self.options.trace.is_none() {
            let compared = self.cells().into_iter().filter_map(|cell| ground.known::<Compared>(cell));
            blocks.extend(compared.flat_map(|compared| compared.blocks()));
            blocks.push(legend(gets::LEGEND));
        }
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests;

//! `larch bench peers`, `cold`, `writes` and `transactions`: compare Larch with other engines. Each is an experiment
//! whose cells are measurements of one engine, and whose tables have a row for each figure and a column for each
//! engine. Some rows have a goal that Larch must reach.
//!
//! Each engine runs in a child process that keeps its database open and is stopped (SIGSTOP) while the others are
//! measured. Every engine is measured once before the second repeat of a row begins. An engine that fails has no
//! figures in the row; the others go on.

mod child;
mod cold;
mod fio;
mod herd;
mod memory;
mod memory_limit;
mod orders;
mod raw;
mod rows;
mod tasks;
mod transactions;
mod writes;

pub use child::serve;
pub use cold::Cold;
pub use memory::Memory;
pub use raw::SCHEME as DISK;
pub use transactions::Transactions;
pub use writes::Writes;

use crate::experiment::{About, Experiment, Kept};
use crate::ground::Ground;
use crate::outcome::Goal;
use harness::{Failure, Scheme};
use herd::Peer;
use kit::hints::with_engine;
use orders::{Fill, Operate, Order, Sample, Task};
use page::Block;
use rows::Part;
use std::fmt;

/// One measurement of one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The title of the table.
    part: String,
    /// What is measured.
    task: &'static str,
    engine: &'static str,
    repeat: u64,
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, task, engine, repeat } = self;
        write!(out, "{part}: {}, {repeat}, {engine}", task.trim_start())
    }
}

/// One of the four comparisons.
pub trait Comparison {
    /// What it says about itself.
    const ABOUT: About;

    /// The most disk space that its databases take at a time.
    fn most_bytes(&self) -> u64;

    /// The tables.
    fn parts(&self) -> Vec<Part>;

    /// The sizes and times of this run.
    fn conditions(&self) -> String;

    /// The engines that this binary or machine lacks, each with how to get it.
    fn absent(&self) -> Vec<String>;

    /// The cells of a part, in the order in which they are measured.
    fn cells(&self, part: &Part) -> Vec<Cell>;

    /// Has the engine of `cell` carry out its order.
    ///
    /// # Errors
    ///
    /// Fails with what the engine, its process or the disk said.
    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Sample, String>;
}

/// A comparison as an experiment.
pub struct Compared<C>(pub C);

impl<C: Comparison> Experiment for Compared<C> {
    const ABOUT: About = C::ABOUT;

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        self.0.most_bytes()
    }

    fn cells(&self) -> Vec<Cell> {
        self.0.parts().iter().flat_map(|part| self.0.cells(part)).collect()
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let earlier = Cell { repeat: cell.repeat.saturating_sub(1), ..cell.clone() };
        if let Some(why) = ground.failures().get(&earlier.to_string()) {
            return Ok(Kept::failed(why.clone()));
        }
        match self.0.measure(cell, ground) {
            Ok(sample) => Ok(Kept::new(&sample, sample.line())),
            Err(why) => Ok(Kept::failed(why)),
        }
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let mut blocks = vec![Block::Text(self.0.conditions())];
        blocks.extend(settings(ground).into_iter().map(Block::Text));
        blocks.extend(self.0.parts().iter().map(|part| part.table(ground)));
        Ok(blocks)
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        self.0.parts().iter().flat_map(|part| part.goals(ground)).collect()
    }

    fn gaps(&self, ground: &Ground) -> Vec<String> {
        self.0.parts().iter().flat_map(|part| part.gaps(ground)).chain(self.0.absent()).collect()
    }
}

/// Keeps what an engine said about its settings.
fn keep_settings(ground: &mut Ground, name: &str, sample: &Sample) -> Result<(), String> {
    let list: Vec<String> = sample.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let (cell, line) = (format!("settings of {name}"), format!("{name}: {}", list.join("; ")));
    if ground.known(&cell).as_ref() == Some(&line) {
        return Ok(());
    }
    ground.keep(&cell, line.into()).map_err(|failure| failure.to_string())
}

/// The settings of all engines, a line each.
fn settings(ground: &Ground) -> Vec<String> {
    let cells = ground.cells().iter().filter(|(name, _)| name.starts_with("settings of "));
    cells.filter_map(|(_, value)| Some(format!("* {}", value.as_str()?))).collect()
}

/// The engines in `wanted` that this binary lacks, each with the command that builds a binary that has it.
fn absent(wanted: &[&str], schemes: &[Scheme]) -> Vec<String> {
    let is_absent = |name: &&&str| schemes.iter().all(|known| known.name != **name);
    let told = |name: &&str| format!("{name}, which this binary does not have: {}", with_engine(name, "…"));
    wanted.iter().filter(is_absent).map(told).collect()
}

/// The rate in thousands of operations per second.
fn thousands(sample: &Sample) -> f64 {
    sample.operations as f64 / sample.nanos as f64 * 1e6
}

/// The rate in millions of rows per second.
fn million_rows(sample: &Sample) -> f64 {
    sample.rows as f64 / sample.nanos as f64 * 1e3
}

fn workload(name: &str, keys: &str) -> Task {
    Task::Workload { name: name.to_owned(), keys: keys.to_owned() }
}

/// A measurement of `task` by one thread on a table that was filled in key order, without anything beside it.
fn measure(task: Task, records: u64, seed: u64) -> Operate {
    Operate {
        task,
        records,
        filled: Fill::Sorted,
        threads: 1,
        warmup_millis: 0,
        millis: 0,
        operations: None,
        seed,
        hot_share: None,
        beside: None,
    }
}

/// Has a peer read at random until nearly all pages have been read. With fewer reads, a cache that fills on misses
/// would hold mainly the first rows of the table.
fn warm_up(peer: &mut Peer, filled: Fill, records: u64) -> Result<(), String> {
    // A page holds some 120 rows. Of n pages, n ln n random draws miss about one (coupon collector).
    let pages = (records / 120).max(2) as f64;
    let reads = (pages * pages.ln()) as u64;
    // Enough time even for an engine whose reads all miss the cache.
    let millis = (reads / 5).max(1000);
    let uniform = measure(workload("c", "uniform"), records, 1);
    peer.obey(&Order::Measure(Operate { filled, millis, operations: Some(reads), ..uniform })).map(drop)
}

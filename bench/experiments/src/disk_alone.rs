//! Random block reads of one file without an engine, as a baseline for a store on the same disk. The data is not
//! checked.

use crate::ground::Ground;
use crate::made::Made;
use crate::measured::{self, Cell, Until, fill};
use harness::{Failure, Opening, Target};
use std::path::Path;
use suite::stop::Stop;
use ycsb::{Run, Settings};

/// Creates a file of `rows` kilobyte rows. `None` after ^C.
pub fn make(ground: &Ground, rows: u64) -> Result<Option<Made>, Failure> {
    Made::open(ground, "disk", |place| {
        fill(&suite::DISK, &format!("disk:{}", place.display()), &settings(rows), rows, &ground.stop)
    })
}

/// Reads blocks of `page` bytes from that file, with `threads` reads in flight.
pub fn read(
    place: &Path,
    rows: u64,
    page: u64,
    threads: usize,
    seed: u64,
    until: Until,
    stop: &Stop,
) -> Result<Cell, Failure> {
    let settings = settings(rows);
    let target = Target::parse(&format!("disk:{}?page={page}", place.display()))?;
    let store = (suite::DISK.open)(&target, &settings.table(), Opening::Existing)?;
    let cell = measured::run(&*store, &Run::new(&settings, seed), 0, threads, Some(until), stop)?;
    store.close()?;
    // Each operation is one read.
    Ok(Cell { page_reads: cell.operations, read_bytes: cell.operations * page, ..cell })
}

fn settings(rows: u64) -> Settings {
    measured::settings("c", rows, &[("requestdistribution", "uniform"), ("dataintegrity", "false")])
}

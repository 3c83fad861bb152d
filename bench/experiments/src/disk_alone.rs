//! Random block reads of one file without an engine, as a baseline for a store on the same disk. The data is not
//! checked.

use crate::ground::Ground;
use crate::made::Made;
use crate::peers::DISK;
use crate::ycsb_run::{self, Until, YcsbRun, fill};
use harness::{Failure, Opening, Target};
use std::path::Path;
use suite::stop::Stop;
use ycsb::{Run, Settings};

/// Creates a file of `rows` kilobyte rows.
pub fn make(ground: &mut Ground, rows: u64) -> Result<Made, Failure> {
    let build =
        |place: &Path, stop: &Stop| fill(&DISK, &format!("disk:{}", place.display()), &settings(rows), rows, stop);
    Ok(ground.built("disk", build)?.0)
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
) -> Result<YcsbRun, Failure> {
    let settings = settings(rows);
    let target = Target::parse(&format!("disk:{}?page={page}", place.display()))?;
    let store = (DISK.open)(&target, &settings.table(), Opening::Existing)?;
    let read = ycsb_run::run(&*store, &Run::new(&settings, seed), 0, threads, Some(until), stop)?;
    store.close()?;
    // Each operation is one read.
    Ok(YcsbRun { page_reads: read.operations, read_bytes: read.operations * page, ..read })
}

fn settings(rows: u64) -> Settings {
    ycsb_run::settings("c", rows, &[("requestdistribution", "uniform"), ("dataintegrity", "false")])
}

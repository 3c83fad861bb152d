//! The databases of the experiment: creates them, and times loads, compactions and index builds.

use super::wide::{KEY_BYTES, Wide, WideRows};
use super::{Extent, TABLE, Written, open};
use crate::ground::Ground;
use crate::made::{Made, Shape, remove};
use crate::ycsb_run::{self, YcsbRun};
use harness::{Clock, Failure, Opening};
use serde::{Deserialize, Serialize};
use std::path::Path;
use suite::stop::Stop;
use ycsb::Load;

/// A database with its sizes.
pub struct Filled {
    pub made: Made,
    pub shape: Shape,
}

/// The measurements of a load and of what follows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// The load; its `settle_nanos` is the time of the compaction.
    pub load: YcsbRun,
    /// Time to build a secondary index.
    pub index_nanos: u64,
    pub shape: Shape,
}

impl Extent {
    /// Times a load of few rows.
    pub fn timed_load(&self, repeat: u64, written: Written, ground: &Ground) -> Result<Loaded, Failure> {
        let place = ground.data("load")?;
        remove(&place)?;
        let loaded = self.load(&place, written, repeat, &ground.stop);
        remove(&place)?;
        loaded
    }

    /// Loads rows in random order by single commits, compacts them, and builds a secondary index.
    fn load(&self, place: &Path, written: Written, repeat: u64, stop: &Stop) -> Result<Loaded, Failure> {
        let settings = ycsb_run::settings("a", self.load_rows, &[]);
        // A large cache: the load in YDB's document was not short of memory.
        let target = self.target(place, written, "cache=256MiB&settle=compact");
        let store = open(&target, &settings, Opening::OrCreate)?;
        let load = Load::new(&settings, repeat);
        let workload = Wide::new(&load, self.widening());
        let load = ycsb_run::run(&*store, &workload, KEY_BYTES as u64, 1, None, stop)?;
        let clock = Clock::start();
        let rows = store.build_index()?;
        let index_nanos = clock.nanos();
        let entries = store.check_and_drop_index()?;
        store.close()?;
        if rows != Some(self.load_rows) || entries != self.load_rows {
            let text = format!("{} rows were loaded, {rows:?} indexed, {entries} found in the index", self.load_rows);
            return Err(Failure::session(crate::WRONG, text));
        }
        Ok(Loaded { load, index_nanos, shape: Shape::read(place, TABLE)? })
    }

    /// The database with these indexes.
    pub fn filled(&self, written: Written, ground: &mut Ground) -> Result<Filled, Failure> {
        let (made, shape) = ground.built(written.name(), |place, stop| {
            suite::say(&format!("{} rows, {} written", self.rows, written.name()));
            let clock = Clock::start();
            self.fill(place, written, stop)?;
            let nanos = clock.nanos();
            Ok(Shape { nanos, ..Shape::read(place, TABLE)? })
        })?;
        Ok(Filled { made, shape })
    }

    /// Imports all rows in key order.
    fn fill(&self, place: &Path, written: Written, stop: &Stop) -> Result<(), Failure> {
        let settings = ycsb_run::settings("c", self.rows, &[]);
        let store = open(&self.target(place, written, "cache=64MiB"), &settings, Opening::OrCreate)?;
        let load = Load::new(&settings, 1);
        let mut in_order = load.in_order();
        let rows = store.bulk_load(&mut WideRows::new(&mut in_order, self.widening(), stop))?;
        store.close()?;
        match rows {
            Some(rows) if rows == self.rows => Ok(()),
            rows => Err(Failure::session(crate::WRONG, format!("{rows:?} of {} rows were written", self.rows))),
        }
    }
}

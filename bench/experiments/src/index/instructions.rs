//! Counts the instructions of a get by each index. Callgrind runs this program as
//! `larch bench experiment index-gets`, in a separate process; other work on the machine does not affect its
//! counts.

use super::wide::Widening;
use super::{Arm, TABLE};
use crate::args::Gets;
use crate::made::broken;
use harness::Failure;
use kit::callgrind::counted_region;
use kit::{Scratch, callgrind};
use larch::Database;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use ycsb::KeyNames;

/// At most one index node may be read per this many counted gets. A few reads are inevitable, because a cache's
/// contents never stop changing. A node read takes a third of the instructions of a data page read, so these add
/// less than one percent. With many more, the count would measure node reads.
const MOST_NODE_READS: u64 = 50;

/// The instructions of a get, or why they were not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    pub each: Option<f64>,
    pub why_not: Option<String>,
}

/// Counts the gets of `arm`.
pub fn count(arm: Arm, gets: &Gets, scratch: &Path) -> Result<Counted, Failure> {
    let scratch = Scratch::new_in(scratch, "callgrind").map_err(|why| Failure::session("io", why))?;
    let number = |number: u64| number.to_string();
    let texts = [
        ("--memory", number(gets.memory)),
        ("--rows", number(gets.rows)),
        ("--groups", number(gets.groups)),
        ("--warming", number(gets.warming)),
        ("--gets", number(gets.gets)),
    ];
    let mut arguments: Vec<&OsStr> = ["bench", "experiment", "index-gets", "--place"].map(OsStr::new).to_vec();
    arguments.push(gets.place.as_os_str());
    texts.iter().for_each(|(name, value)| arguments.extend([OsStr::new(name), OsStr::new(value)]));
    if arm.is_flat() {
        arguments.push(OsStr::new("--flat"));
    }
    Ok(match callgrind::count(&arguments, &scratch).as_deref() {
        Ok([count]) => Counted { each: Some(*count as f64 / gets.gets as f64), why_not: None },
        Ok(counts) => Counted { each: None, why_not: Some(format!("valgrind counted {} times", counts.len())) },
        Err(why) => Counted { each: None, why_not: Some(why.clone()) },
    })
}

impl Gets {
    /// The options for gets on the database in `place`.
    pub fn new(place: &Path, memory: u64, rows: u64, groups: u64, gets: u64) -> Self {
        // A leaf of the tree covers thousands of rows, so these gets read almost every leaf.
        let warming = (rows / 500).max(200);
        Self { place: place.to_owned(), flat: false, memory, rows, groups, warming, gets }
    }

    /// Runs the gets, in the process whose instructions are counted.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read, if a row is missing, or if too many index nodes are read.
    pub fn run(&self) -> Result<(), Failure> {
        let builder = Database::builder(&self.place).read_only(true).prefer_flat_index(self.flat);
        let db = builder.cache_bytes(self.memory).open().map_err(broken)?;
        let table = db.table(TABLE).map_err(broken)?;
        let widening = Widening::new(self.groups);
        let names = KeyNames { ordered: false, zero_padding: 20 };
        let mut narrow = Vec::new();
        let mut keys = |numbers: Range<u64>| -> Vec<Vec<u8>> {
            let drawn = numbers.map(|number| {
                names.write((row_access::batch::mixed(number + 1) % self.rows).cast_signed(), &mut narrow);
                let mut key = Vec::new();
                widening.widen(&narrow, &mut key);
                key
            });
            drawn.collect()
        };
        // Warm the cache by gets: of the pages of a long range read, it keeps only those that gets use.
        for key in keys(self.gets..self.gets + self.warming) {
            table.get(&key).map_err(broken)?;
        }
        let keys = keys(0..self.gets);
        let before = db.metrics().pages;
        let mut found = Ok(0);
        counted_region(&mut || {
            found = keys.iter().try_fold(0, |found, key| Ok(found + u64::from(table.get(key)?.is_some())));
        });
        let found = found.map_err(broken)?;
        if found != self.gets {
            return Err(Failure::session(crate::WRONG, format!("{found} of {} rows were found", self.gets)));
        }
        let nodes = db.metrics().pages.since(&before).index_reads();
        if nodes > self.gets / MOST_NODE_READS {
            let why = format!("{nodes} index nodes were read by the {} gets that were counted", self.gets);
            return Err(Failure::session(crate::WRONG, why));
        }
        Ok(())
    }
}

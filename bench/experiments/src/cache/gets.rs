//! Gets of rows of one size: how many of them a cache of pages answers, how many a cache of rows would answer, and how
//! many Larch's cache answers, which keeps pages and excerpts: copies of hot rows.
//!
//! ```text
//!   keys of YCSB C ──┬────────────────────────────────> rows  ──replay──┐
//!                    ├──> Larch, everything in memory ──> pages ──replay──> Compared
//!                    └──> Larch, in a cache of each size ──counters of pages──┘
//! ```
//!
//! * The rows are known from the requests of the client, and not from a trace of the cache. What a client asks for
//!   does not depend on a cache, and the cache does not know for which row a page is needed.
//! * The pages are recorded in a cache that never evicts. A smaller one answers some gets with excerpts, and their
//!   pages would be missing from the trace.
//! * All rows have the same size, so no policy has more hits on them than OPT. If they had several sizes, OPT would be
//!   no bound: the best choice is then NP-hard to find.

mod compared;

use crate::cache::record::{import, operate};
use crate::cache::recorded::{Event, Page, Recorded, Trace, What, hash};
use crate::made::broken;
use crate::ycsb_run::settings;
use compared::Counted;
pub use compared::{Compared, LEGEND};
use harness::{Blocking, Failure, Reply, Request, Workload as _};
use larch::stats::Metrics;
use larch::{Database, Durability, Table};
use os::Machine;
use pages::policy::Class;
use std::collections::HashMap;
use ycsb::{Run, RunClient, Settings};

/// Gets of one table.
pub struct Gets {
    /// What is asked for.
    pub name: &'static str,
    distribution: &'static str,
    /// Bytes of each of the ten fields of a row.
    field_bytes: &'static str,
    /// Rows of the table, as a percentage of the records of the traces.
    percent: u64,
}

const fn gets(name: &'static str, distribution: &'static str, field_bytes: &'static str, percent: u64) -> Gets {
    Gets { name, distribution, field_bytes, percent }
}

/// All of them. YCSB's zipfian distribution is over 10^10 items, which are spread over the rows. About half of the
/// gets are of items that hardly anybody asks for twice. Its distribution for the latest rows is zipfian over the rows
/// themselves.
pub const GETS: [Gets; 5] = [
    gets("Gets of 1 KB, zipfian", "zipfian", "100", 40),
    gets("Gets of 1 KB, the latest", "latest", "100", 40),
    gets("Gets of 1 KB, uniform", "uniform", "100", 40),
    gets("Gets of 100 bytes, zipfian", "zipfian", "10", 200),
    gets("Gets of 100 bytes, the latest", "latest", "10", 200),
];

/// The default sizes of the cache, in percent of the bytes of all pages.
const SHARES: [u64; 3] = [5, 20, 50];

/// The smallest cache that is tried by default, in bytes. Larch's own cache needs a few pages at a time.
const LEAST_BYTES: u64 = 256 << 10;

/// Gets before those that are counted, for each row. With eight, the reads of Larch's cache change by at most 2 %,
/// except where a large cache goes on to collect excerpts.
const WARM_UP_EACH: u64 = 2;

impl Gets {
    /// The number of rows, if the tables of the traces have `records` rows.
    pub fn rows(&self, records: u64) -> u64 {
        records * self.percent / 100
    }

    /// Makes the gets on a table that is made for them, and compares caches of these sizes.
    ///
    /// # Errors
    ///
    /// Fails if a database or an operation failed.
    pub fn compare(&self, records: u64, cache_sizes: Option<&[u64]>) -> Result<Compared, Failure> {
        let made = Made::new(self, self.rows(records))?;
        let streams = made.record(self.name)?;
        let shares = || SHARES.map(|share| (streams.pages.data_bytes() * share / 100).max(LEAST_BYTES)).to_vec();
        let mut sizes = cache_sizes.map_or_else(shares, <[u64]>::to_vec);
        sizes.dedup();
        let count = |bytes: u64| made.count(bytes).map(|counted| (bytes, counted));
        let counted: Vec<_> = sizes.into_iter().map(count).collect::<Result<_, _>>()?;
        Ok(Compared::new(&streams, &counted))
    }
}

/// What the same gets ask for, as rows and as pages.
pub struct Streams {
    pub name: &'static str,
    /// Gets that are counted.
    pub gets: u64,
    pub rows: Recorded,
    pub pages: Recorded,
}

/// A table with rows of one size, on a machine in memory.
struct Made {
    machine: Machine,
    settings: Settings,
    rows: u64,
    row_bytes: u32,
    file_bytes: u64,
}

impl Made {
    fn new(gets: &Gets, rows: u64) -> Result<Self, Failure> {
        let more = [("requestdistribution", gets.distribution), ("fieldlength", gets.field_bytes)];
        let settings = settings("c", rows, &more);
        let (machine, _) = Machine::simulated(1);
        let mut made = Self { machine, settings, rows, row_bytes: 0, file_bytes: 0 };
        let (db, table) = made.open(64 << 20)?;
        let mut sizes = None;
        import(&made.settings, &table, |key, value| {
            let bytes = (key.len() + value.len()) as u32;
            assert_eq!(*sizes.get_or_insert(bytes), bytes, "OPT is exact only if all rows have the same size");
        })?;
        made.row_bytes = sizes.expect("a table has rows");
        made.file_bytes = db.metrics().file_bytes;
        Ok(made)
    }

    /// Opens the database, with nothing in memory.
    fn open(&self, cache_bytes: u64) -> Result<(Database, Table), Failure> {
        let db = Database::builder("gets")
            .machine(self.machine.clone())
            .durability(Durability::Buffered)
            .cache_bytes(cache_bytes)
            .open()
            .map_err(broken)?;
        let table = db.table("usertable").map_err(broken)?;
        Ok((db, table))
    }

    /// The client of the workload. Each one asks for the same rows.
    fn client(&self) -> RunClient {
        Run::new(&self.settings, 1).client(0, 1)
    }

    /// Makes the gets with everything in memory. Returns what they ask for.
    fn record(&self, name: &'static str) -> Result<Streams, Failure> {
        let (db, table) = self.open(4 * self.file_bytes + (64 << 20))?;
        let cache = db.cache();
        let trace = cache.inner().trace();
        let mut session = stores::larch::session(&table, self.settings.records.fields as usize);
        let mut client = self.client();
        let mut asked = Asked::default();
        let mut accesses = Vec::new();
        let mut warm_up = [0; 2];
        for gets in [WARM_UP_EACH * self.rows, self.rows] {
            warm_up = [asked.rows.len(), accesses.len()];
            trace.start(usize::MAX);
            get(&mut client, &mut session, gets, |key| asked.add(key))?;
            accesses.append(&mut trace.finish());
        }
        let trace = Trace { name: name.to_owned(), operations: self.rows, accesses };
        let mut pages = Recorded::new(&trace)?;
        assert_eq!(pages.events.len(), trace.accesses.len(), "no file of this table dies");
        pages.warm_up = warm_up[1];
        let rows = rows(name, &asked.rows, self.row_bytes, warm_up[0]);
        Ok(Streams { name, gets: self.rows, rows, pages })
    }

    /// Makes the gets in a cache of this size. Returns what the cache did.
    fn count(&self, cache_bytes: u64) -> Result<Counted, Failure> {
        let (db, table) = self.open(cache_bytes)?;
        let mut session = stores::larch::session(&table, self.settings.records.fields as usize);
        let mut client = self.client();
        get(&mut client, &mut session, WARM_UP_EACH * self.rows, |_| {})?;
        let before = db.metrics();
        get(&mut client, &mut session, self.rows, |_| {})?;
        let after = db.metrics();
        let counted = |count: fn(&Metrics) -> u64| count(&after) - count(&before);
        let data_reads = counted(|metrics| metrics.data_page_reads);
        Ok(Counted {
            reads: [counted(|metrics| metrics.page_reads) - data_reads, data_reads],
            excerpts: counted(|metrics| metrics.cache.excerpts_found),
        })
    }
}

/// Makes the next `gets` gets of the client, and calls `each` with the key of each.
fn get(
    client: &mut RunClient,
    session: &mut dyn Blocking,
    gets: u64,
    mut each: impl FnMut(&[u8]),
) -> Result<(), Failure> {
    let mut reply = Reply::new();
    for _ in 0..gets {
        operate(client, session, &mut reply, |request| match request {
            Request::Read { key, .. } => each(key),
            _ => unreachable!("workload C only reads rows"),
        })?;
    }
    Ok(())
}

/// The rows that were asked for, with numbers in the order in which each was first asked for.
#[derive(Default)]
struct Asked {
    numbers: HashMap<Box<[u8]>, u32>,
    rows: Vec<u32>,
}

impl Asked {
    fn add(&mut self, key: &[u8]) {
        let next = self.numbers.len() as u32;
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => *self.numbers.entry(key.into()).or_insert(next),
        };
        self.rows.push(number);
    }
}

/// The trace of a cache of rows: each row is a page of its own.
fn rows(name: &str, asked: &[u32], row_bytes: u32, warm_up: usize) -> Recorded {
    let count = asked.iter().max().map_or(0, |last| *last + 1);
    let page = |row: u32| Page { key: hash(row.into()), class: Class::Data, bytes: row_bytes };
    let event = |row: &u32| Event { page: *row, what: What::Needed, is_point: true };
    Recorded {
        name: name.to_owned(),
        operations: (asked.len() - warm_up) as u64,
        pages: (0..count).map(page).collect(),
        events: asked.iter().map(event).collect(),
        warm_up,
        live_bytes: [0, u64::from(count) * u64::from(row_bytes)],
    }
}

#[cfg(test)]
mod tests;

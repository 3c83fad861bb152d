//! The two sides as stores:
//!
//! * Private: each reader opens the database for itself, with a cache that keeps nothing after a read. A read
//!   fetches every page that it needs, and drops them all when it is done.
//! * Shared: all readers use one database, whose cache keeps index pages and no data pages. A reader that needs a
//!   page that another one is fetching waits for that fetch.

use super::data::{Data, TABLE};
use crate::made::broken;
use harness::directory::bytes_text;
use harness::{Blocking, Change, Clock, Counter, Failure, Outcome, Reply, Request, Session, Setting, Store, StoreUse};
use larch::stats::Admit;
use larch::{Database, Table};
use os::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The cache of a private reader, several times what a read needs.
const PRIVATE_CACHE_BYTES: u64 = 1 << 20;

/// The shared cache, several times the size of the index of 10 M keys.
const SHARED_CACHE_BYTES: u64 = 64 << 20;

/// Whether readers share index pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// "Before": each reader has its own index pages, and drops them after the read.
    Private,
    /// "After": all readers use the index pages of one cache.
    Shared,
}

impl Sides {
    /// Both, in the order of the first repeat.
    pub const ALL: [Self; 2] = [Self::Private, Self::Shared];

    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Private => "before, private index pages",
            Self::Shared => "after, shared index pages",
        }
    }
}

/// A side, as an open store.
pub struct Readers {
    sharing: Sides,
    /// One for each reader, or one for all.
    databases: Vec<Database>,
    tables: Vec<Table>,
    /// The number of sessions so far.
    sessions: AtomicUsize,
    /// Rows read by sessions that have ended.
    rows: AtomicU64,
}

/// What the readers did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rows that were asked for.
    pub rows: u64,
    /// Waits for the disk, for a read of one's own or of another reader.
    pub waits: u64,
    /// Index nodes read from disk.
    pub index_reads: u64,
    /// Data pages read from disk.
    pub data_reads: u64,
    /// Pages of all kinds read from disk.
    pub page_reads: u64,
}

impl Counts {
    /// `count` per row.
    pub fn a_row(&self, count: u64) -> f64 {
        count as f64 / self.rows.max(1) as f64
    }

    /// The counts in the form of a benchmark result.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        let counts = [
            ("rows until all had ended", self.rows),
            ("waits until all had ended", self.waits),
            ("index page reads until all had ended", self.index_reads),
            ("data page reads until all had ended", self.data_reads),
            ("page reads until all had ended", self.page_reads),
        ];
        counts.into_iter().map(|(name, after)| Change { name: name.to_owned(), before: 0, after, gauge: false })
    }
}

impl Readers {
    /// Opens the database in `place` for `readers` readers.
    pub fn open(place: &Path, sharing: Sides, readers: usize) -> Result<Self, Failure> {
        let (count, cache_bytes, admit) = match sharing {
            Sides::Private => (readers, PRIVATE_CACHE_BYTES, Admit::Pass),
            Sides::Shared => (1, SHARED_CACHE_BYTES, Admit::Nodes),
        };
        let open = || Data::builder(place).read_only(true).cache_bytes(cache_bytes).open();
        let databases: Vec<Database> = (0..count).map(|_| open()).collect::<Result<_, _>>().map_err(broken)?;
        let table = |db: &Database| Ok(db.table(TABLE)?.admitting(admit));
        let tables = databases.iter().map(table).collect::<Result<_, _>>().map_err(broken)?;
        Ok(Self { sharing, databases, tables, sessions: AtomicUsize::new(0), rows: AtomicU64::new(0) })
    }

    /// Which side it is.
    pub fn sharing(&self) -> Sides {
        self.sharing
    }

    /// The counts since the database was opened, which are exact once all sessions have ended.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { rows: self.rows.load(Ordering::Relaxed), ..Counts::default() };
        for db in &self.databases {
            let pages = db.metrics().pages;
            counts.waits += pages.all_rounds();
            counts.index_reads += pages.index_reads();
            counts.data_reads += pages.data_reads();
            counts.page_reads += pages.total().faults;
        }
        counts
    }
}

impl Store for Readers {
    fn settings(&self) -> Vec<Setting> {
        let options = self.tables[0].options();
        let cache = match self.sharing {
            Sides::Private => {
                format!(
                    "{} for each of {} readers, nothing is kept",
                    bytes_text(PRIVATE_CACHE_BYTES),
                    self.tables.len()
                )
            }
            Sides::Shared => format!("{} for all, index pages are kept", bytes_text(SHARED_CACHE_BYTES)),
        };
        vec![
            Setting::new("engine", concat!("Larch ", env!("CARGO_PKG_VERSION"))),
            Setting::new("cache", cache),
            Setting::new("page", bytes_text(options.page_bytes.into())),
            Setting::new("node", bytes_text(options.node_bytes.into())),
            Setting::new("compression", "none"),
            Setting::new("durability", "read-only"),
            Setting::new("reads", "direct, where the file system can"),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let table = &self.tables[number % self.tables.len()];
        Ok(Session::Blocking(Box::new(Gets { table, rows: 0, sum: &self.rows })))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.tables[0].first_key_value().map_err(broken)?.is_none())
    }

    fn counters(&self) -> Vec<Counter> {
        let Counts { waits, index_reads, page_reads, .. } = self.counts();
        vec![
            Counter::of("page reads", page_reads),
            Counter::of("index page reads", index_reads),
            Counter::of("waits", waits),
        ]
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// The session of one reader.
struct Gets<'s> {
    table: &'s Table,
    rows: u64,
    /// Gets `rows` added when the session ends.
    sum: &'s AtomicU64,
}

impl Blocking for Gets<'_> {
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure> {
        let Request::Read { key, .. } = *request else { unreachable!("readers read") };
        self.rows += 1;
        let Some(value) = self.table.get(key).map_err(broken)? else { return Ok(Outcome::NotFound) };
        let Ok(()) = reply.row_of_fields(key, |fields| {
            fields.push(&value);
            Ok::<(), std::convert::Infallible>(())
        });
        Ok(Outcome::Ok)
    }
}

impl Drop for Gets<'_> {
    fn drop(&mut self) {
        self.sum.fetch_add(self.rows, Ordering::Relaxed);
    }
}

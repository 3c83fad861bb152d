//! The interface of a database that the row-access benchmark measures.

use crate::batch::{Batch, Order};
use crate::history::Job;
use harness::{Failure, Setting, StoreUse, Target};
use std::fmt;
use std::time::Duration;

/// A kind of database that can be opened.
#[derive(Clone, Copy)]
pub struct RowAccessScheme {
    /// The text before the colon of a target.
    pub name: &'static str,
    /// Whether the rows of a batch can be ordered by an expression of SQL.
    pub orders_by_sql: bool,
    /// Opens such a database.
    pub open: Open,
}

/// Opens a database.
pub type Open = fn(&Target, Opening) -> Result<Box<dyn Database>, Failure>;

/// What may happen to the database when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It is made if it does not exist.
    OrCreate,
    /// It must exist.
    Existing,
    /// The database must exist, and nothing is written to it. Another process may have the database open.
    ReadOnly,
}

/// A table that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableForm {
    /// Its name.
    pub name: String,
    /// The number of tablets of the table; 0 means the database's own default.
    pub tablets: u32,
    /// The number of tablets of the index; 0 means the database's own default.
    pub index_tablets: u32,
    /// Whether `mykey` is the primary key. Then the table has no other index.
    pub index_as_pk: bool,
    /// The number of bytes in each row's filler.
    pub filler: u32,
    /// The number of rows that will be inserted.
    pub rows: u64,
}

impl TableForm {
    /// The name of the index on `mykey`.
    pub fn index(&self) -> String {
        index_of(&self.name)
    }
}

/// The name of the index of `table`.
pub fn index_of(table: &str) -> String {
    format!("{table}_asc_mykey")
}

/// How a session accesses rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The table.
    pub table: String,
    /// Whether statements are prepared once. The field only matters for databases that have statements.
    pub prepared: bool,
    /// Whether only the index is read, and not the rows.
    pub index_only: bool,
}

/// What is done with the rows of a key range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Reads the rows.
    Read,
    /// Adds 1 to `scratch` of each row.
    Update,
}

/// A way to read the rows of a range, to compare with the database's own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWay {
    /// The session knows where all rows lie, and looks them up without the index. The engine cannot read scattered
    /// rows faster than this.
    KnownIds,
    /// The session looks up one row after the other, in the order in which the index names the rows. This is the
    /// slowest way.
    OneByOne,
}

/// What a statement has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of rows.
    pub rows: u64,
    /// The greatest value of the column `scratch`. If only the index was read, the greatest key.
    pub max: Option<i64>,
}

/// A session that runs in the database.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'p> {
    /// How the session accesses rows.
    pub access: &'p Access,
    /// The number of rows among which ranges are drawn.
    pub tab_rows: u64,
    /// The number of rows in a range.
    pub batch_rows: u64,
    /// The percentage of rows that are updated.
    pub pct_update: u32,
    /// After this time, no batch begins.
    pub time: Duration,
    /// Whether ranges are drawn as in ybio.
    pub compat: bool,
}

/// What a session inside the database has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenInside {
    /// The number of batches.
    pub batches: u64,
    /// The number of rows that were updated.
    pub updated: u64,
    /// All rows that were read or updated.
    pub seen: Seen,
}

/// The counts of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The number of rows.
    pub rows: u64,
    /// The greatest `scratch`.
    pub scratch: Option<i64>,
}

/// A database whose rows are accessed.
pub trait Database: Send + Sync {
    /// The engine, and the settings with which it works.
    fn settings(&self) -> Vec<Setting>;

    /// Makes the table and its index, both empty. If the table exists, `recreate` decides whether it is dropped
    /// first or kept. Returns a sentence for each part of `form` that the database cannot fulfil.
    fn create(&self, form: &TableForm, recreate: bool) -> Result<Vec<String>, Failure>;

    /// A loader that inserts rows into a table that exists.
    fn loader(&self, form: &TableForm, order: &Order) -> Result<Box<dyn Loader + '_>, Failure>;

    /// Waits until the loaded rows have reached their final place.
    fn settle(&self, table: &str) -> Result<(), Failure>;

    /// A session for the calling thread.
    fn session(&self, access: &Access) -> Result<Box<dyn Session + '_>, Failure>;

    /// A read-only session that reads in the given way instead of the database's own, so that the two can be
    /// compared. Returns `None` if the database cannot read in this way.
    fn session_reading(&self, table: &str, way: ReadWay) -> Result<Option<Box<dyn Session + '_>>, Failure> {
        let _ = (table, way);
        Ok(None)
    }

    /// Counts the rows of a table.
    fn count(&self, table: &str) -> Result<Counted, Failure>;

    /// Explains, in one or more lines of text, how the database finds the rows from `first` to `last`. An update is
    /// only explained, and not carried out.
    fn access_path(&self, access: &Access, statement: Statement, first: i64, last: i64) -> Result<String, Failure>;

    /// The number of pages that were read from the disk or the system since the database was opened. `None` if the
    /// database does not count page reads.
    fn page_reads(&self) -> Option<u64>;

    /// The processor time and disk bytes that the database has used outside this process. A server must override
    /// this.
    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    /// Makes the table of runs if it does not exist. If several processes begin together, one process calls this
    /// method before the others begin, because some databases cannot make the same table several times at once.
    fn make_jobs(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Records a job that has begun in the table of runs, and makes the table if it does not exist. Returns the
    /// job's number.
    fn begin_job(&self, job: &Job) -> Result<i64, Failure>;

    /// Records how a job ended.
    fn end_job(&self, job: &Job) -> Result<(), Failure>;

    /// Runs a whole session as a procedure in the database. The procedure draws the ranges itself, and returns when
    /// the time is over. `None`: the database has no procedures.
    fn run_inside(&self, inside: &Inside<'_>) -> Result<Option<SeenInside>, Failure> {
        let _ = inside;
        Ok(None)
    }

    /// The newest `limit` jobs, the newest first.
    fn jobs(&self, limit: u64) -> Result<Vec<Job>, Failure>;

    /// Drops the tables whose names consist of `prefix` and digits. If `with_jobs` is true, the table of runs is
    /// also dropped. Returns the names of the dropped tables.
    fn clean(&self, prefix: &str, with_jobs: bool) -> Result<Vec<String>, Failure>;

    /// Closes the database cleanly.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Inserts the rows of a table.
pub trait Loader {
    /// Inserts a batch in one transaction.
    fn insert(&mut self, batch: &Batch) -> Result<(), Failure>;
}

/// One thread's access to the rows of a table.
pub trait Session {
    /// Runs `statement` on the rows whose keys are from `first` to `last`, in one transaction.
    fn access(&mut self, statement: Statement, first: i64, last: i64) -> Result<Seen, Failure>;
}

impl fmt::Debug for dyn Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.settings()).finish()
    }
}

/// The name of the table of runs.
pub const JOBS_TABLE: &str = "benchruns";

//! What is asked of a database whose rows are accessed.

use crate::batch::{Batch, Order};
use crate::history::Job;
use harness::{Failure, Setting, StoreUse, Target};
use std::fmt;
use std::time::Duration;

/// A kind of database that can be opened.
#[derive(Clone, Copy)]
pub struct Scheme {
    /// What stands before the colon of a target.
    pub name: &'static str,
    /// Whether the rows of a batch can be ordered by an expression of SQL.
    pub orders_by_sql: bool,
    /// Opens it.
    pub open: Open,
}

/// Opens a database.
pub type Open = fn(&Target, Opening) -> Result<Box<dyn Database>, Failure>;

/// What may become of the database when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It is made if it is not there.
    OrCreate,
    /// It is there.
    Existing,
    /// It is there, nothing is written, and another process may have it open.
    ReadOnly,
}

/// A table that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableForm {
    /// Its name.
    pub name: String,
    /// Tablets of the table; 0: as the database has it.
    pub tablets: u32,
    /// Tablets of the index; 0: as the database has it.
    pub index_tablets: u32,
    /// `mykey` is the primary key, and the table has no other index.
    pub index_as_pk: bool,
    /// Bytes of the filler of each row.
    pub filler: u32,
    /// Rows that will be inserted.
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
    /// Statements are prepared once. It has a meaning only on stores with statements.
    pub prepared: bool,
    /// The index is read and not the rows.
    pub index_only: bool,
}

/// What is done with a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// The rows are read.
    Read,
    /// `scratch` of each row grows by 1.
    Update,
}

/// A way to read the rows of a range that shows what the way of the database is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWay {
    /// It knows where all rows lie, and looks them up without the index: the most that the engine can do for scattered
    /// rows.
    KnownIds,
    /// It looks up one row after the other, as the index names them: the least.
    OneByOne,
}

/// What a statement saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Rows.
    pub rows: u64,
    /// The greatest `scratch`, or the greatest key where the index alone was read.
    pub max: Option<i64>,
}

/// A session that runs in the database.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'p> {
    /// How it accesses rows.
    pub access: &'p Access,
    /// Ranges are drawn among this number of rows.
    pub tab_rows: u64,
    /// Rows of a range.
    pub batch_rows: u64,
    /// This number of rows in a hundred is updated.
    pub pct_update: u32,
    /// No batch begins later.
    pub time: Duration,
    /// Ranges are drawn as ybio does it.
    pub compat: bool,
}

/// What a session in the database saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenInside {
    /// Batches.
    pub batches: u64,
    /// Rows that were updated.
    pub updated: u64,
    /// All rows.
    pub seen: Seen,
}

/// What a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Rows.
    pub rows: u64,
    /// The greatest `scratch`.
    pub scratch: Option<i64>,
}

/// A database whose rows are accessed.
pub trait Database: Send + Sync {
    /// What it is and how it is set.
    fn settings(&self) -> Vec<Setting>;

    /// Makes the table and its index, both empty. An existing table is dropped first if `recreate`, and kept otherwise.
    /// Returns what the database does not do as it was asked for, a sentence each.
    fn create(&self, form: &TableForm, recreate: bool) -> Result<Vec<String>, Failure>;

    /// Inserts rows into a table that was made.
    fn loader(&self, form: &TableForm, order: &Order) -> Result<Box<dyn Loader + '_>, Failure>;

    /// Waits until the loaded rows are where they will stay.
    fn settle(&self, table: &str) -> Result<(), Failure>;

    /// A session for the calling thread.
    fn session(&self, access: &Access) -> Result<Box<dyn Session + '_>, Failure>;

    /// A session that reads in another way than the database would, for comparison. It reads only. `None`: the database
    /// has no such way.
    fn session_reading(&self, table: &str, way: ReadWay) -> Result<Option<Box<dyn Session + '_>>, Failure> {
        let _ = (table, way);
        Ok(None)
    }

    /// Counts the rows of a table.
    fn count(&self, table: &str) -> Result<Counted, Failure>;

    /// How the database finds the rows from `first` to `last`, in lines. An update is not carried out.
    fn access_path(&self, access: &Access, statement: Statement, first: i64, last: i64) -> Result<String, Failure>;

    /// Pages read since the database was opened, from the disk or from the system; `None` if it does not count them.
    fn page_reads(&self) -> Option<u64>;

    /// What it has used of processors and disk outside of this process. A server says otherwise than this.
    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    /// Makes the history of runs if it is not there. Processes that begin at the same time need not do it at the same
    /// time, which not every database can.
    fn make_jobs(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes a job that has begun into the table of runs, which is made if it is not there. Returns the number that it
    /// was given.
    fn begin_job(&self, job: &Job) -> Result<i64, Failure>;

    /// Writes how a job ended.
    fn end_job(&self, job: &Job) -> Result<(), Failure>;

    /// Runs a whole session by a procedure in the database, which draws the ranges itself and does not return before
    /// the time is over. `None`: the database has no procedures.
    fn run_inside(&self, inside: &Inside<'_>) -> Result<Option<SeenInside>, Failure> {
        let _ = inside;
        Ok(None)
    }

    /// The newest `limit` jobs, the newest first.
    fn jobs(&self, limit: u64) -> Result<Vec<Job>, Failure>;

    /// Drops the tables whose names are `prefix` and digits, and the table of runs if `with_jobs`. Returns the names of
    /// what it dropped.
    fn clean(&self, prefix: &str, with_jobs: bool) -> Result<Vec<String>, Failure>;

    /// Ends it in good order.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Inserts the rows of a table.
pub trait Loader {
    /// Inserts a batch in one transaction.
    fn insert(&mut self, batch: &Batch) -> Result<(), Failure>;
}

/// One thread's access to the rows of a table.
pub trait Session {
    /// Does it with the rows whose keys are from `first` to `last`, in one transaction.
    fn access(&mut self, statement: Statement, first: i64, last: i64) -> Result<Seen, Failure>;
}

impl fmt::Debug for dyn Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.settings()).finish()
    }
}

/// The name of the table of runs.
pub const JOBS_TABLE: &str = "benchruns";

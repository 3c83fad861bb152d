//! Records traces of YCSB on Larch, each with its own table on a simulated machine, loaded in key order, and a
//! single client.
//!
//! The cache holds a twentieth of the data meanwhile, so that scans read ahead and steps are run again after page
//! faults, as in real use. A replay treats recorded hits and misses alike, as pages that were needed.

use crate::cache::recorded::Trace;
use crate::made::broken;
use harness::{Blocking, Client, Extra, Failure, Next, Reply, Request, Rows as _, Strings, Workload as _};
use larch::{Database, Durability, Table, TableOptions};
use os::Machine;
use ycsb::{Load, Run, RunClient, Settings};

/// The workload of a trace.
pub struct Course {
    /// The name of the trace.
    pub name: &'static str,
    workload: &'static str,
    /// The distribution of the keys, or empty for the workload's own.
    distribution: &'static str,
    /// Rows that an endless full scan reads after each operation.
    scanned_rows: u64,
    /// The number of operations, as a percentage of the usual one.
    percent: u64,
}

const fn course(name: &'static str, workload: &'static str) -> Course {
    Course { name, workload, distribution: "", scanned_rows: 0, percent: 100 }
}

/// The workloads of all traces.
pub const COURSES: [Course; 9] = [
    course("A, updates", "a"),
    course("B, few updates", "b"),
    course("C, zipfian reads", "c"),
    Course { distribution: "uniform", ..course("C, uniform reads", "c") },
    course("D, the latest", "d"),
    // A scan needs more pages than a read.
    Course { percent: 50, ..course("E, short scans", "e") },
    course("F, read-modify-write", "f"),
    Course { scanned_rows: 30, ..course("C beside a full scan", "c") },
    Course { scanned_rows: 300, percent: 50, ..course("C beside a fast scan", "c") },
];

/// The size of a data page: a quarter of the default, which makes the index of the same data larger.
const PAGE_BYTES: u32 = 4 << 10;

/// The most page accesses of an operation, for the size of the trace buffer.
const MOST_ACCESSES_EACH: u64 = 1000;

/// Records all traces.
///
/// # Errors
///
/// As [`record`].
pub fn all(records: u64) -> Result<Vec<Trace>, Failure> {
    COURSES.iter().map(|course| record(course, records)).collect()
}

/// Records the trace of one workload on a table of `records`.
///
/// # Errors
///
/// Fails if the database or an operation failed.
pub fn record(course: &Course, records: u64) -> Result<Trace, Failure> {
    let operations = (records / 5 * course.percent / 100).max(100);
    let settings = settings(course, records, operations)?;
    let (db, table) = load(&settings)?;
    // A tenth of the file bytes are filters and indexes, which are read through the same cache.
    db.cache().set_budget_bytes((db.metrics().file_bytes / 20).max(256 << 10));
    let mut client = Run::new(&settings, 1).client(0, 1);
    let mut session = stores::larch::session(&table, settings.records.fields as usize);
    let mut full_scan = FullScan { table: &table, range: None };
    // The warm-up fills the cache with index nodes and hot pages.
    let warm_up = operations / 4;
    let mut reply = Reply::new();
    for number in 0..warm_up + operations {
        if number == warm_up {
            db.cache().inner().trace().start((operations * MOST_ACCESSES_EACH).min(100_000_000) as usize);
        }
        operate(&mut client, &mut session, &mut reply, |_| {})?;
        full_scan.advance(course.scanned_rows)?;
    }
    Ok(Trace { name: course.name.to_owned(), operations, accesses: db.cache().inner().trace().finish() })
}

fn settings(course: &Course, records: u64, operations: u64) -> Result<Settings, Failure> {
    let mut properties = ycsb::built_in(course.workload).expect("it is built in");
    let numbers = [("recordcount", records), ("operationcount", operations), ("fieldcount", 10), ("fieldlength", 10)];
    numbers.iter().for_each(|(name, value)| properties.set(*name, value.to_string()));
    if !course.distribution.is_empty() {
        properties.set("requestdistribution", course.distribution);
    }
    Settings::new(&properties, &|_| Err("no file is named".to_owned()))
        .map_err(|error| Failure::session("run", error.to_string()))
}

/// Creates a database in memory and imports all records into its files.
fn load(settings: &Settings) -> Result<(Database, Table), Failure> {
    let (machine, _) = Machine::simulated(1);
    // A small write buffer, so that workloads that write cause flushes and compactions.
    let db = Database::builder("cache-trace")
        .machine(machine)
        .durability(Durability::Buffered)
        .write_buffer_bytes(2 << 20)
        .open()
        .map_err(broken)?;
    let table = db
        .table_with("usertable", TableOptions { page_bytes: PAGE_BYTES, ..TableOptions::default() })
        .map_err(broken)?;
    import(settings, &table, |_, _| {})?;
    Ok((db, table))
}

/// Imports all records into `table`. Calls `each` with each key and value.
///
/// # Errors
///
/// Fails if the database failed.
pub fn import(settings: &Settings, table: &Table, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
    let mut import = table.import().map_err(broken)?;
    let mut rows = Load::new(settings, 1).in_order();
    let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
    while rows.next_row(&mut key, &mut record) {
        let value = harness::key_value::encoded(&record, &mut value);
        each(&key, value);
        import.add(&key, value).map_err(broken)?;
    }
    import.finish(|_| {}).map_err(broken)?;
    Ok(())
}

/// Runs one operation with all its requests. Calls `each` with each request.
///
/// # Errors
///
/// Fails if the operation failed.
pub fn operate(
    client: &mut RunClient,
    session: &mut dyn Blocking,
    reply: &mut Reply,
    mut each: impl FnMut(&Request<'_>),
) -> Result<(), Failure> {
    client.begin();
    let (mut note, mut retries) = (|_, _, _| {}, 0);
    loop {
        reply.clear();
        let (_, request) = client.request();
        each(&request);
        let result = session.call(&request, reply);
        match client.served(result.as_ref().map(|outcome| *outcome), reply, &mut Extra::new(&mut note, &mut retries)) {
            Next::More | Next::Wait(_) => {}
            Next::Done | Next::DoneAs(_) => return Ok(()),
            Next::Failed => {
                let why = result.err().map_or_else(|| "it was not done".to_owned(), |failure| failure.to_string());
                return Err(Failure::session("run", format!("an operation failed: {why}")));
            }
        }
    }
}

/// Scans the whole table in a loop.
struct FullScan<'t> {
    table: &'t Table,
    range: Option<larch::Range>,
}

impl FullScan<'_> {
    fn advance(&mut self, rows: u64) -> Result<(), Failure> {
        for _ in 0..rows {
            let range = self.range.get_or_insert_with(|| self.table.range(..));
            if range.next_row().map_err(broken)?.is_none() {
                self.range = None;
            }
        }
        Ok(())
    }
}

//! `larch demo`: makes a database with known rows, reads the rows back, and reports how long this took.

use crate::args::{Common, Demo};
use crate::commands::stats::Stats;
use crate::database;
use crate::demo_rows;
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use crate::progress::Progress;
use crate::schema::{Format, Schema};
use crate::size;
use larch::stats::PageKind;
use larch::{Budget, Database, Table, TableOptions};
use os::{Clock, Machine};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The table of a demo. A database is a demo if this is its only table, and the schema of the table names [`MAKER`]
/// as its maker.
const TABLE: &str = "demo";
const MAKER: &str = "larch demo";
/// The seed from which rows are made. The seed is constant, so the rows are the same on every run.
const SEED: u64 = 1;
/// Enough reads to fill a cache of 64 MiB and go on with a full cache. A disk does them in seconds.
const READS: u64 = 100_000;
/// The name of the step that opens the database, the only step that processes no rows.
const OPEN: &str = "open";
/// The number of rows between two updates of the progress.
const STRIDE: u64 = 4096;

/// What the demo did.
#[derive(Serialize)]
struct Report {
    dir: String,
    rows: u64,
    row_bytes: u64,
    made: bool,
    cache_bytes: u64,
    write_buffer_bytes: u64,
    stats: Stats,
    steps: Vec<Step>,
    /// The cache at the end of the demo.
    cache: Cache,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
}

/// What the cache contains.
#[derive(Serialize)]
struct Cache {
    used_bytes: u64,
    index_bytes: u64,
    data_bytes: u64,
}

/// One step of the demo.
#[derive(Serialize)]
struct Step {
    what: &'static str,
    rows: u64,
    seconds: f64,
    rows_per_second: u64,
    page_reads: u64,
    index_reads: u64,
    data_reads: u64,
    reads_per_row: f64,
    data_hits: u64,
    read_bytes: u64,
}

/// Runs the command.
pub fn run(common: &Common, args: &Demo) -> Result<()> {
    // The demo shows what becomes of a table that does not fit into the cache, whatever is free.
    let mut common = common.clone();
    common.cache = Budget::fixed(common.cache.least_bytes());
    let common = &common;
    let disk = Machine::real().disk;
    let look = |error| CommandFailure::Input(format!("{error}; choose another directory"));
    let is_vacant = !disk.exists(&args.dir).map_err(look)? || disk.list(&args.dir).map_err(look)?.is_empty();
    let found = if is_vacant { Found::Nothing } else { look_at(common, &args.dir)? };
    let mut steps = Vec::new();
    let made = match found {
        Found::Demo(rows) if rows == args.rows && !args.recreate => false,
        Found::Demo(rows) if rows > 0 && !args.recreate => {
            return Err(CommandFailure::Usage(format!(
                "{} is a demo of {}; give --rows {rows} to read it, or --recreate to make it again",
                args.dir.display(),
                size::of(rows, "row")
            )));
        }
        Found::Demo(_) => {
            remove_files(&args.dir)?;
            true
        }
        Found::Nothing => true,
    };
    if made {
        steps.push(make(common, args)?);
    }
    let mut watch = Stopwatch::start();
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, TABLE)?;
    steps.push(watch.step(OPEN, 1, &database));
    read_at_random(&table, args.rows, "reading at random")?;
    steps.push(watch.step("read at random", READS, &database));
    read_at_random(&table, args.rows, "reading them again")?;
    steps.push(watch.step("the same again", READS, &database));
    read_in_order(&table, args.rows)?;
    steps.push(watch.step("scan", args.rows, &database));

    let report = Report {
        dir: args.dir.display().to_string(),
        rows: args.rows,
        row_bytes: args.rows * (demo_rows::KEY_BYTES + demo_rows::VALUE_BYTES) as u64,
        made,
        cache_bytes: common.cache.least_bytes(),
        write_buffer_bytes: common.write_buffer,
        stats: Stats::of(&table)?,
        steps,
        cache: Cache::of(&database),
        peak_memory_bytes: os::process::memory().peak_resident_bytes,
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?
    } else {
        print(&report, &mut output)?
    }
    output.finish()
}

fn print(report: &Report, output: &mut Output) -> Result<()> {
    let stats = &report.stats;
    let mut row = |name: &str, text: String| output.line(format!("{name:<16}{text}"));
    row("database", format!("{}{}", report.dir, if report.made { "" } else { ", made by an earlier run" }))?;
    row("rows", format!("{}, {} of keys and values", size::count(report.rows), size::bytes(report.row_bytes)))?;
    row("data", stats.data())?;
    row("index", stats.index())?;
    row("files", format!("{}, {}", size::count(stats.files), size::bytes(stats.file_bytes)))?;
    let memory =
        report.peak_memory_bytes.map_or(String::new(), |peak| format!(", peak of the process {}", size::bytes(peak)));
    let (cache, buffer) = (size::bytes(report.cache_bytes), size::bytes(report.write_buffer_bytes));
    row("memory", format!("cache {cache}, write buffer {buffer}{memory}"))?;
    let cells = |cells: [String; 9]| -> String {
        let widths = [15, 11, 9, 11, 12, 11, 10, 11, 8];
        let pad = |(at, (cell, width)): (usize, (&String, usize))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        };
        cells.iter().zip(widths).enumerate().map(pad).collect()
    };
    let heads = ["step", "rows", "time", "rows/s", "index reads", "data reads", "reads/row", "read", "cached"];
    output.line(format!("\n{}", cells(heads.map(str::to_string))))?;
    for step in &report.steps {
        let asked = step.data_reads + step.data_hits;
        let when = |holds: bool, text: String| if holds { text } else { "-".to_string() };
        let is_rows = step.what != OPEN;
        output.line(cells([
            step.what.to_string(),
            when(is_rows, size::count(step.rows)),
            size::seconds(Duration::from_secs_f64(step.seconds)),
            when(is_rows, size::count(step.rows_per_second)),
            size::count(step.index_reads),
            size::count(step.data_reads),
            when(is_rows, format!("{:.3}", step.reads_per_row)),
            size::bytes(step.read_bytes),
            when(asked > 0, format!("{:.1} %", 100.0 * step.data_hits as f64 / asked.max(1) as f64)),
        ]))?;
    }
    let Cache { used_bytes, index_bytes, data_bytes } = report.cache;
    output.line("\nindex reads, data reads: pages read from disk; cached: data pages found in memory instead")?;
    output.line(format!(
        "The cache ends with {} of {}: {} of index, {} of data. Every row read was the row written.",
        size::bytes(used_bytes),
        size::bytes(report.cache_bytes),
        size::bytes(index_bytes),
        size::bytes(data_bytes)
    ))
}

impl Cache {
    fn of(database: &Database) -> Self {
        let metrics = database.metrics();
        let bytes = |kinds: &[PageKind]| kinds.iter().map(|kind| metrics.cached_bytes(*kind)).sum();
        Self {
            used_bytes: metrics.cache.used_bytes,
            index_bytes: bytes(&[PageKind::Index, PageKind::Flat]),
            data_bytes: bytes(&[PageKind::Data, PageKind::Value]),
        }
    }
}

/// The content of a directory.
enum Found {
    /// No file, or a database without tables: an earlier run was stopped before it made the table.
    Nothing,
    /// A demo with this many rows; 0 if an earlier run was stopped while it made them.
    Demo(u64),
}

/// Looks for a demo in a directory. Refuses a directory with anything else in it, so that no other data is touched.
fn look_at(common: &Common, dir: &Path) -> Result<Found> {
    let refuse = |why: String| {
        CommandFailure::Usage(format!(
            "{} {why}, so it is left alone; choose a directory that is not there yet",
            dir.display()
        ))
    };
    let database = common
        .builder(dir)?
        .create(false)
        .open()
        .map_err(|error| refuse(format!("holds files that cannot be opened as a database ({error})")))?;
    let names = database.tables();
    if names.is_empty() {
        return Ok(Found::Nothing);
    }
    let ours = match database.existing_table(TABLE)? {
        Some(table) if names.len() == 1 => {
            database::schema(&table)?.is_some_and(|schema| is_demo(&schema)).then_some(table)
        }
        _ => None,
    };
    let Some(table) = ours else {
        return Err(refuse(format!("is a database with other tables than a demo's ({})", names.join(", "))));
    };
    Ok(Found::Demo(table.stats()?.rows))
}

fn is_demo(schema: &Schema) -> bool {
    schema.made_by.as_deref() == Some(MAKER)
}

/// Removes the files and folders of a demo.
fn remove_files(dir: &Path) -> Result<()> {
    let disk = Machine::real().disk;
    let remove = || {
        for entry in disk.list(dir)? {
            let path = dir.join(&entry.name);
            if disk.remove(&path).is_err() {
                for inner in disk.list(&path)? {
                    disk.remove(&path.join(&inner.name))?;
                }
                disk.remove_dir(&path)?;
            }
        }
        disk.sync_dir(dir)
    };
    remove().map_err(|error| CommandFailure::Input(format!("{error}; remove {} yourself", dir.display())))
}

/// Makes the rows in the order of their numbers. This is not the order of their keys.
fn make(common: &Common, args: &Demo) -> Result<Step> {
    let mut watch = Stopwatch::start();
    let database = database::open_or_create(&args.dir, common)?;
    let key = ["1".parse().expect("a column's number")];
    let mut schema = Schema::new(Format::Tsv, Vec::new(), &key).expect("a numbered column needs no header");
    schema.made_by = Some(MAKER.to_string());
    let options = TableOptions { metadata: schema.to_metadata(), ..TableOptions::default() };
    let table = database.table_with(TABLE, options)?;
    let mut import = table.import()?;
    let mut making = Progress::items("making rows", args.rows);
    for number in 0..args.rows {
        let key = demo_rows::key(SEED, number);
        import.add(&key[..], &demo_rows::value(&key)[..])?;
        if number % STRIDE == 0 {
            making.set(number);
        }
    }
    drop(making);
    let mut writing = Progress::bytes("writing files", 0);
    import.finish(|at| writing.set_of(at.done, at.total))?;
    drop(writing);
    let step = watch.step("import", args.rows, &database);
    drop(table);
    database.close()?;
    Ok(step)
}

fn read_at_random(table: &Table, rows: u64, what: &'static str) -> Result<()> {
    let mut progress = Progress::items(what, READS);
    for read in 0..READS {
        let key = demo_rows::key(SEED, demo_rows::mix(read ^ SEED << 32) % rows);
        let value = table.get(&key[..])?;
        if value.as_deref() != Some(&demo_rows::value(&key)[..]) {
            return Err(wrong(&key, if value.is_some() { "has another value than was written" } else { "is missing" }));
        }
        if read % STRIDE == 0 {
            progress.set(read);
        }
    }
    Ok(())
}

fn read_in_order(table: &Table, rows: u64) -> Result<()> {
    let mut progress = Progress::items("scanning", rows);
    let mut last = [0; demo_rows::KEY_BYTES];
    let mut found = 0;
    for row in table.iter() {
        let (key, value) = row?;
        if key[..] <= last[..] || key.len() != last.len() {
            return Err(wrong(&key, "is out of order"));
        }
        if value[..] != demo_rows::value(&key) {
            return Err(wrong(&key, "has another value than was written"));
        }
        last.copy_from_slice(&key);
        found += 1;
        if found % STRIDE == 0 {
            progress.set(found);
        }
    }
    if found != rows {
        return Err(CommandFailure::Input(format!(
            "a scan found {found} of {rows} rows; run larch check on the database"
        )));
    }
    Ok(())
}

fn wrong(key: &[u8], what: &str) -> CommandFailure {
    CommandFailure::Input(format!("the row with key {} {what}; run larch check on the database", key.escape_ascii()))
}

/// What a database has counted about pages since it was opened.
#[derive(Clone, Copy, Default)]
struct Pages {
    reads: u64,
    index_reads: u64,
    data_reads: u64,
    data_hits: u64,
    read_bytes: u64,
}

impl Pages {
    fn of(database: &Database) -> Self {
        let metrics = database.metrics();
        Self {
            reads: metrics.page_reads,
            index_reads: metrics.index_page_reads,
            data_reads: metrics.data_page_reads,
            data_hits: metrics.pages.of_kind(PageKind::Data).hits,
            read_bytes: metrics.page_read_bytes,
        }
    }
}

/// Measures the time and the pages between one step and the next.
struct Stopwatch {
    clock: Arc<dyn Clock>,
    started: Duration,
    pages: Pages,
}

impl Stopwatch {
    fn start() -> Self {
        let clock = Machine::real().clock;
        Self { started: clock.now(), clock, pages: Pages::default() }
    }

    fn step(&mut self, what: &'static str, rows: u64, database: &Database) -> Step {
        let (now, pages) = (self.clock.now(), Pages::of(database));
        let time = now.saturating_sub(self.started);
        let step = Step {
            what,
            rows,
            seconds: time.as_secs_f64(),
            rows_per_second: size::rate(rows, time),
            page_reads: pages.reads - self.pages.reads,
            index_reads: pages.index_reads - self.pages.index_reads,
            data_reads: pages.data_reads - self.pages.data_reads,
            reads_per_row: (pages.reads - self.pages.reads) as f64 / rows as f64,
            data_hits: pages.data_hits - self.pages.data_hits,
            read_bytes: pages.read_bytes - self.pages.read_bytes,
        };
        (self.started, self.pages) = (now, pages);
        step
    }
}

//! `larch import`: puts the rows of a file into a table, all of them or none.

use crate::args::{Common, Import, InputArgs, ScanFormat, TableArgs};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::file_name::FileName;
use crate::input::{Input, NOTHING_KEPT};
use crate::interrupt::Interrupt;
use crate::layout::{Layout, Row};
use crate::new_database::{with_database, with_table};
use crate::output::Output;
use crate::progress::Progress;
use crate::rows::Rows;
use crate::schema::groups::GroupSpec;
use crate::schema::{Format, KeyColumn, Schema};
use crate::size;
use crate::storage::Storage;
use larch::bulk::ImportReport;
use larch::{Database, Table, TableOptions};
use os::Machine;
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The most bytes of keys and values that an import puts into a table with indexes.
const MOST_OF_COMMIT: usize = 256 << 20;
/// The number of rows between two updates of the progress.
const STRIDE: u64 = 4096;

/// How rows were sorted and written to files.
#[derive(Serialize)]
pub struct SortingWork {
    /// The number of rows, including rows whose key came again later.
    pub rows_read: u64,
    pub rows: u64,
    pub bytes: u64,
    files: u64,
    sorted: bool,
    runs: u64,
    seconds: f64,
    pub rows_per_second: u64,
}

impl SortingWork {
    /// The result of an import that has read `rows_read` rows and has taken the time `time`.
    pub fn new(rows_read: u64, done: &ImportReport, time: Duration) -> Self {
        Self {
            rows_read,
            rows: done.rows,
            bytes: done.bytes,
            files: done.files,
            sorted: done.sorted,
            runs: done.runs,
            seconds: time.as_secs_f64(),
            rows_per_second: size::rate(rows_read, time),
        }
    }

    /// Prints it as text for people.
    pub fn print(&self, output: &mut Output) -> Result<()> {
        self.print_repeats(output)?;
        let order =
            if self.sorted { "in order".to_string() } else { format!("sorted in {}", size::of(self.runs, "run")) };
        let peak = os::process::memory().peak_resident_bytes;
        let memory = peak.map_or(String::new(), |peak| format!(", peak memory {}", size::bytes(peak)));
        output.line(format!("{order}, {} written{memory}", size::of(self.files, "file")))
    }

    /// Prints how many rows had a key that came again, if there were any.
    fn print_repeats(&self, output: &mut Output) -> Result<()> {
        if self.rows == self.rows_read {
            return Ok(());
        }
        let again = size::of(self.rows_read - self.rows, "row");
        output.line(format!("{again} had a key that came again later; the last row of a key stays"))
    }
}

/// What was imported.
#[derive(Serialize)]
struct Report<'r> {
    table: &'r str,
    file: &'r str,
    #[serde(flatten)]
    work: SortingWork,
    /// The indexes that got the rows, too.
    indexes: &'r [String],
    /// The peak memory, which is missing if the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
}

/// Runs the command.
pub fn run(common: &Common, args: &Import) -> Result<()> {
    let clock = Machine::real().clock;
    let started = clock.now();
    let (mut reading, format) = Reading::open(&args.input, &args.file, NOTHING_KEPT)?;
    let name = reading.name.clone();

    let mut indexes = Vec::new();
    let (schema, rows_read, done) = with_database(&args.dir, common, |database| {
        let existing = filled_table(database, &args.table)?;
        let schema = schema(&args.input, &reading, format, existing.as_ref())?;
        let (rows_read, done) = match existing {
            Some(table) => {
                same_options(&args.table_options, &table.options(), &args.table)?;
                indexes = table.indexes()?;
                match &indexes[..] {
                    [] => fill(&table, &schema, &mut reading)?,
                    indexes => commit(database, &table, indexes, &schema, &mut reading)?,
                }
            }
            None => with_table(database, &args.table, options(&args.table_options, &schema)?, |table| {
                fill(table, &schema, &mut reading)
            })?,
        };
        Ok((schema, rows_read, done))
    })?;

    let time = clock.now().saturating_sub(started);
    let report = Report {
        table: &args.table,
        file: &name,
        work: SortingWork::new(rows_read, &done, time),
        indexes: &indexes,
        peak_memory_bytes: os::process::memory().peak_resident_bytes,
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?
    } else {
        print(&report, &schema, time, &mut output)?
    }
    output.finish()
}

/// The table, or `None` if the caller may make it: it does not exist, or it has neither rows nor indexes and does
/// not belong to another program. Such a table may have been made for another kind of rows, for example by an
/// import that was killed, so it is made again.
pub fn filled_table(database: &Database, name: &str) -> Result<Option<Table>> {
    let Some(table) = database.existing_table(name)? else { return Ok(None) };
    let TableOptions { metadata, groups, .. } = table.options();
    let is_ours = metadata.is_empty() && groups.is_empty() || database::schema(&table)?.is_some();
    let is_free = is_ours && table.indexes()?.is_empty() && database::keys(&table)?.first_key_value()?.is_none();
    Ok(Some(table).filter(|_| !is_free))
}

/// The rows of an input, and a progress bar. The bar counts the bytes that were read if the size of the input is
/// known, and otherwise the rows.
pub struct Reading {
    /// The name of the input in messages.
    pub name: String,
    rows: Rows,
    progress: Progress,
    bytes: Option<Rc<Cell<u64>>>,
    /// The end of an error message, which says what a failure leaves in the database.
    kept: &'static str,
}

impl Reading {
    /// Opens a file and determines its format.
    pub fn open(args: &InputArgs, file: &Path, kept: &'static str) -> Result<(Self, Format)> {
        let format = format(args, file)?;
        let header = header(args, format)?;
        let input = Input::open(file)?.not_empty(kept)?;
        let (name, bytes, read) = (input.name.clone(), input.bytes, input.read.clone());
        let rows = Rows::new(input, format, header, kept)?;
        let (progress, bytes) = match bytes {
            Some(bytes) => (Progress::bytes("reading", bytes), Some(read)),
            None => (Progress::endless("rows read"), None),
        };
        Ok((Self { name, rows, progress, bytes, kept }, format))
    }

    /// Passes all rows to `add` and returns their number.
    pub fn read(&mut self, schema: &Schema, add: &mut dyn FnMut(&Row) -> larch::Result<()>) -> Result<u64> {
        let layout = Layout::new(Some(schema.clone()));
        let mut row = Row::default();
        let mut rows_read = 0;
        while self.rows.next(&layout, &mut row)? {
            add(&row).map_err(|error| CommandFailure::Write { at: self.rows.place(), error, kept: self.kept })?;
            rows_read += 1;
            if rows_read % STRIDE == 0 {
                self.progress.set(self.bytes.as_ref().map_or(rows_read, |bytes| bytes.get()));
            }
        }
        self.progress.clear();
        Ok(rows_read)
    }
}

/// Puts all rows into the table, or none of them, and returns their number.
fn fill(table: &Table, schema: &Schema, reading: &mut Reading) -> Result<(u64, ImportReport)> {
    let interrupt = Interrupt::caught();
    let mut import = table.import()?;
    let rows_read = reading.read(schema, &mut |row| {
        interrupt.check("the import")?;
        match &row.parts[..] {
            [value] => import.add(&row.key, value),
            parts => import.add_parts(&row.key, parts),
        }
    })?;
    let mut writing = Progress::bytes("writing", 0);
    let done = import.finish(writing.until(&interrupt));
    let failed = |error| CommandFailure::Write { at: format!("table {}", table.name()), error, kept: NOTHING_KEPT };
    Ok((rows_read, done.map_err(failed)?))
}

/// Puts all rows into a table with indexes, or none of them, and returns their number. The indexes change with the rows
/// in one commit, so all rows are in memory until then.
fn commit(
    database: &Database,
    table: &Table,
    indexes: &[String],
    schema: &Schema,
    reading: &mut Reading,
) -> Result<(u64, ImportReport)> {
    let interrupt = Interrupt::caught();
    let mut rows: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    let mut bytes = 0;
    let rows_read = reading.read(schema, &mut |row| {
        interrupt.check("the import")?;
        bytes += row.key.len() + row.parts.iter().map(Vec::len).sum::<usize>();
        if bytes <= MOST_OF_COMMIT {
            rows.insert(row.key.clone(), row.parts.clone());
        }
        Ok(())
    })?;
    if bytes > MOST_OF_COMMIT {
        return Err(CommandFailure::Input(format!(
            "table {} has indexes ({}), and its rows go in by one commit in memory, which may have {}; the input has {} of rows: \
             load it in pieces with larch load --batch 1000, or drop the indexes, import it and create them again; {NOTHING_KEPT}",
            table.name(),
            indexes.join(", "),
            size::bytes(MOST_OF_COMMIT as u64),
            size::bytes(bytes as u64)
        )));
    }
    let failed = |error| CommandFailure::Write { at: format!("table {}", table.name()), error, kept: NOTHING_KEPT };
    let mut batch = database.batch();
    for (key, parts) in &rows {
        batch.insert_parts(table, key, parts);
    }
    interrupt.check("the import")?;
    batch.commit().map_err(failed)?;
    let bytes = bytes as u64;
    let done = ImportReport { rows: rows.len() as u64, user_bytes: bytes, bytes, files: 0, sorted: false, runs: 0 };
    Ok((rows_read, done))
}

fn print(report: &Report<'_>, schema: &Schema, time: Duration, output: &mut Output) -> Result<()> {
    let work = &report.work;
    output.line(format!("table {}: {schema}", report.table))?;
    output.line(format!(
        "imported {} ({}) from {} in {}, {} rows/s",
        size::of(work.rows, "row"),
        size::bytes(work.bytes),
        report.file,
        size::seconds(time),
        size::count(work.rows_per_second)
    ))?;
    if !report.indexes.is_empty() {
        work.print_repeats(output)?;
        return output.line(format!("in one commit, which indexes keep: {}", report.indexes.join(", ")));
    }
    work.print(output)
}

/// The format that was given, or the format that the file's name suggests.
fn format(args: &InputArgs, file: &Path) -> Result<Format> {
    let named = match FileName::of(file)?.format {
        Some(ScanFormat::Csv) => Some(Format::Csv),
        Some(ScanFormat::Tsv) => Some(Format::Tsv),
        Some(ScanFormat::Jsonl) => Some(Format::Jsonl),
        Some(ScanFormat::Arrow | ScanFormat::Parquet) if args.format.is_none() => {
            return Err(CommandFailure::Usage(format!(
                "{}: larch writes such files, but does not import them; larch sql reads Parquet and Arrow files, see \
                 docs/guide/sql.md",
                file.display()
            )));
        }
        Some(ScanFormat::Arrow | ScanFormat::Parquet) | None => None,
    };
    args.format.or(named).ok_or_else(|| {
        CommandFailure::Usage(format!(
            "what is {}? Its name ends in none of .csv, .tsv and .jsonl; say --format csv, --format tsv or --format jsonl",
            file.display()
        ))
    })
}

/// Whether the input has a header. By default, CSV has one and TSV has none; JSON lines never have one.
fn header(args: &InputArgs, format: Format) -> Result<bool> {
    match format {
        Format::Jsonl if args.header => Err(CommandFailure::Usage(
            "JSON lines have no header: their members have names; leave --header out".to_string(),
        )),
        Format::Jsonl => Ok(false),
        Format::Csv => Ok(!args.no_header),
        Format::Tsv => Ok(args.header),
    }
}

/// The schema of the input. If the table exists, its schema must be the same.
pub fn schema(args: &InputArgs, reading: &Reading, format: Format, existing: Option<&Table>) -> Result<Schema> {
    let Reading { name: input, rows, kept, .. } = reading;
    let theirs = existing.map(database::schema).transpose()?;
    let alike = theirs.as_ref().and_then(Option::as_ref).filter(|theirs| theirs.format == format);
    let wrong = |why| CommandFailure::Input(format!("{input}: {why}; {kept}"));
    let columns = rows.columns().to_vec();
    let ours = match alike {
        _ if !args.key.is_empty() => Schema::new(format, columns, &args.key).map_err(wrong)?,
        Some(theirs) => Schema::with_key(format, columns, theirs.key.clone()),
        None if format == Format::Jsonl => {
            return Err(CommandFailure::Usage("JSON members have no order: name the key, as in --key id".to_string()));
        }
        None => Schema::with_key(format, columns, vec![KeyColumn::first()]),
    };
    let ours = grouped(ours, &args.groups, alike).map_err(wrong)?;
    let (Some(table), Some(theirs)) = (existing, &theirs) else { return Ok(ours) };
    if theirs.as_ref() != Some(&ours) {
        let theirs = database::rows(table, theirs.as_ref());
        return Err(CommandFailure::Input(format!(
            "table {} holds {theirs}, but {input} would give {ours}; import into another table, or give the same \
             --format, --header, --key and --groups; {kept}",
            table.name()
        )));
    }
    Ok(ours)
}

/// The schema with the groups that were asked for. If no groups were asked for and a table of such rows exists,
/// the schema gets the groups of this table.
fn grouped(ours: Schema, asked: &[GroupSpec], theirs: Option<&Schema>) -> Result<Schema, String> {
    match theirs {
        _ if !asked.is_empty() => ours.with_groups(asked),
        Some(theirs) => Ok(ours.with_groups_of(theirs.groups.clone())),
        None => Ok(ours),
    }
}

/// Refuses options that differ from those of the existing table, because an import does not change how a table is
/// kept.
fn same_options(args: &TableArgs, options: &TableOptions, table: &str) -> Result<()> {
    let mut asked = options.clone();
    args.apply(&mut asked)?;
    if asked == *options {
        return Ok(());
    }
    Err(CommandFailure::Usage(format!(
        "table {table} has {}; leave the options out, or change the table first with larch alter",
        Storage::from(options)
    )))
}

/// The options for a new table of rows with the schema `schema`.
pub fn options(args: &TableArgs, schema: &Schema) -> Result<TableOptions> {
    let (metadata, groups) = (schema.to_metadata(), schema.group_names());
    let mut options = TableOptions { metadata, groups, ..TableOptions::default() };
    args.apply_to_new(&mut options)?;
    Ok(options)
}

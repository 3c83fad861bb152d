//! `larch explain`: shows what a read costs.

use crate::args::{Common, Explain, ExplainedGet, ExplainedRead, ExplainedScan};
use crate::commands::scan;
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::index_text;
use crate::layout::Layout;
use crate::output::Output;
use larch::explain::{Explained, ExplainedFile, ExplainedLevel, ExplainedPages, Explanation, PageVisit};
use larch::rows::Direction;
use larch::{Index, Table};
use serde::Serialize;
use std::ops::Bound;

/// Runs the command. A read of a key without a row is explained, too; the command does not fail.
pub fn run(common: &Common, args: &Explain) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    if let ExplainedRead::Scan(read) = &args.read
        && let Some(name) = &read.by
    {
        return by_index(&database::index(&table, name)?, read);
    }
    let types = match &args.read {
        ExplainedRead::Get(read) => &read.types,
        ExplainedRead::Scan(read) => &read.range.types,
    };
    let layout = database::layout(&table, types)?;
    let (explanation, how) = match &args.read {
        ExplainedRead::Get(read) => (get(&table, &layout, read)?, &read.how),
        ExplainedRead::Scan(read) => (scan(&table, &layout, read)?, &read.how),
    };
    let mut output = Output::new();
    match how.json {
        true => output.json(&Report::new(table.name(), &explanation))?,
        false => output.write(|line| line.extend_from_slice(explanation.to_string().as_bytes()))?,
    }
    output.finish()
}

/// Explains reading rows in the order of an index.
fn by_index(index: &Index, read: &ExplainedScan) -> Result<()> {
    let (range, limit) = match scan::bounds(&read.range, |text| index_text::bound(index, text))? {
        Some(range) => (range, read.limit),
        None => ((Bound::Unbounded, Bound::Excluded(Vec::new())), Some(0)),
    };
    let direction = if read.reverse { Direction::Backward } else { Direction::Forward };
    let explanation = index.explain_range_by(range, limit, direction)?;
    let mut output = Output::new();
    if read.how.json {
        output.json(&ReportByIndex {
            index: index.name(),
            rounds: explanation.rounds(),
            entries: Report::new(index.table().name(), &explanation.entries),
            rows: Report::new(index.table().name(), &explanation.rows),
        })?;
    } else {
        output.write(|line| line.extend_from_slice(explanation.to_string().as_bytes()))?;
    }
    output.finish()
}

/// [`larch::explain::ExplainedByIndex`] in a form that is printed as JSON.
#[derive(Serialize)]
struct ReportByIndex<'e> {
    /// The name of the index.
    index: &'e str,
    /// The rounds of waiting for the disk.
    rounds: u64,
    /// The read of the index entries.
    entries: Report<'e>,
    /// The look-ups of the rows.
    rows: Report<'e>,
}

fn get(table: &Table, layout: &Layout, read: &ExplainedGet) -> Result<Explanation> {
    let parts = database::parts(table, &read.how.groups)?;
    let key = layout.key_from_text(read.key.as_encoded_bytes()).map_err(CommandFailure::Usage)?;
    Ok(match database::selection(table, &parts)? {
        Some(selection) => selection.explain_get(&key[..])?,
        None => table.explain_get(&key[..])?,
    })
}

fn scan(table: &Table, layout: &Layout, read: &ExplainedScan) -> Result<Explanation> {
    let parts = database::parts(table, &read.how.groups)?;
    // If no key can lie in the requested range, the command says so and reads nothing.
    let (range, limit) = match scan::range(&read.range, layout)? {
        Some(range) => (range, read.limit),
        None => ((Bound::Unbounded, Bound::Excluded(Vec::new())), Some(0)),
    };
    let direction = if read.reverse { Direction::Backward } else { Direction::Forward };
    Ok(match database::selection(table, &parts)? {
        Some(selection) => selection.explain_scan(range, limit, direction)?,
        None => table.explain_scan(range, limit, direction)?,
    })
}

/// [`Explanation`] in a form that is printed as JSON.
#[derive(Serialize)]
struct Report<'e> {
    /// Name of the table.
    table: &'e str,
    /// The version at which the read was done.
    version: u64,
    /// `found`, `absent`, `erased` or `rows`.
    answer: &'static str,
    /// The number of rows that the read returned.
    rows: u64,
    /// The bytes of the returned rows' values.
    value_bytes: u64,
    /// The number of memtables that were searched.
    memtables: u64,
    /// The number of returned rows that were in memtables.
    memory_rows: u64,
    /// Rounds of waiting for the disk.
    rounds: u64,
    /// The number of pages that were read.
    page_reads: u64,
    /// The bytes of the pages that were read.
    read_bytes: u64,
    /// The number of pages that were found in memory.
    page_hits: u64,
    /// The levels that have files.
    levels: Vec<Level>,
    /// The files that were visited, in the order of the visits.
    files: Vec<File>,
    /// The first pages that were visited, in the order of the visits.
    visits: Vec<Visit>,
    /// The number of page visits that are not listed because they came after the listed ones.
    visits_left_out: u64,
}

#[derive(Serialize)]
struct Level {
    level: usize,
    files: u64,
    visited: u64,
    outside_bounds: u64,
    not_reached: u64,
}

#[derive(Serialize)]
struct File {
    level: Option<usize>,
    number: u64,
    rows: u64,
    bytes: u64,
    verdict: String,
    pages: Vec<Pages>,
}

#[derive(Serialize)]
struct Pages {
    kind: &'static str,
    hits: u64,
    faults: u64,
    ahead: u64,
    shared: u64,
    read_bytes: u64,
}

#[derive(Serialize)]
struct Visit {
    file: u64,
    kind: &'static str,
    level: u8,
    offset: u64,
    bytes: u64,
    found: &'static str,
    round: u64,
}

impl<'e> Report<'e> {
    fn new(table: &'e str, explanation: &Explanation) -> Self {
        let (answer, rows, value_bytes) = match explanation.answer {
            Explained::Found { value_bytes } => ("found", 1, value_bytes),
            Explained::Erased => ("erased", 0, 0),
            Explained::Rows { rows, value_bytes } => ("rows", rows, value_bytes),
            _ => ("absent", 0, 0),
        };
        Self {
            table,
            version: explanation.version.0,
            answer,
            rows,
            value_bytes,
            memtables: explanation.memtables,
            memory_rows: explanation.memory_rows,
            rounds: explanation.rounds,
            page_reads: explanation.page_reads(),
            read_bytes: explanation.read_bytes(),
            page_hits: explanation.page_hits(),
            levels: explanation.levels.iter().map(Level::new).collect(),
            files: explanation.files.iter().map(File::new).collect(),
            visits: explanation.visits.iter().map(Visit::new).collect(),
            visits_left_out: explanation.visits_left_out,
        }
    }
}

impl Level {
    fn new(from: &ExplainedLevel) -> Self {
        let ExplainedLevel { level, files, visited, outside_bounds, not_reached, .. } = *from;
        Self { level, files, visited, outside_bounds, not_reached }
    }
}

impl File {
    fn new(from: &ExplainedFile) -> Self {
        let ExplainedFile { level, number, rows, bytes, verdict, .. } = *from;
        Self {
            level,
            number,
            rows,
            bytes,
            verdict: verdict.to_string(),
            pages: from.pages.iter().map(Pages::new).collect(),
        }
    }
}

impl Pages {
    fn new(from: &ExplainedPages) -> Self {
        let ExplainedPages { kind, hits, faults, ahead, shared, read_bytes, .. } = *from;
        Self { kind: kind.name(), hits, faults, ahead, shared, read_bytes }
    }
}

impl Visit {
    fn new(from: &PageVisit) -> Self {
        let PageVisit { file, kind, level, offset, bytes, found, round, .. } = *from;
        Self { file, kind: kind.name(), level, offset, bytes, found: found.name(), round }
    }
}

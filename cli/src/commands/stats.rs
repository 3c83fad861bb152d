//! `larch stats`: how much a table holds and how it lies in files.

use crate::args::{Common, Inspect};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::size;
use larch::TableStats;
use serde::Serialize;

/// [`TableStats`] as a machine reads it.
#[derive(Serialize)]
pub struct Stats {
    /// Name of the table.
    pub table: String,
    /// Rows in files; a key in several files counts in each.
    pub rows: u64,
    /// Of these, those that say that a key was deleted.
    pub erased_rows: u64,
    /// Older versions of rows.
    pub history_rows: u64,
    /// Bytes of keys and values as they were written.
    pub user_bytes: u64,
    /// Data pages.
    pub data_pages: u64,
    /// Their bytes.
    pub data_bytes: u64,
    /// Bytes of all indexes.
    pub index_bytes: u64,
    /// Of these, trees.
    pub btree_bytes: u64,
    /// Of these, flat lists.
    pub flat_bytes: u64,
    /// Index bytes in a hundred data bytes.
    pub index_percent: f64,
    /// Index pages on the way to a data page, in the tallest file.
    pub index_height: u64,
    /// Bytes of older versions.
    pub history_bytes: u64,
    /// Bytes of large values, which lie outside data pages.
    pub value_bytes: u64,
    /// Bytes of erased ranges.
    pub range_erase_bytes: u64,
    /// Files.
    pub files: u64,
    /// Bytes of files.
    pub file_bytes: u64,
    /// Levels that have files.
    pub levels: Vec<Level>,
}

/// One level of a table's files.
#[derive(Serialize)]
pub struct Level {
    /// 0 is the newest.
    pub level: u64,
    /// Files on it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
}

impl Stats {
    /// Takes the engine's numbers.
    pub fn new(table: &str, stats: &TableStats) -> Self {
        Self {
            table: table.to_string(),
            rows: stats.rows,
            erased_rows: stats.erased_rows,
            history_rows: stats.history_rows,
            user_bytes: stats.user_bytes,
            data_pages: stats.data_pages,
            data_bytes: stats.data_bytes,
            index_bytes: stats.index_bytes,
            btree_bytes: stats.btree_bytes,
            flat_bytes: stats.flat_bytes,
            index_percent: 100.0 * stats.index_bytes as f64 / stats.data_bytes.max(1) as f64,
            index_height: stats.index_height as u64,
            history_bytes: stats.history_bytes,
            value_bytes: stats.value_bytes,
            range_erase_bytes: stats.range_erase_bytes,
            files: stats.files,
            file_bytes: stats.file_bytes,
            levels: stats
                .levels
                .iter()
                .map(|level| Level {
                    level: level.level as u64,
                    files: level.files,
                    bytes: level.bytes,
                    rows: level.rows,
                })
                .collect(),
        }
    }

    /// Data pages in a few words.
    pub fn data(&self) -> String {
        format!("{} in {}", size::bytes(self.data_bytes), size::of(self.data_pages, "page"))
    }

    /// The index in a few words.
    pub fn index(&self) -> String {
        let kinds = match (self.btree_bytes, self.flat_bytes) {
            (_, 0) => String::new(),
            (0, _) => ", flat".to_string(),
            (tree, flat) => format!(", tree {}, flat {}", size::bytes(tree), size::bytes(flat)),
        };
        format!(
            "{} ({:.3} % of data), {}{kinds}",
            size::bytes(self.index_bytes),
            self.index_percent,
            size::of(self.index_height, "level")
        )
    }
}

/// Runs the command.
pub fn run(common: &Common, args: &Inspect) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let mut output = Output::new();
    for table in database::tables(&database, &args.dir, args.table.as_deref())? {
        let stats = Stats::new(table.name(), &table.stats()?);
        if args.json { output.json(&stats)? } else { print(&stats, &mut output)? }
    }
    output.finish()
}

fn print(stats: &Stats, output: &mut Output) -> Result<()> {
    output.line(format!("table {}", stats.table))?;
    let mut row = |name: &str, text: String| output.line(format!("  {name:<14}{text}"));
    row("rows", format!("{}, {} of keys and values", size::count(stats.rows), size::bytes(stats.user_bytes)))?;
    if stats.erased_rows > 0 {
        row("of these", format!("{} of deletion", size::of(stats.erased_rows, "mark")))?;
    }
    row("data", stats.data())?;
    row("index", stats.index())?;
    if stats.history_rows > 0 {
        let rows = size::of(stats.history_rows, "older row");
        row("history", format!("{}, {rows}", size::bytes(stats.history_bytes)))?;
    }
    if stats.value_bytes > 0 {
        row("large values", size::bytes(stats.value_bytes))?;
    }
    if stats.range_erase_bytes > 0 {
        row("range erases", size::bytes(stats.range_erase_bytes))?;
    }
    row("files", format!("{}, {}", size::count(stats.files), size::bytes(stats.file_bytes)))?;
    for level in stats.levels.iter().filter(|level| level.files > 0) {
        let name = format!("  level {}", level.level);
        let files = size::of(level.files, "file");
        row(&name, format!("{files}, {}, {}", size::bytes(level.bytes), size::of(level.rows, "row")))?;
    }
    Ok(())
}

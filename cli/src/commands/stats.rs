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
    /// Rows in files, erased and older ones included where files overlap.
    pub rows: u64,
    /// Bytes of data pages.
    pub data_bytes: u64,
    /// Bytes of index nodes.
    pub index_bytes: u64,
    /// Index bytes in a hundred data bytes.
    pub index_percent: f64,
    /// Nodes between the root and a data page.
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
            data_bytes: stats.data_bytes,
            index_bytes: stats.index_bytes,
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

    /// The index in a few words.
    pub fn index(&self) -> String {
        format!(
            "{} ({:.3} % of data), {}",
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
    row("rows", size::count(stats.rows))?;
    row("data", size::bytes(stats.data_bytes))?;
    row("index", stats.index())?;
    row("history", size::bytes(stats.history_bytes))?;
    row("large values", size::bytes(stats.value_bytes))?;
    row("range erases", size::bytes(stats.range_erase_bytes))?;
    row("files", format!("{}, {}", size::count(stats.files), size::bytes(stats.file_bytes)))?;
    for level in stats.levels.iter().filter(|level| level.files > 0) {
        let name = format!("  level {}", level.level);
        let files = size::of(level.files, "file");
        row(&name, format!("{files}, {}, {}", size::bytes(level.bytes), size::of(level.rows, "row")))?;
    }
    Ok(())
}

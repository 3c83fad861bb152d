//! `larch stats`: prints how much a table contains, and how its content is stored in files.

pub mod range;

use super::subscribe;
use crate::args::{self, Common};
use crate::colours::{self, HEADING};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::layout::Layout;
use crate::output::Output;
use crate::size;
use larch::Table;
use larch::stats::{RangeStats, TableStats};
use range::Interval;
use serde::Serialize;
use std::ffi::OsStr;
use std::ops::Bound;

/// [`TableStats`] in a form that is printed as JSON.
#[derive(Serialize)]
pub struct Stats {
    /// Name of the table.
    pub table: String,
    /// The number of rows, in files and in memory, as an interval.
    pub rows: Interval,
    /// The newest version of each row in each file: a key that is in several files is counted once for each.
    pub stored_rows: u64,
    /// The number of erases in files.
    pub erased_rows: u64,
    /// The number of row versions in files that are not the newest version of their row.
    pub history_rows: u64,
    /// The versions that are not in files yet.
    pub memory_rows: u64,
    /// The memory of these versions.
    pub memory_bytes: u64,
    /// The bytes of keys and values as they were written.
    pub user_bytes: u64,
    /// The number of data pages. If the table has groups, only pages of the first group are counted.
    pub data_pages: u64,
    /// The bytes of these pages.
    pub data_bytes: u64,
    /// The bytes of all other groups.
    pub group_bytes: u64,
    /// The bytes of older versions in all other groups.
    pub group_history_bytes: u64,
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// Bytes of all indexes.
    pub index_bytes: u64,
    /// The part of the index bytes in B-trees.
    pub btree_bytes: u64,
    /// The part of the index bytes in flat indexes.
    pub flat_bytes: u64,
    /// Bytes of filters.
    pub filter_bytes: u64,
    /// The index bytes per hundred data bytes, including the index bytes of groups.
    pub index_percent: f64,
    /// The number of index pages that a read in the tallest file passes on its way to a data page.
    pub index_height: u64,
    /// Bytes of older versions.
    pub history_bytes: u64,
    /// Bytes of large values, which lie outside data pages.
    pub value_bytes: u64,
    /// The bytes that describe erased ranges.
    pub range_erase_bytes: u64,
    /// Files.
    pub files: u64,
    /// Bytes of files.
    pub file_bytes: u64,
    /// About how many of the file bytes are rows that the table does not see. All other sizes count whole files.
    pub unseen_bytes: u64,
    /// Levels that have files.
    pub levels: Vec<Level>,
    /// The memory of cached index pages.
    pub cached_index_bytes: u64,
    /// The memory of cached data pages of all groups.
    pub cached_data_bytes: u64,
    /// The memory of cached pages with older versions.
    pub cached_history_bytes: u64,
    /// The memory of cached filters.
    pub cached_filter_bytes: u64,
}

/// One group of a table's columns.
#[derive(Serialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The bytes of the group's newest versions, including the keys in the first group.
    pub data_bytes: u64,
    /// The bytes of the group's older versions.
    pub history_bytes: u64,
}

/// One level of a table's files.
#[derive(Serialize)]
pub struct Level {
    /// The number of the level; 0 is the newest level.
    pub level: u64,
    /// Files on it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The versions of rows in these files.
    pub rows: u64,
}

impl Stats {
    /// What the engine knows about a table.
    pub fn of(table: &Table) -> Result<Self> {
        Ok(Self::new(table.name(), &table.stats()?, &table.range_stats(..)?))
    }

    /// From the engine's numbers for the files and for the range of all keys.
    fn new(table: &str, stats: &TableStats, all: &RangeStats) -> Self {
        Self {
            table: table.to_string(),
            rows: all.rows.into(),
            stored_rows: stats.rows,
            memory_rows: all.memory_rows,
            memory_bytes: all.memory_bytes,
            erased_rows: stats.erased_rows,
            history_rows: stats.history_rows,
            user_bytes: stats.user_bytes,
            data_pages: stats.data_pages,
            data_bytes: stats.data_bytes,
            group_bytes: stats.group_bytes,
            group_history_bytes: stats.group_history_bytes,
            groups: stats
                .groups
                .iter()
                .map(|group| Group {
                    name: group.name.clone(),
                    data_bytes: group.data_bytes,
                    history_bytes: group.history_bytes,
                })
                .collect(),
            index_bytes: stats.index_bytes,
            btree_bytes: stats.btree_bytes,
            flat_bytes: stats.flat_bytes,
            filter_bytes: stats.filter_bytes,
            index_percent: 100.0 * stats.index_bytes as f64 / (stats.data_bytes + stats.group_bytes).max(1) as f64,
            index_height: stats.index_height as u64,
            history_bytes: stats.history_bytes,
            value_bytes: stats.value_bytes,
            range_erase_bytes: stats.range_erase_bytes,
            files: stats.files,
            file_bytes: stats.file_bytes,
            unseen_bytes: stats.unseen_bytes,
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
            cached_index_bytes: stats.cached_index_bytes,
            cached_data_bytes: stats.cached_data_bytes,
            cached_history_bytes: stats.cached_history_bytes,
            cached_filter_bytes: stats.cached_filter_bytes,
        }
    }

    /// The data of all groups in a few words.
    pub fn data(&self) -> String {
        let bytes = size::bytes(self.data_bytes + self.group_bytes);
        if self.groups.len() > 1 {
            return format!("{bytes} in {}", size::of(self.groups.len() as u64, "group"));
        }
        format!("{bytes} in {}", size::of(self.data_pages, "page"))
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

    /// The memory of cached pages in a few words; `None` if nothing is cached.
    fn cached(&self) -> Option<String> {
        let all = [
            ("index", self.cached_index_bytes),
            ("data", self.cached_data_bytes),
            ("history", self.cached_history_bytes),
            ("filters", self.cached_filter_bytes),
        ];
        let some = all.iter().filter(|(_, bytes)| *bytes > 0);
        let words: Vec<String> = some.map(|(name, bytes)| format!("{name} {}", size::bytes(*bytes))).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Runs the command.
pub fn run(common: &Common, args: &args::Stats) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let mut output = Output::new();
    for table in database::tables(&database, &args.dir, args.table.as_deref())? {
        if args.is_of_range() {
            if !args.json {
                output.line(colours::styled(HEADING, &format!("table {}", table.name())))?;
            }
            range::run(&table, args, &mut output)?;
            continue;
        }
        let stats = Stats::of(&table)?;
        if args.json {
            output.json(&stats)?;
        } else {
            print(&stats, &mut |line| output.line(line))?;
        }
    }
    if args.table.is_none() && !args.json && !args.is_of_range() {
        let lines = subscribe::lines(&database);
        if !lines.is_empty() {
            output.line(colours::styled(HEADING, "subscriptions"))?;
        }
        lines.into_iter().try_for_each(|line| output.line(format!("  {line}")))?;
    }
    output.finish()
}

/// A range of keys: its lower and its upper bound.
pub type Keys = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys that were asked for with `--from` and `--to`.
pub fn keys_between(layout: &Layout, from: Option<&OsStr>, to: Option<&OsStr>) -> Result<Keys> {
    let bound = |flag: &str, text: Option<&OsStr>| {
        let bound = text.map(|text| layout.bound_from_text(text.as_encoded_bytes())).transpose();
        bound.map_err(|why| CommandFailure::Usage(why).of_flag(flag))
    };
    let (from, to) = (bound("--from", from)?, bound("--to", to)?);
    Ok((from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded)))
}

fn print(stats: &Stats, line: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
    line(colours::styled(HEADING, &format!("table {}", stats.table)))?;
    let mut row = |name: &str, text: String| line(format!("  {name:<14}{text}"));
    let user_bytes = format!("{} of keys and values", size::bytes(stats.user_bytes));
    if stats.rows.is_exactly(stats.stored_rows) {
        row("rows", format!("{}, {user_bytes}", size::count(stats.stored_rows)))?;
    } else {
        row("rows", stats.rows.to_string())?;
        row("in files", format!("{}, {user_bytes}", size::of(stats.stored_rows, "version")))?;
    }
    if stats.erased_rows > 0 {
        row("of these", format!("{} of deletion", size::of(stats.erased_rows, "mark")))?;
    }
    row("data", stats.data())?;
    for Group { name, data_bytes, history_bytes } in &stats.groups {
        let history = match history_bytes {
            0 => String::new(),
            bytes => format!(", history {}", size::bytes(*bytes)),
        };
        row("  group", format!("{name}: {}{history}", size::bytes(*data_bytes)))?;
    }
    row("index", stats.index())?;
    if stats.filter_bytes > 0 {
        row("filters", size::bytes(stats.filter_bytes))?;
    }
    if stats.history_rows > 0 {
        let versions = size::of(stats.history_rows, "older version");
        row("history", format!("{}, {versions}", size::bytes(stats.history_bytes + stats.group_history_bytes)))?;
    }
    if stats.value_bytes > 0 {
        row("large values", size::bytes(stats.value_bytes))?;
    }
    if stats.range_erase_bytes > 0 {
        row("range erases", size::bytes(stats.range_erase_bytes))?;
    }
    row("files", format!("{}, {}", size::count(stats.files), size::bytes(stats.file_bytes)))?;
    if stats.unseen_bytes > 0 {
        row("  not seen", format!("{}, of rows of other tables or none", size::bytes(stats.unseen_bytes)))?;
    }
    for level in stats.levels.iter().filter(|level| level.files > 0) {
        let name = format!("  level {}", level.level);
        let files = size::of(level.files, "file");
        row(&name, format!("{files}, {}, {}", size::bytes(level.bytes), size::of(level.rows, "version")))?;
    }
    if stats.memory_rows > 0 {
        let versions = size::of(stats.memory_rows, "version");
        row("not in files", format!("{versions}, {}", size::bytes(stats.memory_bytes)))?;
    }
    if let Some(cached) = stats.cached() {
        row("in memory", cached)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

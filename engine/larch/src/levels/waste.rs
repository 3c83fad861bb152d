//! Finds files that waste space, because readers see much less of them than they take on disk, and picks the
//! compaction that frees it. This is for tables at rest, where no other compaction would do so. The pick depends
//! only on the files of a table and on the oldest version that a reader may read at. This module does not know how
//! a compaction is done.
//!
//! What counts as waste in a file:
//!
//! * rows outside the slice that the table sees,
//! * rows in the slice that range erases in newer files hide, as measured by [`cut`](crate::compact::cut),
//! * rows that the file's own range erases hide, if a merge will drop these range erases,
//! * older versions of its rows that no reader can read any more,
//! * rows that newer rows and erases hide. This is an estimate: each newer row is assumed to hide one row of
//!   average length in each deeper level, up to the rows that the level has. So even new rows that hide nothing
//!   count. But they alone cause a compaction only when the table has grown by a fifth, and count no more after it,
//!   because they then lie over no other files.
//!
//! Rows may have any length, so waste is counted in bytes and not in rows. The bytes include values outside pages.

use super::claim::Claim;
use super::pick::{Pick, newest, overlapping, with_above};
use crate::base::table::LEVELS;
use crate::manifest::{DbFile, TableFiles};
use crate::memtable::Memtable;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sst::{KeyRange, Version};
use std::collections::HashMap;

/// A table at rest is compacted if its files waste at least this number of bytes.
const MIN_BYTES: u64 = 256 << 10;

/// The waste must also be at least the bytes of the table's files divided by this number. So a large table at rest
/// takes at most a quarter more space than readers see.
const SHARE: u64 = 5;

/// What the files of a table waste.
struct Waste<'t> {
    table: &'t TableFiles,
    oldest: Version,
    /// How many newer rows lie over a file, by the number of the file. Files without any are not in this map.
    rows_above: HashMap<u64, u64>,
}

impl<'t> Waste<'t> {
    /// The waste of `table` if readers read at `oldest` or later.
    fn of(table: &'t TableFiles, oldest: Version) -> Self {
        let mut rows_above = HashMap::new();
        let mut note = |below: &[&Arc<DbFile>], rows: u64| {
            // Assume that the newer rows spread evenly over all these files.
            let share = rows.div_ceil(below.len().max(1) as u64);
            below.iter().for_each(|file| *rows_above.entry(file.number).or_default() += share);
        };
        // Rows below a file with versions newer than `oldest` do not count as waste, because a reader may still
        // need them.
        let hides = |file: &DbFile| newest(file) <= oldest.0 && file.sst.rows().count() > 0;
        let level0 = &table.levels[0];
        for (i, file) in level0.iter().enumerate().filter(|(_, file)| hides(file)) {
            let meets = |other: &&Arc<DbFile>| other.sst.bounds().overlaps(file.sst.bounds());
            let older: Vec<_> = level0[i + 1..].iter().filter(meets).collect();
            note(&older, file.sst.rows().count());
        }
        for (level, file) in table.files().filter(|(_, file)| hides(file)) {
            for below in level + 1..LEVELS {
                note(&overlapping(table, below, file.sst.bounds()), file.sst.rows().count());
            }
        }
        Self { table, oldest, rows_above }
    }

    /// An estimate of the bytes of `file` that no reader needs.
    fn bytes(&self, level: usize, file: &DbFile) -> u64 {
        let (seen_bytes, rows) = (file.sst.visible_bytes(), file.sst.rows().count());
        let above = self.rows_above.get(&file.number).map_or(0, |above| (*above).min(rows));
        let hidden_by_rows = (u128::from(seen_bytes) * u128::from(above) / u128::from(rows.max(1))) as u64;
        let is_old = newest(file) <= self.oldest.0;
        let history = file.sst.meta.history.tree().filter(|_| is_old);
        let history = history.map_or(0, |tree| tree.totals.bytes + tree.totals.group_bytes);
        let is_over_others =
            || (level + 1..LEVELS).any(|below| !overlapping(self.table, below, file.sst.bounds()).is_empty());
        let hidden_by_itself = match file.self_hidden_bytes.load(Ordering::Relaxed) {
            // Rows within the file's own range erases. Some are newer than the range erases, so a merge keeps them,
            // and if it keeps the range erases, too, the same bytes would be found again after each merge. So count
            // them only in level 0, from which a file is merged once, or where a merge drops the range erases.
            bytes if bytes > 0 && is_old && (level == 0 || !is_over_others()) => bytes,
            _ => 0,
        };
        let hidden_by_ranges = file.hidden_bytes.load(Ordering::Relaxed) + hidden_by_itself;
        (file.bytes() - seen_bytes.min(file.bytes()) + hidden_by_ranges + history + hidden_by_rows).min(file.bytes())
    }

    /// The bytes that all files of the table waste.
    fn all_bytes(&self) -> u64 {
        self.table.files().map(|(level, file)| self.bytes(level, file)).sum()
    }
}

/// Whether `wasted` of `all` bytes are worth a compaction.
fn is_much(wasted: u64, all: u64) -> bool {
    wasted >= MIN_BYTES && wasted >= all / SHARE
}

fn all_bytes(table: &TableFiles) -> u64 {
    table.files().map(|(_, file)| file.bytes()).sum()
}

/// Whether `table` is to be compacted for its waste once it is at rest. Readers read at `oldest` or later.
pub fn is_due(table: &TableFiles, oldest: Version) -> bool {
    // Check the size first: most tables are too small, and need no look at their files.
    all_bytes(table) >= MIN_BYTES && is_much(Waste::of(table, oldest).all_bytes(), all_bytes(table))
}

/// Whether `table` keeps its waste only because of readers at versions older than the newest in its files.
pub fn is_waiting(table: &TableFiles, oldest: Version) -> bool {
    table.files().any(|(_, file)| newest(file) > oldest.0) && !is_due(table, oldest) && is_due(table, Version::MAX)
}

/// The best compaction for `table`, which is at rest, beside those that have claimed `under_way`. Takes the file
/// with the greatest share of waste, and merges it with everything that lies over it, or rewrites it. Level 0 is
/// merged into the level `base`.
pub fn pick(table: &TableFiles, base: usize, oldest: Version, under_way: &[Claim]) -> Pick {
    if !is_due(table, oldest) {
        return Pick::Nothing;
    }
    let waste = Waste::of(table, oldest);
    let share = |level: usize, file: &DbFile| waste.bytes(level, file) as f64 / file.bytes().max(1) as f64;
    let mut files: Vec<_> = table.files().map(|(level, file)| (share(level, file), level, file)).collect();
    files.retain(|(share, ..)| *share > 0.0);
    files.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    let is_free = |pick: &Pick| {
        let claim = pick.claim(table);
        claim.is_some_and(|claim| !under_way.iter().any(|other| other.meets(&claim)))
    };
    let picks = files.into_iter().map(|(_, level, file)| with_above(table, level, file, base));
    picks.filter(|pick| *pick != Pick::Nothing).find(is_free).unwrap_or(Pick::Nothing)
}

/// Whether to flush `memory`, the memtable of `table`, in an idle database: its rows and range erases may hide much
/// of what the table's files have.
pub fn is_flush_due(table: &TableFiles, memory: &Memtable) -> bool {
    let files = || table.files().map(|(_, file)| file);
    let rows: u64 = files().map(|file| file.sst.rows().count()).sum();
    let all = all_bytes(table);
    let by_rows = (u128::from(all) * u128::from(memory.rows().min(rows)) / u128::from(rows.max(1))) as u64;
    let meets = |file: &DbFile| {
        let meets = |keys: KeyRange<Arc<[u8]>>| file.sst.bounds().meets(&keys.to_vecs());
        memory.has_range_erases() && memory.range_erases().take(MOST_ERASES).any(|erase| meets(erase.keys))
    };
    let by_ranges: u64 = files().filter(|file| meets(file)).map(|file| file.sst.visible_bytes()).sum();
    is_much(by_rows + by_ranges, all)
}

/// At most this many range erases of a memtable are looked at.
const MOST_ERASES: usize = 16;

#[cfg(test)]
mod tests;

//! Picks what to compact next. The pick follows only from the files of a table, the options, the oldest version
//! that a reader may read at, and the use of level 0. This module does not know how a compaction is done.
//!
//! The sizes of levels follow the data: the target of the deepest level is the size of the largest level. Above the
//! deepest level, the table has as few levels as `growth` allows. Each level is smaller than the next deeper level
//! by the same factor. The factor is chosen so that the uppermost level below level 0, the base, has about
//! `base_bytes`. Files of level 0 are merged into the base.

use super::claim::Claim;
use super::level0::{Level0Use, few_files};
use crate::base::event::CompactionReason;
use crate::base::options::LevelOptions;
use crate::base::table::LEVELS;
use crate::manifest::{DbFile, TableFiles};
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sst::format::meta::MAX_BOUND_BYTES;
use sst::{KeyBounds, Version};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// What to do next with the files of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Pick {
    /// Nothing has to be done: the levels have the right sizes.
    Nothing,
    /// A file can go to a deeper level as it is, because no file in the levels on the way overlaps it.
    Move {
        /// The level that the file leaves.
        from: usize,
        /// The level that the file goes to.
        to: usize,
        /// The number of the file.
        number: u64,
        /// How urgent the move is, at least 1.
        score: f64,
    },
    /// Files are to be merged into a level.
    Merge {
        /// Level and number of each input.
        inputs: Vec<(usize, u64)>,
        /// The level of the result.
        to: usize,
        /// How urgent the merge is, at least 1.
        score: f64,
        /// Why the files are merged.
        reason: CompactionReason,
    },
}

impl Pick {
    /// What this pick changes of `table`; `None` if it changes nothing.
    pub fn claim(&self, table: &TableFiles) -> Option<Claim> {
        match self {
            Self::Nothing => None,
            Self::Move { from, to, number, .. } => Claim::of(table, &[(*from, *number)], *to),
            Self::Merge { inputs, to, .. } => Claim::of(table, inputs, *to),
        }
    }

    /// How urgent this pick is. It is 0 if there is nothing to do.
    pub fn score(&self) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Move { score, .. } | Self::Merge { score, .. } => *score,
        }
    }
}

const DEEPEST: usize = LEVELS - 1;

/// If level 0 has this many files, writers wait. A few more files may come from flushes that a caller asked for,
/// from imports, and from recovery. So level 0 has at most 64 files.
const STOP_FILES: usize = 48;

/// When level 0 has so many files that writers wait, flushes and imports that a caller asked for may still add
/// this many files.
const ASKED_FILES: usize = 12;

/// If level 0 of a table has this many files, writers of the table wait until a compaction has taken some of the
/// files. The number is more than the default only if the options let compactions begin late.
pub fn stop_files(options: &LevelOptions) -> usize {
    STOP_FILES.max(2 * options.level0_files)
}

/// The greatest number of files that level 0 may have after a flush or an import that a caller asked for.
pub fn asked_stop_files(options: &LevelOptions) -> usize {
    stop_files(options) + ASKED_FILES
}

/// Whether level 0 has at least half of the number of files at which writers have to wait. If so, level 0 is
/// compacted before all other levels.
pub fn is_urgent(level0_files: usize, options: &LevelOptions) -> bool {
    level0_files >= stop_files(options) / 2
}

/// If level 0 is urgent, its score is this number plus the number of its files. This is more than the score of any
/// other level.
const URGENT_SCORE: f64 = 1e12;

/// If the largest level of a table has fewer bytes than this many times `base_bytes`, the table has no level
/// between level 0 and the largest level. A base between them would be rewritten and emptied with each merge of
/// level 0. This work would cost more than the base saves.
const LEAST_LEVELS: u64 = 2;

/// If `growth` allows it, each level is at least this many times as large as the level above it. With smaller
/// steps, rows would be rewritten just as often, and reads would look into more levels.
const LEAST_GROWTH: f64 = 4.0;

/// The level into which level 0 is merged (the base), and the target size of each level in bytes.
pub fn targets(table: &TableFiles, options: &LevelOptions) -> (usize, [u64; LEVELS]) {
    let largest = (1..LEVELS).map(|level| table.level_bytes(level)).max().unwrap_or(0);
    let (base_bytes, growth) = (options.base_bytes as f64, options.growth as f64);
    let mut targets = [0; LEVELS];
    targets[DEEPEST] = largest.max(options.base_bytes);
    if largest < options.base_bytes.saturating_mul(LEAST_LEVELS) {
        return (DEEPEST, targets);
    }
    // The least number of steps from the largest level up to the base. Each step divides the size by the same
    // factor, which is at most `growth`.
    let ratio = largest as f64 / base_bytes;
    let steps = (ratio.ln() / growth.ln() - 1e-9).ceil().clamp(1.0, (DEEPEST - 1) as f64);
    let factor = ratio.powf(1.0 / steps).max(LEAST_GROWTH.min(growth));
    let base = DEEPEST - steps as usize;
    let mut target = largest as f64;
    for level in (base..DEEPEST).rev() {
        target /= factor;
        targets[level] = (target as u64).max(1);
    }
    (base, targets)
}

/// Target size of a file in `level`, in bytes.
pub fn file_bytes(level: usize, base: usize, options: &LevelOptions) -> u64 {
    options.file_bytes << level.saturating_sub(base).min(2)
}

/// One look of a read into a file costs as much as merging this many bytes. A look takes 0.1 to 0.3 us of the time
/// of the reading thread. A merge of 100 bytes takes 0.6 us of the time of another thread.
const LOOK_BYTES: u64 = 100;

/// Whether level 0 is to be merged into the base. While only writes come, level 0 waits for `level0_files` files,
/// because one merge of all of them rewrites the base only once. If the table is at rest, level 0 does not wait.
/// Reads look into every file of level 0. When these looks have cost as much time as the merge will take, level 0
/// does not wait any longer.
fn is_level0_due(table: &TableFiles, base: usize, options: &LevelOptions, level0: Level0Use) -> bool {
    let files = &table.levels[0];
    let merged = || {
        let bounds = union(files.iter()).expect("level 0 has files");
        table.level_bytes(0) + bytes_below(table, 0, base, &bounds)
    };
    files.len() >= options.level0_files
        || files.len() >= few_files(options)
            && (level0.is_at_rest || level0.looks.saturating_mul(LOOK_BYTES) >= merged())
}

/// The best next compaction of `table`. It may run at the same time as the compactions that have claimed
/// `under_way`. `oldest` is the oldest version that a reader may read at, and `level0` says how level 0 is used.
///
/// If several levels are too large, the pick is for the level whose compaction writes the fewest bytes for each
/// byte that it moves down. As a level grows, compactions out of it become cheaper, and compactions into it become
/// more expensive. So no level waits forever.
///
/// A merge of level 0 may be due while compactions under way have claimed some of its levels and keys. Until the
/// merge begins, no further compaction of these levels and keys is picked. So the merge can begin when the
/// compactions under way have ended.
pub fn pick(
    table: &TableFiles,
    options: &LevelOptions,
    oldest: Version,
    level0: Level0Use,
    under_way: &[Claim],
) -> Pick {
    let mut claims = Claims { table, claims: under_way.to_vec() };
    let (base, targets) = targets(table, options);
    let level0_files = table.levels[0].len();
    if is_urgent(level0_files, options) {
        let pick = from_level0(table, base, URGENT_SCORE + level0_files as f64, CompactionReason::Level0);
        if claims.are_free_for(&pick) {
            return pick;
        }
        claims.keep_for(&pick);
    }
    let level0_score = level0_files as f64 / few_files(options) as f64;
    let score = |level: usize| match claims.bytes_left(level) {
        0 => 0.0,
        // A level above the base has the target 0, so its score is high and its files move down.
        bytes => bytes as f64 / targets[level].max(1) as f64,
    };
    let deeper = (1..DEEPEST).map(|level| (level, score(level))).filter(|(_, score)| *score > 1.0);
    let is_level0_due = is_level0_due(table, base, options, level0) && !claims.take_from_level0();
    let due: Vec<(usize, f64)> = is_level0_due.then_some((0, level0_score)).into_iter().chain(deeper).collect();
    let Some(score) = due.iter().map(|(_, score)| *score).reduce(f64::max) else {
        let is_free = |pick: &Pick| *pick != Pick::Nothing && claims.are_free_for(pick);
        let rest = Some(sparse(table, base)).filter(is_free);
        return rest.or_else(|| Some(erased(table, base, oldest)).filter(is_free)).unwrap_or(Pick::Nothing);
    };
    if let [(0, _)] = due[..] {
        let pick = from_level0(table, base, score, CompactionReason::Level0);
        return if claims.are_free_for(&pick) { pick } else { Pick::Nothing };
    }
    let below = |level: usize| if level < base { base } else { level + 1 };
    let cost = |(level, _): (usize, f64)| match level {
        0 => Some((level0_cost(table, base), 0)),
        _ => cheapest(&claims, level, below(level), score).map(|(cost, _)| (cost, level)),
    };
    let mut from: Vec<(f64, usize)> = due.into_iter().filter_map(cost).collect();
    from.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    for (_, level) in from {
        if level > 0 {
            match cheapest(&claims, level, below(level), score) {
                Some((_, pick)) => return pick,
                None => continue,
            }
        }
        let pick = from_level0(table, base, score, CompactionReason::Level0);
        if claims.are_free_for(&pick) {
            return pick;
        }
        claims.keep_for(&pick);
    }
    Pick::Nothing
}

/// What other compactions have claimed of a table.
struct Claims<'t> {
    table: &'t TableFiles,
    claims: Vec<Claim>,
}

impl Claims<'_> {
    /// Whether the claim of `pick` overlaps none of these claims.
    fn are_free_for(&self, pick: &Pick) -> bool {
        self.claims.is_empty()
            || pick.claim(self.table).is_some_and(|pick| !self.claims.iter().any(|claim| claim.meets(&pick)))
    }

    /// Adds the claim of `pick`, which has to wait now. Because of this claim, no compaction that is picked later
    /// makes `pick` wait longer.
    fn keep_for(&mut self, pick: &Pick) {
        self.claims.extend(pick.claim(self.table));
    }

    fn take_from_level0(&self) -> bool {
        self.claims.iter().any(|claim| claim.takes_from(0))
    }

    /// The bytes of those files of `level` that no compaction under way removes from it.
    fn bytes_left(&self, level: usize) -> u64 {
        if self.claims.is_empty() {
            return self.table.level_bytes(level);
        }
        let is_left = |file: &&Arc<DbFile>| !self.claims.iter().any(|claim| claim.takes(level, file));
        self.table.levels[level].iter().filter(is_left).map(|file| file.bytes()).sum()
    }
}

/// At most this many files are rewritten together because the table sees only small parts of them.
const MAX_SPARSE: usize = 32;

/// Rewrites a file if the table sees less than half of it. This gives back the space of the part that the table
/// does not see.
fn sparse(table: &TableFiles, base: usize) -> Pick {
    let is_sparse = |file: &DbFile| file.sst.slice.is_some() && file.sst.visible_bytes() < file.bytes() / 2;
    let Some((level, file)) = table.files().find(|(_, file)| is_sparse(file)) else { return Pick::Nothing };
    match level {
        0 => from_level0(table, base, 1.0, CompactionReason::Sparse),
        // Range erases in newer files hide some rows within the part of this file that the table sees. A merge
        // with these newer files removes the hidden rows.
        _ if file.hidden_bytes.load(Ordering::Relaxed) > 0 => with_above(table, level, file, base),
        _ => {
            // The parts of neighbouring files that the table sees are written together.
            let first = table.levels[level].iter().position(|other| other.number == file.number).expect("found there");
            let run = table.levels[level][first..].iter().take_while(|file| is_sparse(file)).take(MAX_SPARSE);
            let bounds = union(run).expect("the first is one");
            merge(table, Vec::new(), bounds, level..=level, 1.0, CompactionReason::Sparse)
        }
    }
}

/// If a file or memtable has fewer erased rows than this, these erased rows are no reason to rewrite it. A seek
/// across 256 erased rows takes 85 us.
pub const MIN_ERASED: u64 = 256;

/// A compaction because of erased rows may rewrite at most this many rows for each erased row of its file. To move a
/// row down a level costs about as much without such compactions.
const ROWS_FOR_ERASED: u64 = 10;

fn erased_rows(file: &DbFile) -> u64 {
    file.sst.meta.main.map_or(0, |main| main.totals.erased)
}

/// The newest version in `file`.
pub fn newest(file: &DbFile) -> u64 {
    file.sst.meta.newest.0.saturating_add(file.sst.version_offset)
}

/// Whether erased rows stay in the files only because of old readers. `oldest` is the oldest version that a reader
/// may read at.
pub fn is_waiting(table: &TableFiles, oldest: Version) -> bool {
    table.files().any(|(_, file)| erased_rows(file) >= MIN_ERASED && newest(file) > oldest.0)
}

/// Moves erased rows, and the rows that they hide, down to the deepest level that has keys in their range. There
/// the compaction removes both. A file with a version newer than `oldest` is skipped, because a reader may still
/// need the rows that the erases of this file hide. Each pick moves erased rows down a level or removes them. So
/// after some picks, nothing is left to do.
fn erased(table: &TableFiles, base: usize, oldest: Version) -> Pick {
    let reason = CompactionReason::ErasedRows;
    let is_full = |file: &DbFile| erased_rows(file) >= MIN_ERASED && newest(file) <= oldest.0;
    let rows: HashMap<u64, u64> = table.files().map(|(_, file)| (file.number, file.sst.rows().count())).collect();
    let picks = table.files().filter(|(_, file)| is_full(file)).map(|(level, file)| {
        let bounds = file.sst.bounds();
        let below = (level + 1..LEVELS).find(|&below| !overlapping(table, below, bounds).is_empty());
        let pick = match (level, below) {
            (0, _) => {
                let files = &table.levels[0];
                let bounds = union(files.iter()).expect("the file is one of them");
                merge(table, files.iter().map(|file| (0, file.number)).collect(), bounds, 1..=base, 1.0, reason)
            }
            (_, Some(below)) => {
                merge(table, vec![(level, file.number)], bounds.clone(), level + 1..=below, 1.0, reason)
            }
            (_, None) => merge(table, Vec::new(), bounds.clone(), level..=level, 1.0, reason),
        };
        (erased_rows(file), pick)
    });
    let pays = |(erased, pick): &(u64, Pick)| match pick {
        Pick::Merge { inputs, .. } => {
            inputs.iter().map(|(_, number)| rows[number]).sum::<u64>() <= erased.saturating_mul(ROWS_FOR_ERASED)
        }
        _ => false,
    };
    picks.filter(pays).max_by_key(|(erased, _)| *erased).map_or(Pick::Nothing, |(_, pick)| pick)
}

/// The files of `level` that may have keys within `bounds`. `level` is not 0.
pub fn overlapping<'a>(table: &'a TableFiles, level: usize, bounds: &KeyBounds) -> Vec<&'a Arc<DbFile>> {
    let files = &table.levels[level];
    let ends_before = |file: &Arc<DbFile>| file.sst.bounds().high.as_ref().is_some_and(|high| *high < bounds.low);
    let first = files.partition_point(ends_before);
    files[first..].iter().take_while(|file| file.sst.bounds().overlaps(bounds)).collect()
}

pub fn union<'a>(files: impl Iterator<Item = &'a Arc<DbFile>>) -> Option<KeyBounds> {
    files.map(|file| file.sst.bounds().clone()).reduce(|a, b| a.union(&b))
}

/// Merges all files of level 0 at once, together with the files between level 0 and the base. All files are merged
/// because level 0 is ordered by age.
fn from_level0(table: &TableFiles, base: usize, score: f64, reason: CompactionReason) -> Pick {
    let files = &table.levels[0];
    let bounds = union(files.iter()).expect("level 0 has files");
    if let [only] = files.as_slice()
        && (1..=base).all(|level| overlapping(table, level, &bounds).is_empty())
    {
        return Pick::Move { from: 0, to: base, number: only.number, score };
    }
    merge(table, files.iter().map(|file| (0, file.number)).collect(), bounds, 1..=base, score, reason)
}

/// Merges `file` of `level` with everything that lies over it. If nothing lies over it, only the file is
/// rewritten. In both cases, the result has only what readers see.
pub fn with_above(table: &TableFiles, level: usize, file: &DbFile, base: usize) -> Pick {
    let (level0, reason) = (&table.levels[0], CompactionReason::Sparse);
    if level == 0 {
        return match from_level0(table, base, 1.0, reason) {
            // If the file were only moved, it would stay as large as it is.
            Pick::Move { number, to, score, .. } => Pick::Merge { inputs: vec![(0, number)], to, score, reason },
            pick => pick,
        };
    }
    let mut bounds = file.sst.bounds().clone();
    let mut inputs = Vec::new();
    // Level 0 is merged as a whole, because its files are ordered by age.
    if level0.iter().any(|above| above.sst.bounds().overlaps(&bounds)) {
        bounds = union(level0.iter()).expect("a file overlaps").union(&bounds);
        inputs.extend(level0.iter().map(|file| (0, file.number)));
    }
    merge(table, inputs, bounds, 1..=level, 1.0, reason)
}

/// Merges `inputs`, which are within `bounds`, together with everything in `levels` that overlaps them. The result
/// goes into the last level of `levels`.
fn merge(
    table: &TableFiles,
    mut inputs: Vec<(usize, u64)>,
    mut bounds: KeyBounds,
    levels: RangeInclusive<usize>,
    score: f64,
    reason: CompactionReason,
) -> Pick {
    let to = *levels.end();
    // Files from a level above `to` may have keys outside `bounds`, so they widen the bounds.
    for level in levels {
        let mut files = overlapping(table, level, &bounds);
        if level == to {
            add_ties(&table.levels[level], &mut files);
        }
        if let Some(wider) = union(files.iter().copied()).filter(|_| level < to) {
            bounds = bounds.union(&wider);
        }
        inputs.extend(files.iter().map(|file| (level, file.number)));
    }
    Pick::Merge { inputs, to, score, reason }
}

/// Adds the files after `files` whose lower bounds equal the upper bounds of the files before them. Bounds have a
/// limited length, so two bounds are equal if the keys differ only after this length. A level orders files with
/// equal bounds by their numbers, and the files that replace `files` get higher numbers.
fn add_ties<'a>(level: &'a [Arc<DbFile>], files: &mut Vec<&'a Arc<DbFile>>) {
    let Some(last) = files.last().and_then(|last| level.iter().position(|file| file.number == last.number)) else {
        return;
    };
    for pair in level[last..].windows(2) {
        let (file, next) = (pair[0].sst.bounds(), pair[1].sst.bounds());
        if next.low.len() < MAX_BOUND_BYTES || !file.overlaps(next) {
            break;
        }
        files.push(&pair[1]);
    }
}

/// The number of bytes that a merge of level 0 writes for each byte of level 0.
fn level0_cost(table: &TableFiles, base: usize) -> f64 {
    let bounds = union(table.levels[0].iter()).expect("level 0 has files");
    1.0 + bytes_below(table, 0, base, &bounds) as f64 / table.level_bytes(0).max(1) as f64
}

/// The bytes of all files within `bounds` from the level after `level` to the level `to`.
fn bytes_below(table: &TableFiles, level: usize, to: usize, bounds: &KeyBounds) -> u64 {
    (level + 1..=to).flat_map(|level| overlapping(table, level, bounds)).map(|file| file.bytes()).sum()
}

/// Compares the compactions of single files of `level`, and picks the cheapest one. The cost of a compaction is
/// the number of bytes that it writes for each byte of its file. It is 0 if the file can be moved, and less for a
/// file with erased rows. Returns the cost and the compaction, or `None` if every file that could be taken is
/// claimed.
fn cheapest(claims: &Claims<'_>, level: usize, to: usize, score: f64) -> Option<(f64, Pick)> {
    let table = claims.table;
    let cost = |file: &Arc<DbFile>| {
        let below = bytes_below(table, level, to, file.sst.bounds());
        let erased = file.sst.meta.main.map_or(0.0, |main| main.totals.erased as f64 / main.totals.rows as f64);
        if below == 0 { 0.0 } else { (1.0 + below as f64 / file.bytes() as f64) * (1.0 - erased / 2.0) }
    };
    let mut files: Vec<_> = table.levels[level].iter().map(|file| (cost(file), file)).collect();
    files.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let picks = files.into_iter().map(|(cost, file)| (cost, from_level(table, level, to, file, score)));
    picks.into_iter().find(|(_, pick)| claims.are_free_for(pick))
}

/// Moves or merges a file of `level` down to the level `to`.
fn from_level(table: &TableFiles, level: usize, to: usize, file: &Arc<DbFile>, score: f64) -> Pick {
    let bounds = file.sst.bounds();
    if (level + 1..=to).all(|level| overlapping(table, level, bounds).is_empty()) {
        return Pick::Move { from: level, to, number: file.number, score };
    }
    merge(table, vec![(level, file.number)], bounds.clone(), level + 1..=to, score, CompactionReason::LevelSize)
}

/// Merges every file of the table into the deepest level. There is nothing to do if three things hold: all files
/// are in the deepest level already, they were written under the present options, and they hold nothing that could
/// be removed.
pub fn everything(table: &TableFiles) -> Pick {
    let is_done = |(level, file): (usize, &Arc<DbFile>)| {
        let meta = &file.sst.meta;
        level == DEEPEST
            && file.number >= table.info.since
            && file.sst.slice.is_none()
            && meta.history.is_none()
            && meta.range_erases.is_none()
            && meta.main.is_none_or(|main| main.totals.erased == 0)
    };
    if table.files().all(is_done) {
        return Pick::Nothing;
    }
    let inputs = table.files().map(|(level, file)| (level, file.number)).collect();
    Pick::Merge { inputs, to: DEEPEST, score: 1.0, reason: CompactionReason::Asked }
}

#[cfg(test)]
pub mod tests;

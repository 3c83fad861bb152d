//! What to compact next, as a pure function of a table's files.
//!
//! Level sizes follow the data: the largest level counts as the deepest, each one above is a tenth of it, and the
//! uppermost one that is worth having takes what comes from level 0 (RocksDB's "dynamic level bytes").

use crate::event::CompactionReason;
use crate::manifest::{DbFile, LEVELS, TableFiles};
use crate::options::LevelOptions;
use os::sync::Arc;
use sst::format::meta::MAX_BOUND_BYTES;
use sst::{KeyBounds, Version};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// What to do with a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Its levels are in shape.
    Nothing,
    /// A file can go down as it is: nothing there overlaps it.
    Move {
        /// Where it is.
        from: usize,
        /// Where it goes.
        to: usize,
        /// Its number.
        number: u64,
        /// How much it is wanted, at least 1.
        score: f64,
    },
    /// Files are to be merged into a level.
    Merge {
        /// Level and number of each input.
        inputs: Vec<(usize, u64)>,
        /// Where the result goes.
        to: usize,
        /// How much it is wanted, at least 1.
        score: f64,
        /// Why.
        reason: CompactionReason,
    },
}

impl Choice {
    /// How much it is wanted.
    pub fn score(&self) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Move { score, .. } | Self::Merge { score, .. } => *score,
        }
    }
}

const DEEPEST: usize = LEVELS - 1;

/// Files of level 0 at which writers wait. Beyond them there is room for the files that come without a writer: of flushes that
/// were asked for, of imports, of a recovery; so level 0 stays within 64 files.
const STOP_FILES: usize = 48;

/// Files beyond those at which writers wait that flushes may make that were asked for.
const ASKED_FILES: usize = 12;

/// Files of a table's level 0 at which its writers wait until a compaction has taken some; more than by default only where
/// compactions begin late.
pub fn stop_files(options: &LevelOptions) -> usize {
    STOP_FILES.max(2 * options.level0_files)
}

/// The same for flushes and imports that were asked for.
pub fn asked_stop_files(options: &LevelOptions) -> usize {
    stop_files(options) + ASKED_FILES
}

/// Whether level 0 has so many files that writers wait soon: its compaction goes before all others.
pub fn is_urgent(level0_files: usize, options: &LevelOptions) -> bool {
    level0_files >= stop_files(options) / 2
}

/// More than any level's share of its size: the score of a level 0 that is urgent.
const URGENT_SCORE: f64 = 1e12;

/// Level into which level 0 is merged, and the size each level may have.
pub fn targets(table: &TableFiles, options: &LevelOptions) -> (usize, [u64; LEVELS]) {
    let largest = (1..LEVELS).map(|level| table.level_bytes(level)).max().unwrap_or(0);
    let mut targets = [0; LEVELS];
    let (mut level, mut target) = (DEEPEST, largest.max(options.base_bytes));
    loop {
        targets[level] = target;
        if target <= options.base_bytes || level == 1 {
            return (level, targets);
        }
        level -= 1;
        target = (target / options.growth).max(1);
    }
}

/// Target size of a file in `level`.
pub fn file_bytes(level: usize, base: usize, options: &LevelOptions) -> u64 {
    options.file_bytes << level.saturating_sub(base).min(2)
}

/// The compaction with the highest score. `seen` is the oldest version that a reader may read at.
pub fn pick(table: &TableFiles, options: &LevelOptions, seen: Version) -> Choice {
    let (base, targets) = targets(table, options);
    let level0_files = table.levels[0].len();
    let level0 = match is_urgent(level0_files, options) {
        true => URGENT_SCORE + level0_files as f64,
        false => level0_files as f64 / options.level0_files as f64,
    };
    let score = |level: usize| match table.level_bytes(level) {
        0 => 0.0,
        // A level above the base is on its way out.
        bytes => bytes as f64 / targets[level].max(1) as f64,
    };
    let (level, score) = (1..DEEPEST)
        .map(|level| (level, score(level)))
        .filter(|(_, score)| *score > 1.0)
        .fold((0, if level0 >= 1.0 { level0 } else { 0.0 }), |best, next| if next.1 > best.1 { next } else { best });
    if score == 0.0 {
        return match sparse(table, base) {
            Choice::Nothing => erased(table, base, seen),
            choice => choice,
        };
    }
    if level == 0 {
        return from_level0(table, base, score, CompactionReason::Level0);
    }
    let to = if level < base { base } else { level + 1 };
    from_level(table, level, to, score)
}

/// Most files that are rewritten together because little of them is seen.
const MAX_SPARSE: usize = 32;

/// Rewriting a file of which less than half is seen, so that the rest of its space is returned.
fn sparse(table: &TableFiles, base: usize) -> Choice {
    let is_sparse = |file: &DbFile| file.sst.slice.is_some() && file.sst.visible_bytes() < file.bytes() / 2;
    let Some((level, file)) = table.files().find(|(_, file)| is_sparse(file)) else { return Choice::Nothing };
    match level {
        0 => from_level0(table, base, 1.0, CompactionReason::Sparse),
        _ => {
            // What is left of many files becomes one.
            let first = table.levels[level].iter().position(|other| other.number == file.number).expect("found there");
            let run = table.levels[level][first..].iter().take_while(|file| is_sparse(file)).take(MAX_SPARSE);
            let bounds = union(run).expect("the first is one");
            merge(table, Vec::new(), bounds, level..=level, 1.0, CompactionReason::Sparse)
        }
    }
}

/// A file or memtable with fewer erased rows is not rewritten because of them: a seek across 256 takes 85 us.
pub const MIN_ERASED: u64 = 256;

/// A compaction may rewrite this many rows for each erased row: about what moving it down a level costs otherwise.
const ROWS_FOR_ERASED: u64 = 10;

fn erased_rows(file: &DbFile) -> u64 {
    file.sst.meta.main.map_or(0, |main| main.totals.erased)
}

/// The newest version in `file`.
fn newest(file: &DbFile) -> u64 {
    file.sst.meta.newest.0.saturating_add(file.sst.version_offset)
}

/// Whether erased rows could go but for a reader at `seen`, the oldest.
pub fn is_waiting(table: &TableFiles, seen: Version) -> bool {
    table.files().any(|(_, file)| erased_rows(file) >= MIN_ERASED && newest(file) > seen.0)
}

/// Moves erased rows, and the rows that they hide, down to the deepest level with such keys, and there removes them. A file
/// with a version newer than `seen` is skipped, because a reader may still need its erases. So each choice moves erased rows
/// down a level or removes them, and no choice repeats without end.
fn erased(table: &TableFiles, base: usize, seen: Version) -> Choice {
    let reason = CompactionReason::ErasedRows;
    let is_full = |file: &DbFile| erased_rows(file) >= MIN_ERASED && newest(file) <= seen.0;
    let rows: HashMap<u64, u64> = table.files().map(|(_, file)| (file.number, file.sst.rows().count())).collect();
    let choices = table.files().filter(|(_, file)| is_full(file)).map(|(level, file)| {
        let bounds = file.sst.bounds();
        let below = (level + 1..LEVELS).find(|&below| !overlapping(table, below, bounds).is_empty());
        let choice = match (level, below) {
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
        (erased_rows(file), choice)
    });
    let pays = |(erased, choice): &(u64, Choice)| match choice {
        Choice::Merge { inputs, .. } => {
            inputs.iter().map(|(_, number)| rows[number]).sum::<u64>() <= erased.saturating_mul(ROWS_FOR_ERASED)
        }
        _ => false,
    };
    choices.filter(pays).max_by_key(|(erased, _)| *erased).map_or(Choice::Nothing, |(_, choice)| choice)
}

fn overlapping<'a>(table: &'a TableFiles, level: usize, bounds: &KeyBounds) -> Vec<&'a Arc<DbFile>> {
    table.levels[level].iter().filter(|file| file.sst.bounds().overlaps(bounds)).collect()
}

fn union<'a>(files: impl Iterator<Item = &'a Arc<DbFile>>) -> Option<KeyBounds> {
    files.map(|file| file.sst.bounds().clone()).reduce(|a, b| a.union(&b))
}

/// All of level 0 at once, so that its order of ages needs no thought; and what lies between it and the base.
fn from_level0(table: &TableFiles, base: usize, score: f64, reason: CompactionReason) -> Choice {
    let files = &table.levels[0];
    let bounds = union(files.iter()).expect("level 0 has files");
    if let [only] = files.as_slice()
        && (1..=base).all(|level| overlapping(table, level, &bounds).is_empty())
    {
        return Choice::Move { from: 0, to: base, number: only.number, score };
    }
    merge(table, files.iter().map(|file| (0, file.number)).collect(), bounds, 1..=base, score, reason)
}

/// `inputs` and everything of `levels` that overlaps them, into the last of these.
fn merge(
    table: &TableFiles,
    mut inputs: Vec<(usize, u64)>,
    mut bounds: KeyBounds,
    levels: RangeInclusive<usize>,
    score: f64,
    reason: CompactionReason,
) -> Choice {
    let to = *levels.end();
    // What is merged from a level above `to` may widen the bounds.
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
    Choice::Merge { inputs, to, score, reason }
}

/// Adds the files after `files` whose bounds tie with theirs because the keys differ only where bounds are cut: their
/// order is that of their numbers, and what replaces `files` has higher ones.
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

/// The file of `level` that has the least to be rewritten below for its size; erased rows count against waiting.
fn from_level(table: &TableFiles, level: usize, to: usize, score: f64) -> Choice {
    let cost = |file: &Arc<DbFile>| {
        let below: u64 = (level + 1..=to)
            .flat_map(|level| overlapping(table, level, file.sst.bounds()))
            .map(|file| file.bytes())
            .sum();
        let erased = file.sst.meta.main.map_or(0.0, |main| main.totals.erased as f64 / main.totals.rows as f64);
        (below as f64 / file.bytes() as f64) * (1.0 - erased / 2.0)
    };
    let best = table.levels[level].iter().map(|file| (cost(file), file)).min_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some((_, file)) = best else { return Choice::Nothing };
    let bounds = file.sst.bounds();
    if (level + 1..=to).all(|level| overlapping(table, level, bounds).is_empty()) {
        return Choice::Move { from: level, to, number: file.number, score };
    }
    merge(table, vec![(level, file.number)], bounds.clone(), level + 1..=to, score, CompactionReason::LevelSize)
}

/// Every file of the table into the deepest level; nothing if they are there, written under the options of now, and hold
/// nothing that could go.
pub fn everything(table: &TableFiles) -> Choice {
    let settled = |(level, file): (usize, &Arc<DbFile>)| {
        let meta = &file.sst.meta;
        level == DEEPEST
            && file.number >= table.info.since
            && file.sst.slice.is_none()
            && meta.history.is_none()
            && meta.range_erases.is_none()
            && meta.main.is_none_or(|main| main.totals.erased == 0)
    };
    if table.files().all(settled) {
        return Choice::Nothing;
    }
    let inputs = table.files().map(|(level, file)| (level, file.number)).collect();
    Choice::Merge { inputs, to: DEEPEST, score: 1.0, reason: CompactionReason::Asked }
}

#[cfg(test)]
mod tests;

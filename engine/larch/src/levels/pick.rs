//! Picks what to compact next, from the files of a table, the options, the oldest version that a reader may read
//! at, and the use of level 0. This module does not know how a compaction is done.
//!
//! Level sizes are dynamic, as in RocksDB: the target of the deepest level is the size of the largest level, and
//! each level above it is smaller by the same factor, which is at most `growth`. There are as few levels as that
//! allows. The factor is chosen so that the uppermost of them, the *base*, has about `base_bytes`. Level 0 is
//! merged into the base.

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
    /// Nothing to do: the levels have the right sizes.
    Nothing,
    /// A file moves to a deeper level as it is, because no file in the levels on the way overlaps it.
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
    /// Files that have nothing for a reader are dropped, without being read.
    Drop {
        /// Level and number of each file.
        files: Vec<(usize, u64)>,
        /// How urgent this is, at least 1.
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
            Self::Drop { files, .. } => {
                let deepest = files.iter().map(|(level, _)| *level).max()?;
                Claim::of(table, files, deepest)
            }
        }
    }

    /// How urgent this pick is. It is 0 if there is nothing to do.
    pub fn score(&self) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Move { score, .. } | Self::Merge { score, .. } | Self::Drop { score, .. } => *score,
        }
    }
}

const DEEPEST: usize = LEVELS - 1;

/// Writers wait when level 0 has this many files. Flushes on request, imports and recovery may add a few more, up
/// to 64 files in all.
const STOP_FILES: usize = 48;

/// Flushes and imports that a caller asked for may add this many files after writers have to wait.
const ASKED_FILES: usize = 12;

/// Writers of a table wait while its level 0 has this many files. It is `STOP_FILES` unless the options let
/// compactions begin late.
pub fn stop_files(options: &LevelOptions) -> usize {
    STOP_FILES.max(2 * options.level0_files)
}

/// The most files that level 0 may have after a flush or an import that a caller asked for.
pub fn asked_stop_files(options: &LevelOptions) -> usize {
    stop_files(options) + ASKED_FILES
}

/// Whether level 0 has at least half as many files as make writers wait. If so, it is compacted before all other
/// levels.
pub fn is_urgent(level0_files: usize, options: &LevelOptions) -> bool {
    level0_files >= stop_files(options) / 2
}

/// The score of an urgent level 0 is this number plus the number of its files, more than that of any other level.
const URGENT_SCORE: f64 = 1e12;

/// A table whose largest level has fewer bytes than this many times `base_bytes` merges level 0 into the deepest
/// level directly. A base between them would be rewritten and emptied with each merge of level 0, which costs more
/// than it saves.
const LEAST_LEVELS: u64 = 2;

/// Each level is at least this many times as large as the level above it, if `growth` allows it. With smaller
/// factors, rows would be rewritten just as often, and reads would look into more levels.
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
    // The least number of steps up to the base, each of which divides the size by a factor of at most `growth`.
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

/// The target size of a file in `level`, in bytes.
pub fn file_bytes(level: usize, base: usize, options: &LevelOptions) -> u64 {
    options.file_bytes << level.saturating_sub(base).min(2)
}

/// A look of a read into a file counts as much as merging this many bytes. A look takes 0.1 to 0.3 us of the
/// reading thread; merging 100 bytes takes 0.6 us of another thread.
const LOOK_BYTES: u64 = 100;

/// Whether level 0 is due for a merge into the base. A table that is only written waits for `level0_files` files,
/// because one merge of all of them rewrites the base only once. From [`few_files`] files on, the merge is also due
/// when the table is at rest, or when reads, which look into every file of level 0, have spent as much time on it
/// as the merge will take.
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

/// Whether compactions have to be fast: level 0 has more than one and a half times the files at which writes begin to
/// be slowed down, or more than three quarters of the files at which writes stop.
pub fn is_behind(table: &TableFiles, options: &LevelOptions) -> bool {
    let slow = options.slow_files.saturating_add(options.slow_files / 2);
    table.levels[0].len() > slow.min(stop_files(options) / 4 * 3)
}

/// The best next compaction of `table`, one that can run beside the compactions that have claimed `under_way`.
/// `oldest` is the oldest version that a reader may read at, and `level0` says how level 0 is used.
///
/// If several levels are too large, picks the compaction that writes the fewest bytes for each byte that it moves
/// down. As a level grows, compactions out of it become cheaper, and compactions into it dearer, so no level waits
/// forever.
///
/// A merge of level 0 that is due may have to wait for compactions under way. Until it begins, no further
/// compaction of its levels and keys is picked, so that it can begin when those have ended.
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
        // A level above the base has the target 0, so it gets a high score and empties.
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

/// The claims of other compactions of a table.
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

    /// Adds the claim of `pick`, which has to wait, so that later picks do not make it wait longer.
    fn keep_for(&mut self, pick: &Pick) {
        self.claims.extend(pick.claim(self.table));
    }

    fn take_from_level0(&self) -> bool {
        self.claims.iter().any(|claim| claim.takes_from(0))
    }

    /// The bytes of the files that no compaction under way removes from `level`.
    fn bytes_left(&self, level: usize) -> u64 {
        if self.claims.is_empty() {
            return self.table.level_bytes(level);
        }
        let is_left = |file: &&Arc<DbFile>| !self.claims.iter().any(|claim| claim.takes(level, file));
        self.table.levels[level].iter().filter(is_left).map(|file| file.bytes()).sum()
    }
}

/// At most this many sparse files (see [`sparse`]) are rewritten together.
const MAX_SPARSE: usize = 32;

/// Rewrites a sparse file, which means that the table sees less than half of it, to give back the space of the
/// rest.
fn sparse(table: &TableFiles, base: usize) -> Pick {
    let is_sparse = |file: &DbFile| file.sst.slice.is_some() && file.sst.visible_bytes() < file.bytes() / 2;
    let Some((level, file)) = table.files().find(|(_, file)| is_sparse(file)) else { return Pick::Nothing };
    match level {
        0 => from_level0(table, base, 1.0, CompactionReason::Sparse),
        // Range erases in newer files hide some rows that the table sees of this file. A merge with them removes
        // these rows.
        _ if file.hidden_bytes.load(Ordering::Relaxed) > 0 => with_above(table, level, file, base),
        _ => {
            // Write what the table sees of sparse neighbours together.
            let first = table.levels[level].iter().position(|other| other.number == file.number).expect("found there");
            let run = table.levels[level][first..].iter().take_while(|file| is_sparse(file)).take(MAX_SPARSE);
            let bounds = union(run).expect("the first is one");
            merge(table, Vec::new(), bounds, level..=level, 1.0, CompactionReason::Sparse)
        }
    }
}

/// Fewer erased rows than this are no reason to rewrite a file or flush a memtable. A seek across 256 erased rows
/// takes 85 us.
pub const MIN_ERASED: u64 = 256;

/// A compaction for erased rows may rewrite at most this many rows for each erased row of its file. Moving a row
/// down a level costs about as much anyway.
const ROWS_FOR_ERASED: u64 = 10;

fn erased_rows(file: &DbFile) -> u64 {
    file.sst.meta.main.map_or(0, |main| main.totals.erased)
}

/// The newest version in `file`.
pub fn newest(file: &DbFile) -> u64 {
    file.sst.meta.newest.0.saturating_add(file.sst.version_offset)
}

/// Whether old readers keep erased rows of some file from being removed. `oldest` is the oldest version that a
/// reader may read at.
pub fn is_waiting(table: &TableFiles, oldest: Version) -> bool {
    table.files().any(|(_, file)| erased_rows(file) >= MIN_ERASED && newest(file) > oldest.0)
}

/// Moves erased rows down to the deepest level that has keys in their range, where the compaction removes them with
/// the rows that they hide. Skips files with versions newer than `oldest`, because a reader may still need the rows
/// that they hide. Each pick moves erased rows down or removes them, so this comes to an end.
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

/// The files of `level`, which is not 0, that may have keys within `bounds`.
pub fn overlapping<'a>(table: &'a TableFiles, level: usize, bounds: &KeyBounds) -> Vec<&'a Arc<DbFile>> {
    let files = &table.levels[level];
    let ends_before = |file: &Arc<DbFile>| file.sst.bounds().high.as_ref().is_some_and(|high| *high < bounds.low);
    let first = files.partition_point(ends_before);
    files[first..].iter().take_while(|file| file.sst.bounds().overlaps(bounds)).collect()
}

pub fn union<'a>(files: impl Iterator<Item = &'a Arc<DbFile>>) -> Option<KeyBounds> {
    files.map(|file| file.sst.bounds().clone()).reduce(|a, b| a.union(&b))
}

/// Merges all of level 0 with the files that it overlaps down to the base. A single file without overlaps only
/// moves.
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

/// Merges `file` of `level` with everything that lies over it, or rewrites it if nothing does. The result has only
/// what readers see.
pub fn with_above(table: &TableFiles, level: usize, file: &DbFile, base: usize) -> Pick {
    let (level0, reason) = (&table.levels[0], CompactionReason::Sparse);
    if level == 0 {
        return match from_level0(table, base, 1.0, reason) {
            // A move would leave the file as large as it is.
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

/// Rewrites `file` of `level` where it is, because rows of it have expired. A file of level 0 is merged into the level
/// `base`, with the others of level 0.
pub fn rewritten(table: &TableFiles, level: usize, file: &DbFile, base: usize) -> Pick {
    let reason = CompactionReason::Expired;
    if level > 0 {
        return merge(table, Vec::new(), file.sst.bounds().clone(), level..=level, 1.0, reason);
    }
    match from_level0(table, base, 1.0, reason) {
        // A move would leave the file as it is.
        Pick::Move { number, to, score, .. } => Pick::Merge { inputs: vec![(0, number)], to, score, reason },
        pick => pick,
    }
}

/// Merges `inputs`, which are within `bounds`, with everything in `levels` that overlaps them, into the last of
/// `levels`.
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

/// Adds the files after `files` whose lower bounds equal the upper bounds of their predecessors. Bounds are cut to
/// a limited length, so they can be equal although the keys differ. A level orders files with equal bounds by
/// number, and the files that replace `files` get higher numbers, so they would come out behind these neighbours.
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

/// The cheapest compaction of a single file of `level`, with its cost: the number of bytes written for each byte of
/// the file. The cost is 0 if the file can be moved, and less if it has erased rows. `None` if claims block every
/// file.
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

/// Merges every file of the table into the deepest level. There is nothing to do if all files are there already,
/// were written under the current options, and hold nothing that could be removed at `now`, in milliseconds since 1970,
/// unless the table `is_filtered`.
pub fn everything(table: &TableFiles, now: u64, is_filtered: bool) -> Pick {
    let is_done = |(level, file): (usize, &Arc<DbFile>)| {
        let meta = &file.sst.meta;
        level == DEEPEST
            && file.number >= table.info.since
            && file.sst.slice.is_none()
            && meta.history.is_none()
            && meta.range_erases.is_none()
            && meta.main.is_none_or(|main| main.totals.erased == 0)
            && !file.has_expired_by(now)
    };
    if table.files().next().is_none() || !is_filtered && table.files().all(is_done) {
        return Pick::Nothing;
    }
    let inputs = table.files().map(|(level, file)| (level, file.number)).collect();
    Pick::Merge { inputs, to: DEEPEST, score: 1.0, reason: CompactionReason::Asked }
}

#[cfg(test)]
pub mod tests;

//! Finds files whose rows have expired, and picks what gives their space back. The picks depend only on the files of a
//! table and on the time. This module does not know how a pick is done.
//!
//! A file in which every put has expired has nothing for a reader. But its rows still hide older rows of their keys, as
//! erases would. So it can go at once only if no older file has keys in its range, or if those files go as well.

use super::claim::Claim;
use super::pick::{Pick, overlapping, rewritten};
use crate::manifest::{DbFile, TableFiles};
use os::sync::Arc;
use std::collections::HashSet;

/// A file is rewritten when at least this part of the bytes of its keys and values has expired. So the work for a row
/// that stays is at most three times that for a row that goes.
const SHARE: u64 = 4;

/// Fewer expired bytes than this are no reason to rewrite a file.
const MIN_BYTES: u64 = 64 << 10;

/// More than the score of any compaction: to drop files is a single edit.
const DROP_SCORE: f64 = 1e15;

/// The files of `table` that have nothing for a reader at `now`, in milliseconds since 1970, and hide nothing.
fn droppable(table: &TableFiles, now: u64) -> Vec<(usize, u64)> {
    let is_over = |file: &DbFile| file.sst.meta.expired_from().is_some_and(|from| from.millis() <= now);
    if !table.files().any(|(_, file)| is_over(file)) {
        return Vec::new();
    }
    let (mut dropped, mut numbers) = (Vec::new(), HashSet::new());
    let (level0, deeper) = table.levels.split_first().expect("a table has levels");
    // From the oldest files to the newest, so that the older files of each are decided.
    for (below, files) in deeper.iter().enumerate().rev() {
        let level = below + 1;
        for file in files.iter().filter(|file| is_over(file)) {
            let is_under = |deeper: usize| overlapping(table, deeper, file.sst.bounds());
            let mut older = (level + 1..table.levels.len()).flat_map(is_under);
            if older.all(|older| numbers.contains(&older.number)) {
                dropped.push((level, file.number));
            }
        }
        numbers.extend(dropped.iter().map(|(_, number)| *number));
    }
    for (i, file) in level0.iter().enumerate().rev().filter(|(_, file)| is_over(file)) {
        let meets = |older: &&Arc<DbFile>| older.sst.bounds().overlaps(file.sst.bounds());
        let deeper = (1..table.levels.len()).flat_map(|level| overlapping(table, level, file.sst.bounds()));
        let mut older = level0[i + 1..].iter().filter(meets).chain(deeper);
        if older.all(|older| numbers.contains(&older.number)) {
            dropped.push((0, file.number));
            numbers.insert(file.number);
        }
    }
    dropped
}

/// Drops the files that have nothing for a reader at `now`, beside the compactions that have claimed `under_way`.
pub fn drop_files(table: &TableFiles, now: u64, under_way: &[Claim]) -> Pick {
    let files = droppable(table, now);
    let is_free = |claim: &Claim| !under_way.iter().any(|other| other.meets(claim));
    let pick = |files: Vec<(usize, u64)>| Pick::Drop { files, score: DROP_SCORE };
    if files.is_empty() {
        return Pick::Nothing;
    }
    // A file that others lie under goes with them or after them, so only a whole set is claimed at once.
    let all = pick(files);
    if all.claim(table).is_some_and(|claim| is_free(&claim)) { all } else { Pick::Nothing }
}

/// Whether a rewrite of `file` at `now` is worth its work.
fn is_due(file: &DbFile, now: u64) -> bool {
    let Some(expiry) = file.sst.meta.expiry.as_ref().filter(|_| file.has_expired_by(now)) else { return false };
    expiry.expired_bytes(now) >= least_bytes(file)
}

/// The expired bytes from which on a rewrite of `file` is worth its work.
fn least_bytes(file: &DbFile) -> u64 {
    (file.sst.meta.user_bytes / SHARE).max(MIN_BYTES)
}

/// Rewrites the file with the most expired bytes at `now`, beside the compactions that have claimed `under_way`. Level
/// 0 is merged into the level `base`.
pub fn pick(table: &TableFiles, base: usize, now: u64, under_way: &[Claim]) -> Pick {
    let mut files: Vec<_> = table.files().filter(|(_, file)| is_due(file, now)).collect();
    let expired = |file: &DbFile| file.sst.meta.expiry.as_ref().map_or(0, |expiry| expiry.expired_bytes(now));
    files.sort_by_key(|(_, file)| std::cmp::Reverse(expired(file)));
    let is_free = |pick: &Pick| {
        let claim = pick.claim(table);
        claim.is_some_and(|claim| !under_way.iter().any(|other| other.meets(&claim)))
    };
    let picks = files.into_iter().map(|(level, file)| rewritten(table, level, file, base));
    picks.filter(|pick| *pick != Pick::Nothing).find(is_free).unwrap_or(Pick::Nothing)
}

/// The first time after `now` at which a file of `table` will be due for one of these picks; `None` if none will be.
pub fn next(table: &TableFiles, now: u64) -> Option<u64> {
    let times = table.files().flat_map(|(_, file)| {
        let meta = &file.sst.meta;
        let whole = meta.expired_from().map(|from| from.millis());
        let part = meta.expiry.as_ref().and_then(|expiry| expiry.time_of(least_bytes(file)));
        [whole, part].into_iter().flatten()
    });
    times.filter(|time| *time > now).min()
}

#[cfg(test)]
mod tests;

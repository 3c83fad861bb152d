//! Turns range erases that all readers see into slices, which cut the hidden rows off older files without rewriting
//! them. A file without any rows left is removed at once, and one that has lost more than half of its bytes is
//! rewritten by a later compaction. This module does not know how a merge handles range erases.
//!
//! A range erase hides rows in its own file and in older ones. For each key, an older file has only older versions.
//! So once no reader is older than the range erase, no reader sees a row of an older file in its range. The range
//! erase itself stays in its file, until a merge drops it because no deeper level has keys in the range of the
//! merge.

use crate::base::boundaries::Boundaries;
use crate::base::error::Result;
use crate::core::Core;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::edit::MAX_RANGES;
use crate::manifest::{DbFile, Edit, TableFiles};
use os::sync::atomic::Ordering;
use pages::{Admit, PageKind, Reason, Session, retry};
use sst::format::meta::MAX_BOUND_BYTES;
use sst::{EraseCursor, Estimate, KeyRange, RangeErase, RowRanges, Slice, Version, successor};
use std::ops::Bound;

/// One call of [`cut`] reads at most this many range erases, because each may cost a few page reads in each file.
const MAX_ERASES: usize = 1000;

/// The key ranges of these range erases, called *regions*, take at most this many bytes of memory. A thousand
/// regions with keys of 64 KiB would take more than a hundred times as much.
const MAX_REGION_BYTES: usize = 1 << 20;

/// A cut is worthwhile if it takes this many bytes off the file, because it makes the file's entry in the manifest
/// longer.
const WORTH_BYTES: u64 = 256 << 10;

/// A cut is also worthwhile if it removes at least one in this many of the rows that the table sees in the file.
const WORTH_SHARE: u64 = 8;

/// What is left of a file after a cut.
#[derive(Debug, PartialEq, Eq)]
pub enum Remainder {
    /// The whole file: nothing was cut off.
    All,
    /// A part of the file.
    Part(Slice),
    /// No part of the file.
    Nothing,
}

/// Whether `table` has range erases that [`cut`] may turn into slices once no reader is older than these range
/// erases.
pub fn is_waiting(table: &TableFiles) -> bool {
    table.files().any(|(_, file)| may_cut(file, Version::MAX))
}

/// Whether `table` has range erases that [`cut`] may turn into slices now.
pub fn is_due(table: &TableFiles, boundaries: &Boundaries) -> bool {
    table.files().any(|(_, file)| may_cut(file, boundaries.oldest()))
}

/// Whether `file` may have range erases up to `oldest` that were not turned into slices yet.
fn may_cut(file: &DbFile, oldest: Version) -> bool {
    file.sst.meta.range_erases.is_some() && file.cut_through.load(Ordering::Relaxed) < file.age().min(oldest.0)
}

/// Cuts off rows that range erases of `table` hide from all readers, who read at `boundaries`. Returns whether
/// anything was cut. The caller makes sure that no compaction of `table` is under way or begins.
///
/// A file that cannot be read stays as it is. Its next reader gets the error, and the range erase goes on hiding
/// the rows.
///
/// # Errors
///
/// Fails as [`Core::install`] does.
pub fn cut(core: &Core, table: &TableFiles, boundaries: &Boundaries) -> Result<bool> {
    if !is_due(table, boundaries) {
        return Ok(false);
    }
    let oldest = boundaries.oldest();
    let is_new = |file: &DbFile| may_cut(file, oldest);
    let session = Session::new(&core.env.cache, Reason::Compaction, Admit::Pass);
    let mut regions: Vec<KeyRange> = Vec::new();
    let mut edits = Vec::new();
    let mut left = (MAX_ERASES, MAX_REGION_BYTES);
    let (level0, deeper) = table.levels.split_first().expect("a table has levels");
    let sources = level0.iter().map(|file| (0, std::slice::from_ref(file)));
    let sources = sources.chain((1u8..).zip(deeper).map(|(level, files)| (level, files.as_slice())));
    for (level, files) in sources {
        for file in files {
            if core.background.is_closing() {
                return Ok(false);
            }
            let (table, number) = (table.info.id, file.number);
            let (left, hidden_bytes) = without_worth(&session, file, &regions).unwrap_or((Remainder::All, 0));
            // If an edit replaces this `DbFile`, the new one takes over `hidden_bytes`.
            file.hidden_bytes.fetch_add(hidden_bytes, Ordering::Relaxed);
            match left {
                Remainder::All => {}
                Remainder::Part(slice) => edits.push(Edit::SliceFile { table, level, number, slice: Some(slice) }),
                Remainder::Nothing => edits.push(Edit::RemoveFile { table, level, number }),
            }
        }
        for file in files.iter().filter(|file| is_new(file)) {
            // If an edit replaces this `DbFile`, the new one takes over `cut_through`.
            file.cut_through.fetch_max(oldest.0, Ordering::Relaxed);
            let found = regions_of(&session, file, oldest, &mut left).unwrap_or_default();
            file.self_hidden_bytes.store(bytes_in(&session, file, &found).unwrap_or(0), Ordering::Relaxed);
            found.into_iter().for_each(|region| add(&mut regions, region));
        }
    }
    if !edits.is_empty() {
        core.install(&edits, FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
    }
    Ok(!edits.is_empty())
}

/// The regions in which range erases of `file` hide all older versions from readers at `oldest` or later. Reads at
/// most `erases_left` range erases, whose regions take at most `bytes_left` bytes. Range erases beyond these limits
/// are not turned into slices, but still hide their rows.
fn regions_of(
    session: &Session,
    file: &DbFile,
    oldest: Version,
    (erases_left, bytes_left): &mut (usize, usize),
) -> Result<Vec<KeyRange>> {
    let mut cursor = EraseCursor::new(file.sst.clone());
    let mut regions: Vec<KeyRange> = Vec::new();
    let mut next = retry(session, || cursor.seek_first(session))?;
    while let Some(RangeErase { keys, versions }) = next.take_if(|_| *erases_left > 0) {
        *erases_left -= 1;
        if versions.iter().any(|&version| version <= oldest) {
            match regions.last_mut() {
                // A range erase is stored in pieces where others begin or end inside it. Join the pieces to one
                // region.
                Some(last) if last.touches(&keys) => last.join(keys),
                _ => {
                    let bytes = size_of::<KeyRange>() + keys.start.len() + keys.end.as_ref().map_or(0, Vec::len);
                    let Some(rest) = bytes_left.checked_sub(bytes) else { break };
                    *bytes_left = rest;
                    regions.push(keys);
                }
            }
        }
        next = retry(session, || cursor.next(session))?;
    }
    Ok(regions)
}

/// Adds a region to `regions`, which are sorted and do not touch each other.
fn add(regions: &mut Vec<KeyRange>, mut region: KeyRange) {
    let first = regions.partition_point(|other| other.end.as_ref().is_some_and(|end| *end < region.start));
    let last = first + regions[first..].iter().take_while(|other| other.touches(&region)).count();
    regions.drain(first..last).for_each(|other| region.join(other));
    regions.insert(first, region);
}

/// What is left of `file` without the keys in `regions`. The regions are sorted and do not touch each other.
///
/// # Errors
///
/// Fails if a page of the file cannot be read.
pub fn without(session: &Session, file: &DbFile, regions: &[KeyRange]) -> Result<Remainder> {
    Ok(cut_off(session, file, regions, false)?.0)
}

/// Like [`without`], but makes only cuts that are worthwhile, and no more than one edit of the manifest can
/// describe. Also returns roughly how many bytes in the regions were not cut off.
///
/// # Errors
///
/// Fails as [`without`] does.
fn without_worth(session: &Session, file: &DbFile, regions: &[KeyRange]) -> Result<(Remainder, u64)> {
    cut_off(session, file, regions, true)
}

fn cut_off(session: &Session, file: &DbFile, regions: &[KeyRange], if_worth_it: bool) -> Result<(Remainder, u64)> {
    let sst = &file.sst;
    let bounds = sst.bounds();
    let first = regions.partition_point(|region| !region.ends_after(&bounds.low));
    let regions = || regions[first..].iter().take_while(|region| bounds.meets(region));
    if regions().any(|region| bounds.begins_in(region) && bounds.ends_in(region)) {
        return Ok((Remainder::Nothing, 0));
    }
    let mut hidden_bytes = 0;
    let (before, all) = (sst.rows(), sst.meta.rows());
    let mut slice = Slice { rows: before.clone(), bounds: bounds.clone(), bytes: sst.visible_bytes() };
    for region in regions() {
        if if_worth_it {
            let most = rows_in(session, file, region)?;
            if !is_worth_it(&before, &slice, most.high) {
                hidden_bytes += share(slice.bytes, most.low.midpoint(most.high), slice.rows.count());
                continue;
            }
        }
        let start = if bounds.begins_in(region) { 0 } else { rows_before(session, file, &region.start)? };
        let end = match &region.end {
            Some(end) if !bounds.ends_in(region) => rows_before(session, file, end)?,
            _ => all,
        };
        if end < start {
            let why = format!("{start} rows come before one key and {end} before a greater one");
            return Err(sst.file.corrupt(PageKind::Data, 0, why).into());
        }
        let gone = slice.rows.count_within(start..end);
        let left = RowRanges::new(slice.rows.within(0..start).iter().chain(slice.rows.within(end..all).iter()));
        if if_worth_it && (!is_worth_it(&before, &slice, gone) || left.iter().count() > MAX_RANGES) {
            hidden_bytes += share(slice.bytes, gone, slice.rows.count());
            continue;
        }
        slice.bytes -= share(slice.bytes, gone, slice.rows.count());
        slice.rows = left;
        match &region.end {
            Some(end) if bounds.begins_in(region) => {
                let low = &end[..end.len().min(MAX_BOUND_BYTES)];
                slice.bounds.low = low.to_vec().max(slice.bounds.low);
            }
            _ if bounds.ends_in(region) => slice.bounds.high = outward(&region.start).or(slice.bounds.high),
            _ => {}
        }
    }
    // No range erase ends after the high bound. So a slice with equal bounds can have a row, but no range erase.
    let has_room = slice.bounds.high.as_ref().is_none_or(|high| slice.bounds.low < *high);
    if slice.rows.is_empty() && (sst.meta.range_erases.is_none() || !has_room) {
        return Ok((Remainder::Nothing, 0));
    }
    let is_new = slice.rows != before || slice.bounds != *bounds;
    Ok((if is_new { Remainder::Part(slice) } else { Remainder::All }, hidden_bytes))
}

/// A bound that is not less than `key`: the key itself or, if it is too long for a bound, a shorter string; `None`
/// if there is none.
fn outward(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() <= MAX_BOUND_BYTES { Some(key.to_vec()) } else { successor(&key[..MAX_BOUND_BYTES]) }
}

/// The share of `bytes` that `part` is of `whole`: `bytes * part / whole`.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    (u128::from(bytes) * u128::from(part) / u128::from(whole.max(1))) as u64
}

/// Whether it is worthwhile to cut `gone` rows off `slice`. `before` are the rows that the table saw before the
/// first cut, and `slice` is what the cuts so far have left.
fn is_worth_it(before: &RowRanges, slice: &Slice, gone: u64) -> bool {
    let bytes = share(slice.bytes, gone, slice.rows.count());
    gone > 0 && (bytes >= WORTH_BYTES || gone.saturating_mul(WORTH_SHARE) >= before.count())
}

/// A lower and an upper bound on the number of rows in `region` that the table sees. Reads only index nodes, so
/// that many small regions cost no data pages.
fn rows_in(session: &Session, file: &DbFile, region: &KeyRange) -> Result<Estimate> {
    Ok(retry(session, || file.sst.totals_between(session, region.low(), region.high()))?.rows)
}

/// At most this many regions are looked at to estimate how many bytes of its own rows a file hides.
const MAX_OWN_REGIONS: usize = 64;

/// Roughly the bytes of the rows of `file` in `regions`.
fn bytes_in(session: &Session, file: &DbFile, regions: &[KeyRange]) -> Result<u64> {
    let (bytes, rows) = (file.sst.visible_bytes(), file.sst.rows().count());
    if rows == 0 {
        return Ok(0);
    }
    let mut inside = 0;
    for region in regions.iter().take(MAX_OWN_REGIONS) {
        let found = rows_in(session, file, region)?;
        inside += found.low.midpoint(found.high);
    }
    Ok(share(bytes, inside.min(rows), rows))
}

/// The number of rows of the main tree with keys less than `key`, including rows that the table does not see.
fn rows_before(session: &Session, file: &DbFile, key: &[u8]) -> Result<u64> {
    let before = retry(session, || file.sst.rows_between(session, Bound::Unbounded, Bound::Excluded(key)))?;
    Ok(before.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: &str, end: &str) -> KeyRange {
        KeyRange { start: start.into(), end: (end != "-").then(|| end.into()) }
    }

    fn check_joined(regions: &[(&str, &str)], expected: &[(&str, &str)]) {
        let mut joined = Vec::new();
        for (start, end) in regions {
            add(&mut joined, region(start, end));
        }
        let expected: Vec<KeyRange> = expected.iter().map(|(start, end)| region(start, end)).collect();
        assert_eq!(joined, expected, "{regions:?}");
    }

    #[test]
    fn regions_that_meet_are_one() {
        check_joined(&[("a", "c"), ("e", "g")], &[("a", "c"), ("e", "g")]);
        check_joined(&[("e", "g"), ("a", "c")], &[("a", "c"), ("e", "g")]);
        check_joined(&[("e", "g"), ("a", "c"), ("c", "e")], &[("a", "g")]);
        check_joined(&[("a", "c"), ("b", "-"), ("x", "y")], &[("a", "-")]);
        check_joined(&[("a", "z"), ("b", "c")], &[("a", "z")]);
        check_joined(&[("b", "c"), ("d", "e"), ("a", "-")], &[("a", "-")]);
    }
}

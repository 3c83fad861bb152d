//! Turning range erases that everybody sees into slices: what they hide in older files is cut off, without rewriting it.
//! A file of which nothing is left is gone at once; the rest of one that lost half is rewritten by the next compaction.
//!
//! A range erase hides rows of its own source and of all older ones, and for one key older sources have older versions
//! only. So if no reader is older than the erase, nobody sees any version of what older sources have in its range. The
//! erase itself stays where it is until a merge at the bottom drops it.

use crate::core::Core;
use crate::error::Result;
use crate::files::fresh::FreshFiles;
use crate::manifest::edit::MAX_RANGES;
use crate::manifest::{DbFile, Edit, TableFiles};
use os::sync::atomic::Ordering;
use pages::{Admit, PageKind, Reason, Session, retry};
use sst::format::meta::{MAX_BOUND_BYTES, successor};
use sst::{EraseCursor, KeyRange, RangeErase, RowRanges, Slice, Version};
use std::ops::Bound;

/// Most range erases that are looked at together: each may cost a few page reads a file.
const MAX_ERASES: usize = 1000;

/// Most memory for the regions of range erases that are looked at together. Keys of 64 KiB would take more than a hundred
/// times as much.
const MAX_REGION_BYTES: usize = 1 << 20;

/// A cut is worth a longer entry in the manifest if it takes this much of the file, or [`WORTH_SHARE`] of what is seen.
const WORTH_BYTES: u64 = 256 << 10;
const WORTH_SHARE: u64 = 8;

/// What is left of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Left {
    /// What was there.
    All,
    /// A part.
    Part(Slice),
    /// Nothing.
    Nothing,
}

/// Whether `table` has range erases that a later [`run`] may turn into cuts, when no reader is older any more.
pub fn is_waiting(table: &TableFiles) -> bool {
    let may_cut =
        |file: &DbFile| file.sst.meta.range_erases.is_some() && file.cut_through.load(Ordering::Relaxed) < file.age();
    table.files().any(|(_, file)| may_cut(file))
}

/// Cuts what range erases of `table` hide from everybody, who reads at one of `boundaries`, off the files that hold it;
/// whether there was anything. Whoever calls it changes levels.
///
/// A file that cannot be read is left as it is: its reader will be told, and a range erase hides as well as a cut.
pub fn run(core: &Core, table: &TableFiles, boundaries: &[Version]) -> Result<bool> {
    let oldest = *boundaries.first().expect("the newest version is one");
    let is_new = |file: &DbFile| {
        file.sst.meta.range_erases.is_some() && file.cut_through.load(Ordering::Relaxed) < file.age().min(oldest.0)
    };
    if !table.files().any(|(_, file)| is_new(file)) {
        return Ok(false);
    }
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
            match without(&session, file, &regions, true) {
                Ok(Left::All) | Err(_) => {}
                Ok(Left::Part(slice)) => edits.push(Edit::SliceFile { table, level, number, slice: Some(slice) }),
                Ok(Left::Nothing) => edits.push(Edit::RemoveFile { table, level, number }),
            }
        }
        for file in files.iter().filter(|file| is_new(file)) {
            // Its entry may be made anew by the edits, and takes this over.
            file.cut_through.fetch_max(oldest.0, Ordering::Relaxed);
            let found = regions_of(&session, file, oldest, &mut left).unwrap_or_default();
            found.into_iter().for_each(|region| add(&mut regions, region));
        }
    }
    if !edits.is_empty() {
        core.install(&edits, FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
    }
    Ok(!edits.is_empty())
}

/// Where range erases of `file` hide all older versions from readers at `oldest` and later. At most so many erases, and so
/// many bytes of regions, as are `left`: the others go on hiding.
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
                // Erases that were cut where others begin or end are one region.
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

/// Adds a region to others, which are in order and apart.
fn add(regions: &mut Vec<KeyRange>, mut region: KeyRange) {
    let first = regions.partition_point(|other| other.end.as_ref().is_some_and(|end| *end < region.start));
    let last = first + regions[first..].iter().take_while(|other| other.touches(&region)).count();
    regions.drain(first..last).for_each(|other| region.join(other));
    regions.insert(first, region);
}

/// What is left of `file` without the keys in `regions`, which are in order and apart. With `if_worth_it` small cuts are not
/// made, and no more than the manifest takes; otherwise every row in the regions is gone.
pub fn without(session: &Session, file: &DbFile, regions: &[KeyRange], if_worth_it: bool) -> Result<Left> {
    let sst = &file.sst;
    let bounds = sst.bounds();
    let first = regions.partition_point(|region| !region.ends_after(&bounds.low));
    let regions = || regions[first..].iter().take_while(|region| bounds.meets(region));
    if regions().any(|region| bounds.begins_in(region) && bounds.ends_in(region)) {
        return Ok(Left::Nothing);
    }
    let (before, all) = (sst.rows(), sst.meta.rows());
    let mut slice = Slice { rows: before.clone(), bounds: bounds.clone(), bytes: sst.visible_bytes() };
    for region in regions() {
        if if_worth_it && !is_worth_it(&before, &slice, most_rows_in(session, file, region)?) {
            continue;
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
    // Range erases end before the high bound: between equal bounds there could be a row only.
    let has_room = slice.bounds.high.as_ref().is_none_or(|high| slice.bounds.low < *high);
    if slice.rows.is_empty() && (sst.meta.range_erases.is_none() || !has_room) {
        return Ok(Left::Nothing);
    }
    let is_new = slice.rows != before || slice.bounds != *bounds;
    Ok(if is_new { Left::Part(slice) } else { Left::All })
}

/// A string not less than `key`, short enough for a bound; `None` if there is none.
fn outward(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() <= MAX_BOUND_BYTES { Some(key.to_vec()) } else { successor(&key[..MAX_BOUND_BYTES]) }
}

/// `part` of `whole`, as a share of `bytes`.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    (u128::from(bytes) * u128::from(part) / u128::from(whole.max(1))) as u64
}

/// Whether to cut `gone` rows off `slice`, which is what is left of the rows `before`.
fn is_worth_it(before: &RowRanges, slice: &Slice, gone: u64) -> bool {
    let bytes = share(slice.bytes, gone, slice.rows.count());
    gone > 0 && (bytes >= WORTH_BYTES || gone.saturating_mul(WORTH_SHARE) >= before.count())
}

/// At most so many of the rows that are seen lie in `region`, as index nodes tell: most regions of many are small, and no
/// data page is read for those.
fn most_rows_in(session: &Session, file: &DbFile, region: &KeyRange) -> Result<u64> {
    Ok(retry(session, || file.sst.totals_between(session, region.low(), region.high()))?.rows.high)
}

/// How many main rows of the file, seen or not, have keys less than `key`.
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

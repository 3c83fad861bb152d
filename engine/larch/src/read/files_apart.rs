//! Compares the files of two tables: which are the same file, so that nobody has to read them to find out how the
//! tables differ. The tables may be of two databases. This module reads nothing.
//!
//! Copies and branches share files, and so do a table and its clone. Numbers of files prove nothing: two copies of a
//! database give the same numbers to files of their own. The meta of a file does: it has the random id from which all
//! checksums of the file are computed, and the addresses of the roots with the checksums of their pages. A page has the
//! checksums of the pages under it. So files with equal metas have the same bytes.

use crate::manifest::{DbFile, TableFiles};
use os::sync::Arc;
use sst::{KeyRange, RowRanges, Slice, next_string};
use std::collections::HashMap;

/// The files of one table, as another table sees them. The files of each item are sorted by key and do not overlap.
pub struct FilesApart {
    /// The files that only this table sees.
    pub alone: Vec<Vec<Arc<DbFile>>>,
    /// The rows that only this table sees in files of both. Range erases of these files are not meant.
    pub alone_rows: Vec<Vec<Arc<DbFile>>>,
    /// The files that both tables see.
    pub shared: Vec<Vec<Arc<DbFile>>>,
    /// Keys over which the two tables may see different range erases of a shared file.
    pub edges: Vec<KeyRange>,
}

/// Compares the files of `table` that may have keys in `keys` with those of `other`.
pub fn files_apart(table: &TableFiles, other: &TableFiles, keys: &KeyRange) -> FilesApart {
    let mut others: HashMap<u64, Vec<&DbFile>> = HashMap::new();
    for (_, file) in other.files() {
        others.entry(file.sst.meta.file_id).or_default().push(file);
    }
    let mut apart = FilesApart { alone: Vec::new(), alone_rows: Vec::new(), shared: Vec::new(), edges: Vec::new() };
    let (level0, deeper) = table.levels.split_first().expect("a table has levels");
    let groups = level0.iter().map(std::slice::from_ref).chain(deeper.iter().map(|level| level.as_slice()));
    for files in groups {
        let [mut alone, mut alone_rows, mut shared] = [const { Vec::new() }; 3];
        for file in files.iter().filter(|file| file.sst.bounds().meets(keys)) {
            let same = others.get(&file.sst.meta.file_id).into_iter().flatten().find(|other| is_same(file, other));
            let Some(same) = same else {
                alone.push(file.clone());
                continue;
            };
            shared.push(file.clone());
            let rows = without(&file.sst.rows(), &same.sst.rows());
            let bounds = file.sst.bounds();
            if !rows.is_empty() {
                // A bound may be wider than the keys.
                let slice = Slice { rows, bounds: bounds.clone(), bytes: file.sst.visible_bytes() };
                alone_rows.push(Arc::new(file.sliced(Some(slice))));
            }
            if file.sst.meta.range_erases.is_some() {
                let others = same.sst.bounds();
                let lows = [&bounds.low, &others.low].map(|low| Some(low.as_slice()));
                let highs = [bounds, others].map(|bounds| bounds.high.as_deref());
                apart.edges.extend([lows, highs].into_iter().filter_map(between).filter_map(|edge| edge.meet(keys)));
            }
        }
        for (group, all) in
            [(alone, &mut apart.alone), (alone_rows, &mut apart.alone_rows), (shared, &mut apart.shared)]
        {
            if !group.is_empty() {
                all.push(group);
            }
        }
    }
    apart
}

/// The keys from one bound to another, with both; `None` if they are equal. A bound of `None` comes after all keys.
fn between([a, b]: [Option<&[u8]>; 2]) -> Option<KeyRange> {
    let start = a.into_iter().chain(b).min().filter(|_| a != b)?.to_vec();
    Some(KeyRange { start, end: a.max(b).filter(|_| a.is_some() && b.is_some()).map(next_string) })
}

/// Whether two files have the same bytes, and their rows the same versions.
fn is_same(a: &DbFile, b: &DbFile) -> bool {
    a.sst.version_offset == b.sst.version_offset && a.sst.meta == b.sst.meta
}

/// The rows of `all` that are not in `others`.
fn without(all: &RowRanges, others: &RowRanges) -> RowRanges {
    let mut left = Vec::new();
    for range in all.iter() {
        let mut start = range.start;
        for gone in others.within(range.clone()).iter() {
            left.push(start..gone.start);
            start = gone.end;
        }
        left.push(start..range.end);
    }
    RowRanges::new(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_others_are_those_that_a_list_leaves() {
        let set = |bits: u32| RowRanges::new((0..6).filter(|row| bits >> row & 1 != 0).map(|row: u64| row..row + 1));
        for a in 0u32..64 {
            for b in 0u32..64 {
                assert_eq!(without(&set(a), &set(b)), set(a & !b), "{a:#b} without {b:#b}");
            }
        }
    }
}

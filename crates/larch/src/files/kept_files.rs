//! Decides which input files a merge may leave as they are. It knows their metas and reads nothing; whether no other
//! input has keys between theirs is found out by the merge.
//!
//! A merge *takes over* a file, which means that it leaves the file as it is, if no other input has keys between those
//! of the file (decision 55). Such a file lies between two of the outputs. So its bounds must be exact, and a merge
//! that rewrote it would find nothing in it to remove.

use crate::base::table::TableInfo;
use crate::files::output::is_fair_length;
use crate::manifest::{DbFile, Level};
use sst::format::filter::FilterForm;
use sst::format::meta::MAX_BOUND_BYTES;
use std::collections::HashSet;

/// The numbers of the files that a merge may leave as they are.
#[derive(Debug, Default)]
pub struct KeptFiles(HashSet<u64>);

impl KeptFiles {
    /// The kept files among `sources`, the inputs of a merge of `table` into files of `file_bytes`. `bottom` says
    /// that no deeper level has keys in the range of the inputs, so that the merge removes erases.
    pub fn among(table: &TableInfo, sources: &[Level], file_bytes: u64, bottom: bool) -> Self {
        let files = || sources.iter().flat_map(|level| level.iter());
        let is_erased = |file: &DbFile| {
            let others = files().filter(|other| other.sst.meta.range_erases.is_some());
            others.into_iter().any(|other| other.sst.bounds().overlaps(file.sst.bounds()))
        };
        let may_stay = |file: &DbFile| {
            let sst = &file.sst;
            let is_exact = |bound: &[u8]| bound.len() < MAX_BOUND_BYTES;
            is_fair_length(file.bytes(), file_bytes)
                && file.number >= table.since
                && sst.slice.is_none()
                && sst.meta.history.is_none()
                && sst.meta.main.is_some_and(|main| !bottom || main.totals.erased == 0)
                && sst.meta.filter.is_none_or(|filter| filter.form == FilterForm::Blocks)
                && is_exact(&sst.bounds().low)
                && sst.bounds().high.as_deref().is_some_and(is_exact)
        };
        Self(files().filter(|file| may_stay(file) && !is_erased(file)).map(|file| file.number).collect())
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `file` is one of them.
    pub fn may_keep(&self, file: &DbFile) -> bool {
        self.0.contains(&file.number)
    }
}

/// Whether `key` comes after `file`, which is one of [`KeptFiles`], and the bounds of a file that begins at `key`
/// come after it, too.
pub fn is_after(key: &[u8], file: &DbFile) -> bool {
    file.sst.bounds().high.as_deref().is_some_and(|high| &key[..key.len().min(MAX_BOUND_BYTES)] > high)
}

#[cfg(test)]
mod tests;

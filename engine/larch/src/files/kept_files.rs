//! Decides which input files a merge may leave as they are. This module knows only the metas of the files, and
//! reads nothing.
//!
//! A merge *takes over* a file if no other input has keys between the keys of the file: it leaves the file as it
//! is, between two outputs (decision 55). The merge itself finds out whether other inputs have such keys. This
//! module chooses files with exact bounds from which a rewrite would remove nothing.

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
    /// Chooses the files among `sources`, the inputs of a merge with outputs of about `file_bytes`, that it may
    /// leave as they are. `bottom` means that no deeper level has keys in the range of the inputs, so the merge
    /// drops erases.
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

    /// Whether no file may be left as it is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `file` may be left as it is.
    pub fn may_keep(&self, file: &DbFile) -> bool {
        self.0.contains(&file.number)
    }
}

/// Whether `key`, cut to the length of a bound, comes after the high bound of `file`, which is one of the
/// [`KeptFiles`]. So the bounds of a file that begins at `key` come after those of `file`, too.
pub fn is_after(key: &[u8], file: &DbFile) -> bool {
    file.sst.bounds().high.as_deref().is_some_and(|high| &key[..key.len().min(MAX_BOUND_BYTES)] > high)
}

#[cfg(test)]
mod tests;

//! Merges the range erases of several files into one sorted stream of fragments. A fragment is a range of keys that
//! are all covered by the same range erases. A [`CoverStream`] moves along such a stream together with sorted rows.
//! The stream holds one range erase and one page for each file with range erases around the current key, so its
//! memory does not grow with the number of range erases. This module does not know what is done with the fragments.
//!
//! ```text
//! file 1     a ─── @5 ─────── m                 p ── @6 ── s
//! file 2             f ─────── @9 ─────── t
//! fragments  a ───── f ────── m ─ p ──── s ── t
//!              [5]     [9, 5]  [9] [9, 6]  [9]
//! ```
//!
//! A fragment has the versions of its range erases. Of versions that no reader can tell apart, it has only the
//! newest, see [`keep`].

use super::keep;
use crate::base::boundaries::Boundaries;
use crate::base::error::Result;
use crate::gauge::Holding;
use crate::manifest::{DbFile, Level};
use os::sync::Arc;
use pages::{PageKind, Session, retry};
use sst::{EraseCursor, KeyRange, RangeErase, Readahead, Version};

/// The fragments of the range erases of several files, in key order.
pub struct EraseMerge<'s> {
    session: &'s Session,
    boundaries: &'s Boundaries,
    readahead: Readahead,
    all_bytes: u64,
    /// Files that were not opened yet, because their range erases all lie after the fragments so far. Sorted by low
    /// bound, descending.
    to_come: Vec<Arc<DbFile>>,
    open: Vec<OpenErases>,
    /// The memory of `open`.
    memory: Holding,
}

/// A file whose range erases are being read.
struct OpenErases {
    file: Arc<DbFile>,
    cursor: EraseCursor,
    /// The part of the current range erase that is in no fragment yet.
    rest: RangeErase,
}

impl<'s> EraseMerge<'s> {
    /// Merges the range erases of all files of `sources`, for readers at `boundaries`. Nothing is read yet. The
    /// merge of these files reads `all_bytes` bytes in all, and shares `readahead`: the range erases of a file get
    /// a part in proportion to their bytes.
    pub fn new(
        session: &'s Session,
        sources: &[Level],
        boundaries: &'s Boundaries,
        (readahead, all_bytes): (Readahead, u64),
        memory: Holding,
    ) -> Self {
        let files = sources.iter().flat_map(|level| level.iter());
        let mut to_come: Vec<Arc<DbFile>> =
            files.filter(|file| file.sst.meta.range_erases.is_some()).map(Arc::clone).collect();
        to_come.sort_by(|a, b| b.sst.bounds().low.cmp(&a.sst.bounds().low));
        Self { session, boundaries, readahead, all_bytes, to_come, open: Vec::new(), memory }
    }

    /// The next fragment, or `None` after the last fragment.
    ///
    /// # Errors
    ///
    /// Fails if a page cannot be read, or if range erases are out of order.
    pub fn next(&mut self) -> Result<Option<RangeErase>> {
        // Open files until all unopened ones begin at or after the end of the next fragment.
        let (start, end) = loop {
            let Some(start) = self.open.iter().map(|open| &open.rest.keys.start).min() else {
                if self.open_next()? { continue } else { return Ok(None) }
            };
            let edges = self.open.iter().filter_map(|open| match &open.rest {
                rest if rest.keys.start == *start => rest.keys.end.as_ref(),
                rest => Some(&rest.keys.start),
            });
            let end = edges.min();
            let to_come = self.to_come.last().map(|file| &file.sst.bounds().low);
            if to_come.is_none_or(|low| end.is_some_and(|end| end <= low)) {
                break (start.clone(), end.cloned());
            }
            self.open_next()?;
        };
        let mut versions = Vec::new();
        let mut i = 0;
        while let Some(open) = self.open.get_mut(i) {
            if open.rest.keys.start != start {
                i += 1;
                continue;
            }
            versions.extend_from_slice(&open.rest.versions);
            if let Some(end) = end.as_ref().filter(|end| open.rest.keys.end.as_ref() != Some(end)) {
                open.rest.keys.start.clone_from(end);
                i += 1;
            } else if open.step(self.session)? {
                i += 1;
            } else {
                self.open.swap_remove(i);
            }
        }
        versions.sort_unstable_by(|a, b| b.cmp(a));
        versions.dedup();
        let versions = keep::newest_of_each_interval(self.boundaries, &versions);
        self.memory.set(self.open.iter().map(OpenErases::memory_bytes).sum());
        Ok(Some(RangeErase { keys: KeyRange { start, end }, versions }))
    }

    /// Opens the next file of `to_come`. Returns false if no file is left.
    fn open_next(&mut self) -> Result<bool> {
        let Some(file) = self.to_come.pop() else { return Ok(false) };
        let bytes = file.sst.meta.range_erases.tree().map_or(0, |tree| tree.totals.bytes);
        let readahead = self.readahead.share(bytes, self.all_bytes);
        let mut cursor = EraseCursor::new(file.sst.clone()).with_readahead(readahead);
        if let Some(rest) = retry(self.session, || cursor.seek_first(self.session))? {
            if rest.keys.start < file.sst.bounds().low {
                return Err(out_of_order(&file, "begins before the bounds of the file"));
            }
            self.open.push(OpenErases { file, cursor, rest });
        }
        Ok(true)
    }
}

impl OpenErases {
    /// Goes to the next range erase of the file. Returns false if no range erase is left.
    fn step(&mut self, session: &Session) -> Result<bool> {
        let Some(next) = retry(session, || self.cursor.next(session))? else { return Ok(false) };
        if self.rest.keys.ends_after(&next.keys.start) {
            return Err(out_of_order(&self.file, "overlaps the one before it"));
        }
        self.rest = next;
        Ok(true)
    }

    fn memory_bytes(&self) -> u64 {
        let RangeErase { keys, versions } = &self.rest;
        (size_of::<Self>() + keys.heap_bytes() + versions.capacity() * size_of::<Version>()) as u64
    }
}

/// The error for a damaged `file` that has a range erase in a wrong place.
#[cold]
fn out_of_order(file: &DbFile, why: &str) -> crate::base::error::Error {
    let at = file.sst.meta.range_erases.tree().map_or(0, |tree| tree.root(false).address.offset);
    file.sst.file.corrupt(PageKind::RangeErase, at, format!("a range erase {why}")).into()
}

/// A position in a stream of range erases, which moves along with sorted rows.
#[derive(Debug)]
pub struct CoverStream<N> {
    /// Returns the next range erase. They are sorted and do not overlap.
    next: N,
    /// The first range erase that ends after the key of the last [`CoverStream::advance`].
    here: Option<RangeErase>,
    is_ended: bool,
}

impl<N: FnMut() -> Result<Option<RangeErase>>> CoverStream<N> {
    /// A position before the first range erase.
    pub fn new(next: N) -> Self {
        Self { next, here: None, is_ended: false }
    }

    /// If the current range erase ends at or before `key`, moves to the next one and returns it. Returns `None` if
    /// the current one ends after `key`, or the stream has ended. Without a `key`, always moves.
    ///
    /// # Errors
    ///
    /// Fails if `next` fails.
    pub fn advance(&mut self, key: Option<&[u8]>) -> Result<Option<&RangeErase>> {
        let is_right = |here: &RangeErase| key.is_some_and(|key| here.keys.ends_after(key));
        if self.is_ended || self.here.as_ref().is_some_and(is_right) {
            return Ok(None);
        }
        self.here = (self.next)()?;
        self.is_ended = self.here.is_none();
        Ok(self.here.as_ref())
    }

    /// Whether no range erase covers a key from the current key up to `last`. The last [`CoverStream::advance`]
    /// must have been to the current key, and no range erase may cover that key.
    pub fn is_clear_to(&self, last: &[u8]) -> bool {
        self.here.as_ref().is_none_or(|here| here.keys.start.as_slice() > last)
    }

    /// The versions of the range erases that cover `key`, newest first. The last [`CoverStream::advance`] must have
    /// been to `key`.
    pub fn of(&self, key: &[u8]) -> &[Version] {
        self.here.as_ref().filter(|here| here.keys.contains(key)).map_or(&[], |here| &here.versions)
    }
}

#[cfg(test)]
mod tests;

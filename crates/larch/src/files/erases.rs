//! Merges the range erases of several files into one sorted stream of fragments. A fragment is a range of keys
//! that are all covered by the same range erases. While sorted rows are read, [`CoverStream`] moves along in such
//! a stream. This module does not know what is done with the fragments. For each file that has range erases around
//! the current key, the stream holds one range erase and one page. So the memory of the stream does not depend on
//! how many range erases the files have.
//!
//! ```text
//! file 1     a ─── @5 ─────── m                 p ── @6 ── s
//! file 2             f ─────── @9 ─────── t
//! fragments  a ───── f ────── m ─ p ──── s ── t
//!              [5]     [9, 5]  [9] [9, 6]  [9]
//! ```
//!
//! A fragment has the versions of its range erases. If no reader can tell some of these versions apart, the
//! fragment has only the newest of them, see [`keep`].

use super::keep;
use crate::base::error::Result;
use crate::gauge::Holding;
use crate::manifest::{DbFile, Level};
use os::sync::Arc;
use pages::{PageKind, Session, retry};
use sst::{EraseCursor, KeyRange, RangeErase, Readahead, Version};

/// The fragments of the range erases of several files, in key order.
pub struct EraseMerge<'s> {
    session: &'s Session,
    boundaries: &'s [Version],
    readahead: Readahead,
    all_bytes: u64,
    /// Files from which nothing was read yet, because all their range erases lie after the fragments that were
    /// returned so far. The files are sorted by their low bounds in descending order.
    to_come: Vec<Arc<DbFile>>,
    open: Vec<OpenErases>,
    /// The memory of `open`.
    memory: Holding,
}

/// A file from which range erases were already read.
struct OpenErases {
    file: Arc<DbFile>,
    cursor: EraseCursor,
    /// The part of the current range erase that is not in any fragment yet.
    rest: RangeErase,
}

impl<'s> EraseMerge<'s> {
    /// Merges the range erases of all files of `sources`, for readers at `boundaries`. Nothing is read yet. Other
    /// readers of the same merge also use `readahead`, and all of them together read `all_bytes` bytes. The range
    /// erases of each file get a share of `readahead` in proportion to their bytes.
    pub fn new(
        session: &'s Session,
        sources: &[Level],
        boundaries: &'s [Version],
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
        // Opens files until every unopened file begins at or after the end of the next fragment.
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

/// The error if `file` has a range erase in a wrong place, so that the file is damaged.
#[cold]
fn out_of_order(file: &DbFile, why: &str) -> crate::base::error::Error {
    let at = file.sst.meta.range_erases.tree().map_or(0, |tree| tree.root(false).address.offset);
    file.sst.file.corrupt(PageKind::RangeErase, at, format!("a range erase {why}")).into()
}

/// A position in a stream of range erases that moves along with sorted rows.
#[derive(Debug)]
pub struct CoverStream<N> {
    /// Returns the next range erase of the stream. The range erases are sorted and do not overlap.
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

    /// If the current range erase ends before or at `key`, goes to the next range erase and returns it. Returns
    /// `None` if the current range erase ends after `key`, or if the stream has ended. Without a `key`, the call
    /// always goes to the next range erase.
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

    /// Whether no range erase covers any key from the current key up to `last`. [`CoverStream::advance`] must have
    /// moved the position to the current key, and no range erase may cover this key.
    pub fn is_clear_to(&self, last: &[u8]) -> bool {
        self.here.as_ref().is_none_or(|here| here.keys.start.as_slice() > last)
    }

    /// The versions of the range erases that cover `key`, the newest first. [`CoverStream::advance`] must have moved
    /// the position to `key`.
    pub fn of(&self, key: &[u8]) -> &[Version] {
        self.here.as_ref().filter(|here| here.keys.contains(key)).map_or(&[], |here| &here.versions)
    }
}

#[cfg(test)]
mod tests;

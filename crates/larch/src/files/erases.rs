//! The range erases of several files as one sorted stream of fragments, and a place in such a stream that follows
//! sorted rows. It does not know what is done with the fragments. For each file that has range erases around the
//! place of the stream, the stream holds one range erase and one page. This does not depend on how many range erases
//! the files have.
//!
//! ```text
//! file 1     a ─── @5 ─────── m                 p ── @6 ── s
//! file 2             f ─────── @9 ─────── t
//! fragments  a ───── f ────── m ─ p ──── s ── t
//!              [5]     [9, 5]  [9] [9, 6]  [9]
//! ```
//!
//! If no reader can tell some versions of a fragment apart, only the newest of them is kept, see [`keep`].

use super::keep;
use crate::base::error::Result;
use crate::gauge::Holding;
use crate::manifest::{DbFile, Level};
use os::sync::Arc;
use pages::{PageKind, Session, retry};
use sst::{EraseCursor, KeyRange, RangeErase, Readahead, Version};

/// The fragments of the range erases of several files, in order.
pub struct EraseMerge<'s> {
    session: &'s Session,
    boundaries: &'s [Version],
    readahead: Readahead,
    all_bytes: u64,
    /// Files whose range erases lie after the fragments given so far. The file with the least bound is the last.
    to_come: Vec<Arc<DbFile>>,
    open: Vec<OpenErases>,
    /// The memory of `open`.
    memory: Holding,
}

/// A file whose range erases have begun.
struct OpenErases {
    file: Arc<DbFile>,
    cursor: EraseCursor,
    /// The part of the range erase at the cursor that is in no fragment yet.
    rest: RangeErase,
}

impl<'s> EraseMerge<'s> {
    /// The range erases of all files of `sources`, for readers at `boundaries`. Reads nothing yet. Everything that
    /// shares `readahead` has `all_bytes` together; the range erases get a share in proportion to their bytes.
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

    /// The next fragment; `None` after the last.
    ///
    /// # Errors
    ///
    /// A page that cannot be read, or range erases that are out of order.
    pub fn next(&mut self) -> Result<Option<RangeErase>> {
        // Opens files until no file that is not open can have a range erase that begins before the end of the
        // fragment.
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
        let versions = keep::newest_of_each_stripe(self.boundaries, &versions);
        self.memory.set(self.open.iter().map(OpenErases::memory_bytes).sum());
        Ok(Some(RangeErase { keys: KeyRange { start, end }, versions }))
    }

    /// Opens the next file of `to_come`; false if none exists.
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
    /// Goes to the next range erase of the file; false if none exists.
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

/// The error about a range erase of `file` that no valid file has.
#[cold]
fn out_of_order(file: &DbFile, why: &str) -> crate::base::error::Error {
    let at = file.sst.meta.range_erases.tree().map_or(0, |tree| tree.root(false).address.offset);
    file.sst.file.corrupt(PageKind::RangeErase, at, format!("a range erase {why}")).into()
}

/// A place in a stream of range erases that follows sorted rows.
#[derive(Debug)]
pub struct CoverStream<N> {
    /// Gives the next range erase. They are sorted and disjoint.
    next: N,
    /// The first range erase that ends after the key asked about last.
    here: Option<RangeErase>,
    is_ended: bool,
}

impl<N: FnMut() -> Result<Option<RangeErase>>> CoverStream<N> {
    /// A place before the first range erase that `next` gives.
    pub fn new(next: N) -> Self {
        Self { next, here: None, is_ended: false }
    }

    /// If the range erase at the place ends before or at `key`, goes to the next range erase and returns it. Returns
    /// `None` once the place is right for `key`, or the stream has ended. Without a key it always goes to the next
    /// range erase.
    ///
    /// # Errors
    ///
    /// The error of `next`.
    pub fn advance(&mut self, key: Option<&[u8]>) -> Result<Option<&RangeErase>> {
        let is_right = |here: &RangeErase| key.is_some_and(|key| here.keys.ends_after(key));
        if self.is_ended || self.here.as_ref().is_some_and(is_right) {
            return Ok(None);
        }
        self.here = (self.next)()?;
        self.is_ended = self.here.is_none();
        Ok(self.here.as_ref())
    }

    /// Whether no range erase lies over any key from the key of the place up to `last`. The place must be right for
    /// its key, and no range erase lies over this key, see [`CoverStream::advance`].
    pub fn is_clear_to(&self, last: &[u8]) -> bool {
        self.here.as_ref().is_none_or(|here| here.keys.start.as_slice() > last)
    }

    /// Versions of the range erases over `key`, newest first. The place must be right for `key`, see
    /// [`CoverStream::advance`].
    pub fn of(&self, key: &[u8]) -> &[Version] {
        self.here.as_ref().filter(|here| here.keys.contains(key)).map_or(&[], |here| &here.versions)
    }
}

#[cfg(test)]
mod tests;

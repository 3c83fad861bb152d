//! A cursor over the range erases of a file, as far as a table sees them. The cursor keeps the page in which it
//! stands, so that erases that lie together are read from one page. This module knows no rows.

use super::range_erase::RangeErase;
use super::readahead::Readahead;
use super::sst::Sst;
use super::tree::{Seek, TreeCursor};
use crate::format::PageRows;
use crate::format::meta::TreeKind;
use crate::row::Version;
use crate::{Direction, KeyRange};
use os::sync::Arc;
use pages::{PageSource, Stop};
use std::ops::Bound;

/// Whether a range erase hides a key from a read at some version, and for how many neighbouring keys the answer is
/// the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverAround {
    /// The newest version at which a range erase hides the key; `None` if none hides it.
    pub cover: Option<Version>,
    /// How far the answer in `cover` holds: it is the same for all keys from the key that was asked about to this
    /// bound. If the bound is included, the answer also holds for the key of the bound.
    pub edge: Bound<Vec<u8>>,
}

/// A cursor over the range erases of a file. They are disjoint, so the order of their starts is also the order of
/// their ends. Moves are steps: after a fault, the caller makes the same call again.
#[derive(Debug)]
pub struct EraseCursor {
    sst: Arc<Sst>,
    /// `None` in a file without range erases.
    tree: Option<TreeCursor>,
}

impl EraseCursor {
    /// A cursor over those range erases of `sst` that the table sees. It has no place yet. Allocates nothing.
    pub fn new(sst: Arc<Sst>) -> Self {
        let tree = sst.meta.range_erases.get();
        let tree =
            tree.map(|tree| TreeCursor::new(&sst.file, TreeKind::RangeErases, tree, sst.prefer_flat, 0..u64::MAX));
        Self { sst, tree }
    }

    /// Lets the cursor ask ahead as `readahead` says. It must then walk from the first erase to the last.
    pub fn with_readahead(mut self, readahead: Readahead) -> Self {
        if let Some(tree) = &mut self.tree {
            tree.set_readahead(readahead);
            tree.begin(Direction::Forward);
        }
        self
    }

    /// Goes to the first erase and returns it. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_first<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<Option<RangeErase>, Stop> {
        let low = self.sst.slice.as_ref().map(|slice| slice.bounds.low.clone());
        self.seek(source, low.as_deref().unwrap_or_default())
    }

    /// Goes to the first erase that ends after `key` and returns it. Either this erase covers `key`, or no erase
    /// covers the keys from `key` to the start of this erase. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8]) -> Result<Option<RangeErase>, Stop> {
        // If no erase covers the key: where the gap around the key starts, as far as the table sees it.
        let mut begin = None;
        if !self.seek_start(source, key)? {
            let Some(tree) = &mut self.tree else { return Ok(None) };
            if !tree.seek_first(source)? {
                return Ok(None);
            }
            begin = Some(Vec::new());
        }
        let nearest = loop {
            match self.look()? {
                SeenErase::Seen(erase) if erase.keys.ends_after(key) => break Some(erase),
                SeenErase::Seen(erase) => begin = erase.keys.end,
                SeenErase::Before => {}
                SeenErase::After => break None,
            }
            if !self.step(source, Direction::Forward)? {
                break None;
            }
        };
        let gap = |end: Option<&[u8]>| {
            let start = begin.unwrap_or_else(|| key.to_vec());
            KeyRange { start, end: end.map(<[u8]>::to_vec) }
        };
        match &nearest {
            None => self.sst.note_gap(|| gap(None)),
            Some(erase) if key < erase.keys.start.as_slice() => self.sst.note_gap(|| gap(Some(&erase.keys.start))),
            Some(_) => {}
        }
        Ok(nearest)
    }

    /// Goes to the last erase that begins at or before `key` and returns it. Either this erase covers `key`, or no
    /// erase covers the keys between the end of this erase and `key`. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_back<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8]) -> Result<Option<RangeErase>, Stop> {
        if !self.seek_start(source, key)? {
            self.note_gap_before(Vec::new(), key);
            return Ok(None);
        }
        loop {
            match self.look()? {
                SeenErase::Seen(erase) if erase.keys.start.as_slice() <= key => {
                    if let Some(end) = erase.keys.end.as_ref().filter(|end| end.as_slice() <= key) {
                        self.note_gap_before(end.clone(), key);
                    }
                    return Ok(Some(erase));
                }
                SeenErase::Seen(_) | SeenErase::After => {}
                SeenErase::Before => return Ok(None),
            }
            if !self.step(source, Direction::Backward)? {
                return Ok(None);
            }
        }
    }

    /// Notes that no erase covers the keys from `start` to before `key`.
    fn note_gap_before(&self, start: Vec<u8>, key: &[u8]) {
        self.sst.note_gap(|| KeyRange { start, end: Some(key.to_vec()) });
    }

    /// What range erases with versions at or before `at` say about `key`, and how far in `direction` they say the
    /// same about other keys. The answer is `None` if no erase covers `key` and none lies beyond it in that
    /// direction. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn around<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        key: &[u8],
        at: Version,
        direction: Direction,
    ) -> Result<Option<CoverAround>, Stop> {
        let nearest = match direction {
            Direction::Forward => self.seek(source, key)?,
            Direction::Backward => self.seek_back(source, key)?,
        };
        Ok(nearest.map(|erase| {
            let is_covered = erase.keys.contains(key);
            let cover = if is_covered { erase.newest(at) } else { None };
            let KeyRange { start, end } = erase.keys;
            let edge = match (direction, is_covered) {
                (Direction::Forward, true) => end.map_or(Bound::Unbounded, Bound::Excluded),
                (Direction::Forward, false) => Bound::Excluded(start),
                (Direction::Backward, true) => Bound::Included(start),
                (Direction::Backward, false) => end.map_or(Bound::Unbounded, Bound::Included),
            };
            CoverAround { cover, edge }
        }))
    }

    /// Goes to the next erase and returns it. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn next<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<Option<RangeErase>, Stop> {
        while self.step(source, Direction::Forward)? {
            match self.look()? {
                SeenErase::Seen(erase) => return Ok(Some(erase)),
                SeenErase::Before => {}
                SeenErase::After => break,
            }
        }
        Ok(None)
    }

    /// Goes to the last erase that begins at or before `key`; false if all erases begin after it. Looks first into
    /// the page where the cursor is.
    fn seek_start<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8]) -> Result<bool, Stop> {
        let Some(tree) = &mut self.tree else { return Ok(false) };
        if let Some((page, layout, _)) = tree.place() {
            let last = layout.first_row() + layout.rows() as u64 == tree.rows();
            let within = match layout.search(page, key) {
                Ok(i) => Some(i),
                // The key may lie after the last erase of this page. Then an erase of the next page may still
                // begin before the key.
                Err(i) if i < layout.rows() || last => i.checked_sub(1),
                Err(_) => None,
            };
            if let Some(i) = within {
                tree.go_within(i);
                return Ok(true);
            }
        }
        tree.seek_back(source, key, Seek::Lower)
    }

    fn step<S: PageSource + ?Sized>(&mut self, source: &S, direction: Direction) -> Result<bool, Stop> {
        match &mut self.tree {
            Some(tree) if direction.is_forward() => tree.next(source),
            Some(tree) => tree.prev(source),
            None => Ok(false),
        }
    }

    /// The part that the table sees of the erase at which the cursor stands.
    fn look(&self) -> Result<SeenErase, Stop> {
        let place = self.tree.as_ref().and_then(TreeCursor::place);
        let (page, layout, i) = place.expect("the last move found an erase");
        let erase = self.sst.decode_range_erase(page, layout, i)?;
        let begins_after = self.sst.slice.as_ref().and_then(|slice| slice.bounds.high.as_ref());
        let begins_after = begins_after.is_some_and(|high| *high <= erase.keys.start);
        Ok(match self.sst.seen_of(erase) {
            Some(erase) => SeenErase::Seen(erase),
            None if begins_after => SeenErase::After,
            None => SeenErase::Before,
        })
    }
}

/// What a table sees of an erase. If the erase lies before or after the table's slice of the file, the table sees
/// nothing of it.
enum SeenErase {
    Before,
    Seen(RangeErase),
    After,
}

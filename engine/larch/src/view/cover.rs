//! Tells a merge which rows around its current key are hidden by range erases, and up to which key the answer holds.
//!
//! ```text
//! source 0    ─────────╳╳╳╳╳╳@9╳╳╳╳─────────────────────      the memtable
//! source 2    ──╳@5╳───────────────────────────╳@4╳─────      a file
//! source 3    ──────────────────────────────────────────      a level without range erases
//!                      ├─────── place ──────▶│edge
//! ```
//!
//! The range erases of a source are cut into fragments with gaps between them. For each source with range erases,
//! this module keeps the fragment or gap around the merge's current key. The *edge* is the nearest end of these
//! fragments and gaps: before it, no source has to be asked again. A row is hidden if it is older than the newest
//! range erase of its own source and of all newer ones. So each row costs one comparison with the edge, and an index
//! is read only where a fragment begins or ends.

use super::level::LevelCursor;
use crate::manifest::Level;
use crate::memtable::Memtable;
use os::sync::Arc;
use pages::{PageSource, Stop, together};
use sst::{CoverAround, Direction, EraseCursor, Version};
use std::cmp::Ordering;
use std::ops::{Bound, Range};

/// The range erases over the current key of a merge, which goes in one direction.
#[derive(Debug)]
pub struct MergeCovers {
    direction: Direction,
    /// The number of sources of the merge.
    sources: usize,
    /// The sources with range erases, newest first.
    erased: Vec<Erased>,
    /// For each source of the merge, the newest range erase that covers the keys up to the edge, in this source or a
    /// newer one. Empty until a key is reached.
    through: Vec<Option<Version>>,
    /// The edge. `None` until a key is reached.
    edge: Option<Bound<Vec<u8>>>,
}

/// A source that has range erases.
#[derive(Debug)]
struct Erased {
    /// The index of the source in the merge.
    source: usize,
    erases: Erases,
    /// The fragment or gap around the last key that was reached. `None` until a key is reached.
    here: Option<CoverAround>,
}

#[derive(Debug)]
enum Erases {
    /// A memtable, read at this version.
    Memory(Arc<Memtable>, Version),
    /// The files of a level, read at this version.
    Files(Box<FileErases>, Version),
}

/// The range erases of a sorted level.
#[derive(Debug)]
struct FileErases {
    files: Level,
    walked: Range<usize>,
    /// A cursor over the range erases of the file that was asked last, with the index of this file in the level.
    cursor: Option<(usize, EraseCursor)>,
}

impl MergeCovers {
    /// The covers of a merge in `direction` that has no sources yet.
    pub fn new(direction: Direction) -> Self {
        Self { direction, sources: 0, erased: Vec::new(), through: Vec::new(), edge: None }
    }

    /// Forgets all sources and answers, and drops their pages. Keeps the allocated memory.
    pub fn clear(&mut self) {
        self.sources = 0;
        self.erased.clear();
        self.through.clear();
        self.edge = None;
    }

    /// Adds a memtable as the next source, read at version `at`.
    pub fn add_memtable(&mut self, memtable: &Arc<Memtable>, at: Version) {
        if memtable.has_range_erases() {
            let erases = Erases::Memory(memtable.clone(), at);
            self.erased.push(Erased { source: self.sources, erases, here: None });
        }
        self.sources += 1;
    }

    /// Adds the files through which `cursor` walks as the next source, read at version `at` for keys from `low` to
    /// `high`.
    pub fn add_level(&mut self, cursor: &LevelCursor, at: Version, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        let (files, walked) = cursor.walked();
        if files[walked.clone()].iter().any(|file| file.sst.may_erase_between(low, high)) {
            let erases = Erases::Files(Box::new(FileErases { files: files.clone(), walked, cursor: None }), at);
            self.erased.push(Erased { source: self.sources, erases, here: None });
        }
        self.sources += 1;
    }

    /// Whether the answers for the current key are known. Always true if no source has range erases.
    pub fn is_known(&self) -> bool {
        self.edge.is_some() || self.erased.is_empty()
    }

    /// Finds the answers for `key`, which the merge has reached. A composite step: if it runs again after a fault, it
    /// asks only the sources that have not answered yet.
    #[inline]
    pub fn reach<S: PageSource + ?Sized>(&mut self, reader: &S, key: &[u8]) -> Result<(), Stop> {
        let is_inside = self.edge.as_ref().is_some_and(|edge| comes_before(key, edge, self.direction));
        if is_inside || self.erased.is_empty() { Ok(()) } else { self.look(reader, key) }
    }

    fn look<S: PageSource + ?Sized>(&mut self, reader: &S, key: &[u8]) -> Result<(), Stop> {
        let Self { direction, erased, .. } = self;
        together(erased.iter_mut(), |Erased { erases, here, .. }| {
            if here.as_ref().is_none_or(|here| !comes_before(key, &here.edge, *direction)) {
                *here = Some(erases.around(reader, key, *direction)?);
            }
            Ok(())
        })?;
        let mut newest = None;
        let mut erased = self.erased.iter().peekable();
        self.through.resize(self.sources, None);
        for (source, through) in self.through.iter_mut().enumerate() {
            if let Some(Erased { here: Some(here), .. }) = erased.next_if(|erased| erased.source == source) {
                newest = newest.max(here.cover);
            }
            *through = newest;
        }
        let edges = self.erased.iter().filter_map(|erased| erased.here.as_ref()).map(|here| &here.edge);
        let nearest = |a, b| if is_before(b, a, self.direction) { b } else { a };
        self.edge = edges.reduce(nearest).cloned();
        Ok(())
    }

    /// The bound up to which the answers hold.
    pub fn edge(&self) -> Bound<&[u8]> {
        match &self.edge {
            Some(edge) => edge.as_ref().map(Vec::as_slice),
            None => Bound::Unbounded,
        }
    }

    /// The newest range erase that covers the keys of source `source` up to the edge. It hides all older rows of the
    /// source.
    #[inline]
    pub fn over(&self, source: usize) -> Option<Version> {
        self.through.get(source).copied().flatten()
    }

    /// The bound, at or beyond the edge, up to which range erases in newer sources cover the keys of source `source`.
    /// `None` if no newer source has a range erase over the current key.
    pub fn hidden_until(&self, source: usize) -> Option<&Bound<Vec<u8>>> {
        let newer = self.erased.iter().take_while(|erased| erased.source < source);
        let covers = newer.filter_map(|erased| erased.here.as_ref()).filter(|here| here.cover.is_some());
        covers.map(|here| &here.edge).reduce(|a, b| if is_before(a, b, self.direction) { b } else { a })
    }
}

impl Erases {
    /// The fragment or gap around `key`. A step.
    fn around<S: PageSource + ?Sized>(
        &mut self,
        reader: &S,
        key: &[u8],
        direction: Direction,
    ) -> Result<CoverAround, Stop> {
        match self {
            Self::Memory(memtable, at) => Ok(memtable.cover_around(key, *at, direction)),
            Self::Files(files, at) => files.around(reader, key, *at, direction),
        }
    }
}

impl FileErases {
    /// As [`Erases::around`]. It opens no file whose bounds exclude the key.
    fn around<S: PageSource + ?Sized>(
        &mut self,
        reader: &S,
        key: &[u8],
        at: Version,
        direction: Direction,
    ) -> Result<CoverAround, Stop> {
        let files = self.files.clone();
        let bounds = |i: usize| files[i].sst.bounds();
        let gap = |edge| Ok(CoverAround { cover: None, edge });
        let with_erases = |i: &usize| files[*i].sst.meta.range_erases.is_some();
        match direction {
            Direction::Forward => {
                let ends_before = |high: Option<&[u8]>| high.is_some_and(|high| high < key);
                let first = files.partition_point(|file| ends_before(file.sst.bounds().high.as_deref()));
                for i in (first.max(self.walked.start)..self.walked.end).filter(with_erases) {
                    if key < bounds(i).low.as_slice() {
                        return gap(Bound::Excluded(bounds(i).low.clone()));
                    }
                    if let Some(around) = self.cursor_in(i).around(reader, key, at, direction)? {
                        return Ok(around);
                    }
                }
            }
            Direction::Backward => {
                let end = files.partition_point(|file| file.sst.bounds().low.as_slice() <= key);
                for i in (self.walked.start..end.min(self.walked.end)).rev().filter(with_erases) {
                    if let Some(high) = bounds(i).high.as_ref().filter(|high| high.as_slice() < key) {
                        return gap(Bound::Excluded(high.clone()));
                    }
                    if let Some(around) = self.cursor_in(i).around(reader, key, at, direction)? {
                        return Ok(around);
                    }
                }
            }
        }
        gap(Bound::Unbounded)
    }

    fn cursor_in(&mut self, i: usize) -> &mut EraseCursor {
        if self.cursor.as_ref().is_none_or(|(at, _)| *at != i) {
            self.cursor = Some((i, EraseCursor::new(self.files[i].sst.clone())));
        }
        &mut self.cursor.as_mut().expect("it was put there").1
    }
}

/// Whether a walk in `direction` reaches `key` before it ends at `far`.
pub fn comes_before<K: AsRef<[u8]>>(key: &[u8], far: &Bound<K>, direction: Direction) -> bool {
    match (direction, far.as_ref().map(AsRef::as_ref)) {
        (_, Bound::Unbounded) => true,
        (Direction::Forward, Bound::Included(far)) => key <= far,
        (Direction::Forward, Bound::Excluded(far)) => key < far,
        (Direction::Backward, Bound::Included(far)) => key >= far,
        (Direction::Backward, Bound::Excluded(far)) => key > far,
    }
}

/// Whether a walk in `direction` reaches the bound `a` before the bound `b`.
fn is_before(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>, direction: Direction) -> bool {
    let (Bound::Included(a_key) | Bound::Excluded(a_key)) = a else { return false };
    let (Bound::Included(b_key) | Bound::Excluded(b_key)) = b else { return true };
    match (a_key.cmp(b_key), direction) {
        (Ordering::Equal, _) => matches!((a, b), (Bound::Excluded(_), Bound::Included(_))),
        (order, Direction::Forward) => order == Ordering::Less,
        (order, Direction::Backward) => order == Ordering::Greater,
    }
}

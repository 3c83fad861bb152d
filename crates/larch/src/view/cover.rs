//! Tells a merge which rows near its present key are hidden by range erases, and up to which key this answer is
//! valid.
//!
//! ```text
//! source 0    ─────────╳╳╳╳╳╳@9╳╳╳╳─────────────────────      the memtable
//! source 2    ──╳@5╳───────────────────────────╳@4╳─────      a file
//! source 3    ──────────────────────────────────────────      a level without range erases
//!                      ├─────── place ──────▶│edge
//! ```
//!
//! The range erases of a source are cut into fragments with gaps between them. For each source that has range
//! erases, the fragment or the gap around the present key of the merge is stored. The *edge* is the nearest end of
//! these fragments and gaps. Before the edge, no source has to be asked again. A row is hidden if it is older than
//! the newest erase of its own source and of all newer sources. So each row costs one comparison with the edge,
//! and an index is read only where a fragment begins or ends.

use super::level::LevelCursor;
use crate::manifest::Level;
use crate::memtable::Memtable;
use os::sync::Arc;
use pages::{PageSource, Stop, together};
use sst::{CoverAround, Direction, EraseCursor, Version};
use std::cmp::Ordering;
use std::ops::{Bound, Range};

/// The range erases that cover the present key of a merge. The merge goes in one direction.
#[derive(Debug)]
pub struct MergeCovers {
    direction: Direction,
    /// The number of sources that the merge has.
    sources: usize,
    /// The sources that have range erases, newest first.
    erased: Vec<Erased>,
    /// For each source of the merge: the newest range erase, in this source or in a newer one, that covers the
    /// keys up to the edge. The list is empty before a source was asked.
    through: Vec<Option<Version>>,
    /// The edge. It is `None` before the merge has reached a key.
    edge: Option<Bound<Vec<u8>>>,
}

/// A source that has range erases.
#[derive(Debug)]
struct Erased {
    /// The number of the source in the merge.
    source: usize,
    erases: Erases,
    /// The fragment or gap around the key that was reached last; `None` until a key was reached.
    here: Option<CoverAround>,
}

#[derive(Debug)]
enum Erases {
    /// A memtable, and the version at which it is read.
    Memory(Arc<Memtable>, Version),
    /// The files of a level, and the version at which they are read.
    Files(Box<FileErases>, Version),
}

/// The range erases of a sorted level.
#[derive(Debug)]
struct FileErases {
    files: Level,
    walked: Range<usize>,
    /// A cursor over the range erases of the file that was asked last, and the place of this file in the level.
    cursor: Option<(usize, EraseCursor)>,
}

impl MergeCovers {
    /// The covers for a merge in `direction`. It has no sources yet.
    pub fn new(direction: Direction) -> Self {
        Self { direction, sources: 0, erased: Vec::new(), through: Vec::new(), edge: None }
    }

    /// Adds a memtable as the next source. It is read at the version `at`.
    pub fn add_memtable(&mut self, memtable: &Arc<Memtable>, at: Version) {
        if memtable.has_range_erases() {
            let erases = Erases::Memory(memtable.clone(), at);
            self.erased.push(Erased { source: self.sources, erases, here: None });
        }
        self.sources += 1;
    }

    /// Adds the files that `cursor` walks through as the next source. They are read at the version `at`, for keys
    /// from `low` to `high`.
    pub fn add_level(&mut self, cursor: &LevelCursor, at: Version, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        let (files, walked) = cursor.walked();
        if files[walked.clone()].iter().any(|file| file.sst.may_erase_between(low, high)) {
            let erases = Erases::Files(Box::new(FileErases { files: files.clone(), walked, cursor: None }), at);
            self.erased.push(Erased { source: self.sources, erases, here: None });
        }
        self.sources += 1;
    }

    /// Whether the answers for a key are known. This is always true if no source has range erases.
    pub fn is_known(&self) -> bool {
        self.edge.is_some() || self.erased.is_empty()
    }

    /// Finds the answers for `key`, which the merge has reached. This is a composite step: if it runs again after
    /// a fault, it asks only the sources that have not answered yet.
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

    /// The edge, up to which the answers are valid.
    pub fn edge(&self) -> Bound<&[u8]> {
        match &self.edge {
            Some(edge) => edge.as_ref().map(Vec::as_slice),
            None => Bound::Unbounded,
        }
    }

    /// The version of the newest range erase that covers the keys of source number `source` up to the edge. All
    /// rows of this source with an older version are hidden.
    #[inline]
    pub fn over(&self, source: usize) -> Option<Version> {
        self.through.get(source).copied().flatten()
    }

    /// The bound up to which range erases in newer sources cover the keys of source number `source`. It is at the
    /// edge or after it. The result is `None` if no newer source has a range erase at the present key.
    pub fn hidden_until(&self, source: usize) -> Option<&Bound<Vec<u8>>> {
        let newer = self.erased.iter().take_while(|erased| erased.source < source);
        let covers = newer.filter_map(|erased| erased.here.as_ref()).filter(|here| here.cover.is_some());
        covers.map(|here| &here.edge).reduce(|a, b| if is_before(a, b, self.direction) { b } else { a })
    }
}

impl Erases {
    /// The fragment or gap around `key`. This is a step.
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
    /// The same as [`Erases::around`]. A file is not opened for a key outside its bounds.
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

/// Whether a walk in `direction` reaches `key` before its end at `far`.
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

//! Many sorted sources as one: memtables and levels, newest first, walked together in either direction.
//!
//! ```text
//!   key          a        b          c      d
//!   memtable              b erased   c=9                        rows that a reader sees:
//!   level 0      a=1                        d=7   range c..d erased     a=1   c=9   d=7
//!   level 1      a=0      b=3        c=2    d=4                 b is erased by the newest source that has it,
//!                                                               c=2 is hidden by the range, and c=9 is newer
//! ```
//!
//! The sources are a [`Frontier`]: all that must move do so before a fault is answered. A key's answer comes from the newest source that has a visible version of it, unless a range
//! erase in that source or a newer one hides it. State is kept between steps, so skipping a hundred thousand erased
//! rows pins one page a source. What a range erase hides in older sources is passed row by row only where it is little;
//! otherwise they seek its end.

use super::cover::{MergeCovers, comes_before};
use super::found::FoundRow;
use super::frontier::{Frontier, Sorted};
use super::level::LevelCursor;
use super::view::TableView;
use crate::memtable::MemCursor;
use os::sync::Arc;
use pages::{PageSource, Stop};
use sst::{Direction, Groups, Readahead, RowKind, Seek, StoredValue, Streak, Version};
use std::ops::Bound;

/// The merge.
#[derive(Debug)]
pub struct Merge {
    direction: Direction,
    at: Version,
    sources: Frontier<MergeSource, NextMove>,
    /// Key of the row found last.
    key: Vec<u8>,
    came: Came,
    covers: MergeCovers,
    /// Which source had the row found last.
    giver: Option<usize>,
    /// It had the one before, too.
    is_steady: bool,
}

/// How far a merge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Nowhere,
    /// To the row with the merge's key: those before it are done with.
    To,
    /// Past that row.
    Past,
}

#[derive(Debug)]
struct MergeSource {
    cursor: Cursor,
    /// Rows in succession that were passed because a newer source erased them.
    hidden: usize,
}

/// Rows that newer sources erased are passed one by one so often before the source seeks the end of what was erased: a seek
/// goes down from the root, where a step mostly stays in its page.
const HIDDEN_ROWS: usize = 8;

#[derive(Debug)]
enum Cursor {
    Memory(MemCursor),
    Level(Box<LevelCursor>),
}

/// How a source comes to its next row.
#[derive(Debug)]
enum NextMove {
    /// It seeks the start of the walk.
    Seek,
    /// It seeks what comes after all keys before this bound.
    SeekAfter(Bound<Vec<u8>>),
    Step,
}

/// What a reader does with the rows that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// It looks at keys, and perhaps at what lies beside them.
    Nothing,
    /// It loads the parts that it wants, wherever they lie.
    Parts,
}

/// Where a merge starts: the bound of the side it comes from.
pub type Start<'a> = Bound<&'a [u8]>;

impl Merge {
    /// A merge of everything there is of `table` with keys from `low` to `high`: no file is opened in which all keys are
    /// others, as far as bounds and filters in memory tell.
    pub fn new<S: PageSource + ?Sized>(
        source: &S,
        table: TableView<'_>,
        direction: Direction,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        readahead: Readahead,
    ) -> Self {
        let at = table.at;
        let mut sources = Vec::new();
        let mut covers = MergeCovers::new(direction, at);
        for memtable in table.memtables() {
            covers.add_memtable(&memtable);
            sources.push(Cursor::Memory(MemCursor::new(memtable, at)));
        }
        let (level0, deeper) = table.files.levels.split_first().expect("a table has levels");
        let level0 = level0.iter().map(|file| Arc::new(vec![file.clone()]));
        let levels = level0.chain(deeper.iter().cloned());
        let cursors = levels.map(|level| LevelCursor::within(source, level, low, high, Readahead::NONE));
        let cursors: Vec<LevelCursor> = cursors.filter(|cursor| !cursor.is_empty()).collect();
        let all_bytes = cursors.iter().map(LevelCursor::bytes).sum();
        let far = if direction == Direction::Forward { high } else { low };
        sources.extend(cursors.into_iter().map(|cursor| {
            let readahead = readahead.share(cursor.bytes(), all_bytes);
            covers.add_level(&cursor, low, high);
            Cursor::Level(Box::new(cursor.with_readahead(readahead).until(far)))
        }));
        let sources = sources.into_iter().map(|cursor| MergeSource { cursor, hidden: 0 });
        let sources = Frontier::new(direction, sources, || NextMove::Seek);
        let (key, came, giver, is_steady) = (Vec::new(), Came::Nowhere, None, false);
        Self { direction, at, sources, key, came, covers, giver, is_steady }
    }

    /// Key of the row found last.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Where a merge that goes on instead of this one would start: `None` if it is where it started.
    pub fn place(&self) -> Option<Start<'_>> {
        match self.came {
            Came::Nowhere => None,
            Came::To => Some(Bound::Included(&self.key)),
            Came::Past => Some(Bound::Excluded(&self.key)),
        }
    }

    /// The visible row before `far` that is next; the same one again until it was [left](Self::leave). The first one is
    /// sought from `start`, which matters only until something was found. Nothing is read of rows beyond `far` but their
    /// keys. Replaces `parts` with its parts in those of `groups` that lie beside the main one, if it is in a file. For a reader
    /// who loads the parts in `groups` of row after row those are asked ahead that lie outside their pages.
    ///
    /// Steps that keep what they came to, so that running it again after a fault goes on where it was: sources that have
    /// arrived stay, rows that are not visible are passed, and what was pinned for them is given back.
    pub fn find<S: PageSource + ?Sized>(
        &mut self,
        reader: &S,
        (start, far): (Start<'_>, Bound<&[u8]>),
        (groups, loads): (Groups, Loads),
        parts: &mut Vec<StoredValue>,
    ) -> Result<Option<FoundRow>, Stop> {
        parts.clear();
        loop {
            self.arrive(reader, (start, far))?;
            let Some((newest, key)) = self.sources.nearest() else { return Ok(None) };
            if !comes_before(key, &far, self.direction) {
                return Ok(None);
            }
            self.key.clear();
            self.key.extend_from_slice(key);
            self.came = Came::To;
            self.covers.reach(reader, &self.key)?;
            if let Some((source, found)) = self.resolve(reader, newest)? {
                if let FoundRow::File(row, _) = &found
                    && let Cursor::Level(cursor) = &mut self.sources.cursor_mut(source).cursor
                {
                    if groups.any_beside_main() {
                        cursor.parts(reader, groups, row.place, parts)?;
                    }
                    if loads == Loads::Parts {
                        cursor.load_ahead(reader, groups, row.place, self.at);
                    }
                }
                self.is_steady = self.giver.replace(source) == Some(source);
                return Ok(Some(found));
            }
            self.leave();
            reader.release();
        }
    }

    /// Makes every source arrive and gives back what was pinned for it. A step; nothing is done until a row was passed.
    pub fn arrive<S: PageSource + ?Sized>(
        &mut self,
        reader: &S,
        (start, far): (Start<'_>, Bound<&[u8]>),
    ) -> Result<(), Stop> {
        if self.sources.has_arrived() {
            return Ok(());
        }
        let mut is_cover_missing = false;
        // What was erased around the start is looked at in the same rounds as the rows.
        if let Bound::Included(key) | Bound::Excluded(key) = start
            && !self.covers.is_known()
        {
            match self.covers.reach(reader, key) {
                Ok(()) => {}
                Err(Stop::Fault) => is_cover_missing = true,
                Err(stop) => return Err(stop),
            }
        }
        let direction = self.direction;
        self.sources.arrive(is_cover_missing, |MergeSource { cursor, .. }, to| match to {
            NextMove::Seek => cursor.seek(reader, start, direction),
            NextMove::SeekAfter(edge) => match after(edge) {
                // Nothing is read beyond the far end.
                Bound::Included(key) | Bound::Excluded(key) if !comes_before(key, &far, direction) => Ok(false),
                Bound::Unbounded => Ok(false),
                next => cursor.seek(reader, next, direction),
            },
            NextMove::Step => cursor.step(reader, direction),
        })?;
        reader.release();
        Ok(())
    }

    /// What the sources at the current key say, from `first` on (none before it has the key), and which of them says it.
    fn resolve<S: PageSource + ?Sized>(&self, reader: &S, first: usize) -> Result<Option<(usize, FoundRow)>, Stop> {
        let key = self.key.as_slice();
        for i in first..self.sources.len() {
            if self.sources.key(i) != Some(key) {
                continue;
            }
            if self.covers.hidden_until(i).is_some() {
                return Ok(None);
            }
            let Some((kind, version, found)) = self.sources.cursor(i).cursor.visible(reader, self.at)? else {
                continue;
            };
            let shows = kind == RowKind::Put && self.covers.over(i).is_none_or(|cover| cover <= version);
            return Ok(shows.then_some((i, found)));
        }
        Ok(None)
    }

    /// Leaves the row found last: sources at its key must move before they are compared again.
    pub fn leave(&mut self) {
        self.came = Came::Past;
        let covers = &self.covers;
        self.sources.leave(&self.key, |i, source| {
            let hidden = covers.hidden_until(i);
            source.hidden = if hidden.is_some() { source.hidden + 1 } else { 0 };
            match hidden.filter(|_| source.hidden > HIDDEN_ROWS) {
                Some(edge) => {
                    source.hidden = 0;
                    NextMove::SeekAfter(edge.clone())
                }
                None => NextMove::Step,
            }
        });
    }

    /// Memory of the pages that it keeps from one step to the next, in bytes.
    pub fn pinned_bytes(&self) -> u64 {
        let levels = self.sources.cursors().map(|source| match &source.cursor {
            Cursor::Memory(..) => 0,
            Cursor::Level(cursor) => cursor.pinned_bytes(),
        });
        levels.sum()
    }

    /// Whether the last two rows came from one source. Where sources take turns there is little in a streak.
    pub fn is_steady(&self) -> bool {
        self.is_steady
    }

    /// After a row was passed: the rows before `far` that come next and need no merging, as those of one page do that no
    /// other source has a row between. Range erases are the same for all of them. The merge stays where it is until it is told
    /// to [resume](Self::resume).
    pub fn streak(&self, far: Bound<&[u8]>) -> Option<Streak> {
        let giver = self.giver?;
        let Cursor::Level(cursor) = &self.sources.cursor(giver).cursor else { return None };
        let mut streak = cursor.streak(self.direction, self.at, self.covers.over(giver))?;
        streak.until(self.covers.edge());
        if streak.is_empty() {
            return None;
        }
        streak.until(far);
        let others = (0..self.sources.len()).filter(|&i| i != giver);
        for key in others.filter_map(|i| self.sources.key(i)) {
            streak.until(Bound::Excluded(key));
        }
        (!streak.is_empty()).then_some(streak)
    }

    /// Goes on after the rows that `streak`, which began here, has passed.
    pub fn resume(&mut self, streak: &Streak) {
        let giver = self.giver.expect("a streak begins at a row");
        let Cursor::Level(cursor) = &mut self.sources.cursor_mut(giver).cursor else { return };
        cursor.resume(streak);
        self.key.clear();
        self.key.extend_from_slice(cursor.key());
    }
}

/// Where a walk starts that goes on after all keys before `edge`; from nowhere if that is unbounded.
fn after(edge: &Bound<Vec<u8>>) -> Start<'_> {
    match edge {
        Bound::Included(last) => Bound::Excluded(last),
        Bound::Excluded(next) => Bound::Included(next),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl Sorted for MergeSource {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }
}

impl Cursor {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Memory(cursor) => cursor.key(),
            Self::Level(cursor) => Some(cursor.key()),
        }
    }

    fn seek<S: PageSource + ?Sized>(
        &mut self,
        reader: &S,
        start: Start<'_>,
        direction: Direction,
    ) -> Result<bool, Stop> {
        match (self, direction) {
            (Self::Memory(cursor), Direction::Forward) => {
                cursor.seek(start);
                Ok(cursor.key().is_some())
            }
            (Self::Memory(cursor), Direction::Backward) => {
                cursor.seek_back(start);
                Ok(cursor.key().is_some())
            }
            (Self::Level(cursor), Direction::Forward) => match start {
                Bound::Unbounded => cursor.seek_first(reader),
                Bound::Included(key) => cursor.seek(reader, key, Seek::Lower),
                Bound::Excluded(key) => cursor.seek(reader, key, Seek::Upper),
            },
            (Self::Level(cursor), Direction::Backward) => match start {
                Bound::Unbounded => cursor.seek_last(reader),
                Bound::Included(key) => cursor.seek_back(reader, key, Seek::Lower),
                Bound::Excluded(key) => cursor.seek_back(reader, key, Seek::Upper),
            },
        }
    }

    fn step<S: PageSource + ?Sized>(&mut self, reader: &S, direction: Direction) -> Result<bool, Stop> {
        match (self, direction) {
            (Self::Memory(cursor), Direction::Forward) => {
                cursor.next();
                Ok(cursor.key().is_some())
            }
            (Self::Memory(cursor), Direction::Backward) => {
                cursor.prev();
                Ok(cursor.key().is_some())
            }
            (Self::Level(cursor), Direction::Forward) => cursor.next(reader),
            (Self::Level(cursor), Direction::Backward) => cursor.prev(reader),
        }
    }

    fn visible<S: PageSource + ?Sized>(
        &self,
        reader: &S,
        at: Version,
    ) -> Result<Option<(RowKind, Version, FoundRow)>, Stop> {
        match self {
            Self::Memory(cursor) => {
                let row = cursor.row().clone();
                Ok(Some((row.kind(), row.version(), FoundRow::Memory(row))))
            }
            Self::Level(cursor) => {
                let row = cursor.visible(reader, at)?;
                Ok(row.map(|row| (row.kind, row.version, FoundRow::File(row, cursor.file().clone()))))
            }
        }
    }
}

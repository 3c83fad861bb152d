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
//! The sources are a [`Frontier`]: all sources that have to move do so before a fault is returned. The newest source
//! that has a visible version of a key decides, unless a range erase in this source or a newer one hides the row. State
//! is kept between steps, so skipping a hundred thousand erased rows pins one page of each source. Older sources step
//! over a few rows that a range erase hides, one by one; if there are more, they seek the end of the range erase. It
//! does not know who reads.

use super::cover::{MergeCovers, comes_before};
use super::found::FoundRow;
use super::frontier::{Frontier, Sorted};
use super::level::LevelCursor;
use super::view::TableView;
use crate::memtable::MemCursor;
use os::sync::Arc;
use pages::{PageSource, Stop};
use sst::{Direction, Groups, Readahead, RowKind, Seek, StoredValue, Streak, StreakStart, Version};
use std::ops::Bound;

/// The merge.
#[derive(Debug)]
pub struct Merge {
    direction: Direction,
    at: Version,
    sources: Frontier<MergeSource, NextMove>,
    /// The key of the row that was found last.
    key: Vec<u8>,
    came: Came,
    covers: MergeCovers,
    /// The source of the row that was found last, if this is in a file.
    giver: Option<usize>,
    /// Streaks are likely to have rows: they were not looked for yet, they had some when they were, or two rows in succession
    /// were found in files since.
    expects_streaks: bool,
}

/// Rows that come next and need no step, in the page of one source.
#[derive(Debug)]
pub struct SourceStreak {
    /// Its number in the merge.
    source: usize,
    pub streak: Streak,
}

/// How far the merge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Nowhere,
    /// To the row with the key of the merge. The rows before it are left.
    To,
    /// Past that row.
    Past,
}

#[derive(Debug)]
struct MergeSource {
    cursor: Cursor,
    /// How many rows in succession it has stepped over because a newer source erased them.
    hidden: usize,
}

/// A source steps over this many rows in succession that newer sources erased. Then it seeks the end of the range erase. A
/// seek starts at the root, while a step mostly stays in its page.
const HIDDEN_ROWS: usize = 8;

#[derive(Debug)]
enum Cursor {
    Memory(MemCursor),
    Level(Box<LevelCursor>),
}

/// How a source goes to its next row.
#[derive(Debug)]
enum NextMove {
    /// It seeks the start of the walk.
    Seek,
    /// It seeks the first key that is not before this bound.
    SeekAfter(Bound<Vec<u8>>),
    Step,
}

/// What a reader does with the rows that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// It looks at keys, and perhaps at values that lie in the same page.
    Nothing,
    /// It loads the parts that it asked for, wherever they lie.
    Parts,
}

/// Where a merge starts: the bound of the end from which it reads.
pub type Start<'a> = Bound<&'a [u8]>;

impl Merge {
    /// A merge of all sources of `table` with keys from `low` to `high`. A file is left out if its bounds, or filters
    /// in memory, show that it has no such key.
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
            covers.add_memtable(memtable);
            sources.push(Cursor::Memory(MemCursor::new(memtable.clone(), at)));
        }
        let (level0, deeper) = table.files.levels.split_first().expect("a table has levels");
        let level0 = level0.iter().map(|file| Arc::new(vec![file.clone()]));
        let levels = level0.chain(deeper.iter().filter(|level| !level.is_empty()).cloned());
        let far = if direction == Direction::Forward { high } else { low };
        for level in levels {
            let cursor = LevelCursor::within(source, level, low, high, Readahead::NONE);
            if !cursor.is_empty() {
                covers.add_level(&cursor, low, high);
                sources.push(Cursor::Level(Box::new(cursor.until(far))));
            }
        }
        if !readahead.is_none() {
            let bytes = |cursor: &Cursor| if let Cursor::Level(cursor) = cursor { cursor.bytes() } else { 0 };
            let all_bytes = sources.iter().map(bytes).sum();
            for cursor in &mut sources {
                if let Cursor::Level(cursor) = cursor {
                    cursor.set_readahead(readahead.share(cursor.bytes(), all_bytes));
                }
            }
        }
        let sources = sources.into_iter().map(|cursor| MergeSource { cursor, hidden: 0 });
        let sources = Frontier::new(direction, sources, || NextMove::Seek);
        let (key, came, giver, expects_streaks) = (Vec::new(), Came::Nowhere, None, true);
        Self { direction, at, sources, key, came, covers, giver, expects_streaks }
    }

    /// Key of the row found last.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Where another merge must start to go on in place of this one; `None` if this one is where it started.
    pub fn place(&self) -> Option<Start<'_>> {
        match self.came {
            Came::Nowhere => None,
            Came::To => Some(Bound::Included(&self.key)),
            Came::Past => Some(Bound::Excluded(&self.key)),
        }
    }

    /// The next visible row before `far`; the same row again until it was [left](Self::leave). The search begins at
    /// `start`, which matters only until a row was found. Only keys are read of rows beyond `far`. If the row is in a
    /// file, `parts` are replaced with its parts in all of `groups` but the main one. If the reader loads the parts of
    /// row after row, parts that lie outside their pages are asked for ahead.
    ///
    /// It consists of steps that keep their results, so that it goes on where it was when it is run again after a
    /// fault: sources that have arrived stay, rows that are not visible are left, and the pages pinned for them are
    /// released.
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
                let giver = matches!(found, FoundRow::File(..)).then_some(source);
                self.expects_streaks |= self.giver.is_some() && giver.is_some();
                self.giver = giver;
                return Ok(Some(found));
            }
            self.leave();
            reader.release();
        }
    }

    /// Moves every source that has to move, and releases the pages pinned for this. A step. It does nothing if no row
    /// was left since.
    pub fn arrive<S: PageSource + ?Sized>(
        &mut self,
        reader: &S,
        (start, far): (Start<'_>, Bound<&[u8]>),
    ) -> Result<(), Stop> {
        if self.sources.has_arrived() {
            return Ok(());
        }
        let mut is_cover_missing = false;
        // Range erases around the start are read in the same rounds as the rows.
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

    /// The visible row of the current key and its source. `first` is the newest source that has the key.
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

    /// Leaves the row that was found last: sources at its key have to move before keys are compared again.
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

    /// Memory of the pages that it pins from one step to the next, in bytes.
    pub fn pinned_bytes(&self) -> u64 {
        let levels = self.sources.cursors().map(|source| match &source.cursor {
            Cursor::Memory(..) => 0,
            Cursor::Level(cursor) => cursor.pinned_bytes(),
        });
        levels.sum()
    }

    /// Whether it is worth looking for [streaks](Self::streaks). Where rows in memory lie between those of files, it is not.
    pub fn expects_streaks(&self) -> bool {
        self.expects_streaks
    }

    /// The rows before `far` that come after the row that was left and need no step: those in the pages in which the sources
    /// stand, newest first, up to the next key of a source that stands in no page. The same range erases cover all of them. If
    /// `is_alone`, only rows of the page of the row that was left. The merge stays where it is until [`Merge::resume`].
    pub fn streaks(&mut self, far: Bound<&[u8]>, is_alone: bool) -> Vec<SourceStreak> {
        let mut streaks = Vec::new();
        if let Some(giver) = self.giver
            && let Some(streak) = self.streak_of(giver, far)
        {
            let mut next_keys = Vec::new();
            for source in 0..self.sources.len() {
                let Some(key) = self.sources.key(source).filter(|_| source != giver) else { continue };
                let beside = if is_alone { None } else { self.streak_of(source, far) };
                match beside {
                    Some(streak) => streaks.push(SourceStreak { source, streak }),
                    None => next_keys.push(key),
                }
            }
            let place = streaks.partition_point(|beside| beside.source < giver);
            streaks.insert(place, SourceStreak { source: giver, streak });
            for key in next_keys {
                streaks.iter_mut().for_each(|SourceStreak { streak, .. }| streak.until(Bound::Excluded(key)));
            }
            streaks.retain(|SourceStreak { streak, .. }| !streak.is_empty());
        }
        self.expects_streaks = !streaks.is_empty();
        streaks
    }

    /// The rows of a source before `far` that need no step, from its next row on; `None` if this row needs one.
    fn streak_of(&self, source: usize, far: Bound<&[u8]>) -> Option<Streak> {
        let Cursor::Level(cursor) = &self.sources.cursor(source).cursor else { return None };
        let start = if self.sources.is_moving(source) { StreakStart::After } else { StreakStart::At };
        let mut streak = cursor.streak(start, self.direction, (self.at, self.covers.over(source)))?;
        streak.until(self.covers.edge());
        streak.until(far);
        Some(streak)
    }

    /// Goes on after the rows that were taken from `streaks`, which began here. If `is_key_open`, the row taken last says nothing
    /// about its key, which another source may show.
    pub fn resume<'s>(&mut self, streaks: impl IntoIterator<Item = &'s SourceStreak>, is_key_open: bool) {
        let mut last: Option<usize> = None;
        for SourceStreak { source, streak } in streaks.into_iter().filter(|beside| beside.streak.has_advanced()) {
            let Cursor::Level(cursor) = &mut self.sources.cursor_mut(*source).cursor else { continue };
            cursor.resume(streak);
            self.sources.send(*source, NextMove::Step);
            let key = |source: usize| self.sources.key(source);
            let is_after = last.is_none_or(|last| match self.direction {
                Direction::Forward => key(*source) > key(last),
                Direction::Backward => key(*source) < key(last),
            });
            if is_after {
                last = Some(*source);
            }
        }
        match last.and_then(|source| self.sources.key(source)) {
            Some(key) => {
                self.key.clear();
                self.key.extend_from_slice(key);
                self.came = if is_key_open { Came::To } else { Came::Past };
            }
            None => self.expects_streaks = false,
        }
    }
}

/// Where a walk starts that goes on after all keys before `edge`. Unbounded if there are no such keys.
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

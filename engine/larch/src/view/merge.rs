//! Merges the sorted sources of a table, memtables and levels, newest first, into one sequence of visible rows. It
//! walks over all of them together, in either direction.
//!
//! ```text
//!   key          a        b          c      d
//!   memtable              b erased   c=9                        rows that a reader sees:
//!   level 0      a=1                        d=7   range c..d erased     a=1   c=9   d=7
//!   level 1      a=0      b=3        c=2    d=4                 b is erased by the newest source that has it,
//!                                                               c=2 is hidden by the range, and c=9 is newer
//! ```
//!
//! The sources form a [`Frontier`]: even if one source faults, all others that have to move are moved before the
//! fault is returned. For each key, the newest source with a visible version decides, unless a range erase in this
//! source or a newer one hides the row. A merge keeps its state between steps, so even while it skips a hundred
//! thousand erased rows it pins only one page of each source at a time. Sources step over rows that a range erase in
//! a newer source hides; if there are many, they seek its end. This module does not know who reads.

use super::cover::{MergeCovers, comes_before};
use super::fold::Folding;
use super::found::FoundRow;
use super::frontier::{Frontier, Sorted};
use super::level::LevelCursor;
use super::{ReadRules, TableView};
use crate::manifest::Level;
use crate::memtable::{CopiedRows, MemCursor, MemRow, Memtable};
use os::sync::Arc;
use pages::{PageSource, Stop};
use sst::{Direction, Groups, Readahead, RowKind, Seek, StoredValue, Streak, StreakRow, StreakStart, Version};
use std::ops::Bound;

/// A merge of all sources of a table.
#[derive(Debug)]
pub struct Merge {
    direction: Direction,
    sources: Frontier<MergeSource, NextMove>,
    /// The key of the row that was found last.
    key: Vec<u8>,
    came: Came,
    covers: MergeCovers,
    /// The source of the row that was found last.
    giver: Option<usize>,
    /// Whether the merge expects that [streaks](Merge::streaks) have rows: it has not looked for any yet, the last
    /// look found some, or since then two consecutive rows were found in files.
    expects_streaks: bool,
    /// Whether this merge can use streaks. They assume that memory is newer than all files, but a transaction's own
    /// files are newer than the memtables.
    has_streaks: bool,
    /// Whether the merge has a source for each memtable and level of the table, so that it can be
    /// [restarted](Merge::restart) with other bounds.
    is_whole: bool,
    /// How far all levels together read ahead.
    readahead: Readahead,
    /// How many rows of a memtable are copied at once. The number starts small, and doubles each time that all copies
    /// were used up.
    copies: usize,
    rules: Arc<ReadRules>,
}

/// The next rows of one source that need no step.
#[derive(Debug)]
pub struct SourceStreak {
    /// The index of the source in the merge. Without a merge, its index among the streaks.
    pub(super) source: usize,
    pub rows: StreakRows,
}

/// Where the next rows of a source are.
#[derive(Debug)]
pub enum StreakRows {
    /// In the page in which the source stands.
    Page(Streak),
    /// Copied from a memtable.
    Copied(CopiedRows),
}

/// How far a merge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Nowhere,
    /// To the row with the merge's key. All rows before it are left.
    To,
    /// Past the row with the merge's key.
    Past,
}

#[derive(Debug)]
struct MergeSource {
    cursor: Cursor,
    /// The version at which the source is read.
    at: Version,
    /// How many consecutive rows the source has stepped over because a range erase in a newer source hides them.
    hidden: usize,
}

/// How many consecutive hidden rows a source steps over before it seeks the end of the range erase. A seek starts at
/// the root of the index, while a step usually stays in its page.
const HIDDEN_ROWS: usize = 8;

/// How many rows of a memtable are copied the first time.
const FIRST_COPIES: usize = 2;

#[derive(Debug)]
enum Cursor {
    Memory(MemCursor),
    Level(Box<LevelCursor>),
}

/// The next move of a source.
#[derive(Debug)]
enum NextMove {
    /// Seek the start of the walk.
    Seek,
    /// Seek the first key after the range that ends at this bound.
    SeekAfter(Bound<Vec<u8>>),
    Step,
}

/// What a reader does with the values of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// Uses only keys, and perhaps values that lie in the same pages as the keys.
    Nothing,
    /// Loads the wanted parts, even from other pages.
    Parts,
}

/// The bound at which a merge starts: the lower bound of the range for a forward walk, the upper bound for a backward
/// one.
pub type Start<'a> = Bound<&'a [u8]>;

impl Merge {
    /// A merge of all sources of `table` for keys from `low` to `high`. It leaves out files whose bounds or filters
    /// in memory show that they have no such key.
    pub fn new<S: PageSource + ?Sized>(
        source: &S,
        table: TableView<'_>,
        direction: Direction,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        readahead: Readahead,
    ) -> Self {
        Self::of(table, direction, bounds, readahead, |level| {
            LevelCursor::within(source, level.clone(), bounds, direction, Readahead::NONE)
        })
    }

    /// As [`Merge::new`], but leaves out no file, so that the merge can be [restarted](Self::restart).
    pub fn whole<S: PageSource + ?Sized>(
        source: &S,
        table: TableView<'_>,
        direction: Direction,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        readahead: Readahead,
    ) -> Self {
        Self::of(table, direction, bounds, readahead, |level| {
            Some(LevelCursor::within_any(source, level.clone(), bounds, direction, Readahead::NONE))
        })
    }

    /// A merge of those levels of `table` for which `cursor` returns a cursor, and of all memtables.
    #[inline]
    fn of(
        table: TableView<'_>,
        direction: Direction,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        readahead: Readahead,
        cursor: impl Fn(&Level) -> Option<Box<LevelCursor>>,
    ) -> Self {
        let at = table.at;
        let (level0, deeper) = table.files.levels.split_first().expect("a table has levels");
        let mut sources = Vec::with_capacity(table.view.memory.len() + level0.len() + deeper.len());
        let mut covers = MergeCovers::new(direction);
        let mut is_whole = true;
        let mut add_level = |level: &Level, at, covers: &mut MergeCovers, sources: &mut Vec<MergeSource>| {
            if let Some(cursor) = cursor(level) {
                covers.add_level(&cursor, at, low, high);
                sources.push(MergeSource { cursor: Cursor::Level(cursor), at, hidden: 0 });
            } else {
                is_whole = false;
            }
        };
        let memory = |memtable: &Arc<Memtable>, at| {
            let cursor = Cursor::Memory(MemCursor::new(memtable.clone(), at));
            MergeSource { cursor, at, hidden: 0 }
        };
        if let Some(own) = table.own {
            covers.add_memtable(&own.memtable, own.at);
            sources.push(memory(&own.memtable, own.at));
            own.files().iter().for_each(|file| add_level(file, own.at, &mut covers, &mut sources));
        }
        for memtable in table.memtables() {
            covers.add_memtable(memtable, at);
            sources.push(memory(memtable, at));
        }
        let level0 = level0.iter().map(|file| Arc::new(vec![file.clone()]));
        let levels = level0.chain(deeper.iter().filter(|level| !level.is_empty()).cloned());
        levels.for_each(|level| add_level(&level, at, &mut covers, &mut sources));
        let mut sources = Frontier::new(direction, sources, || NextMove::Seek);
        if !readahead.is_none() {
            share_readahead(&mut sources, readahead);
        }
        let (key, came, giver) = (Vec::new(), Came::Nowhere, None);
        let has_streaks = table.own.is_none_or(|own| own.files().is_empty());
        let (expects_streaks, copies) = (has_streaks, FIRST_COPIES);
        let rules = table.view.rules.clone();
        Self {
            direction,
            sources,
            key,
            came,
            covers,
            giver,
            expects_streaks,
            has_streaks,
            is_whole,
            readahead,
            copies,
            rules,
        }
    }

    /// Whether the merge can be [restarted](Self::restart).
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Leaves the place of the merge and drops all its pages, as if it were dropped. It keeps its files, its memtables
    /// and the memory that it has allocated. Until [`Merge::restart`] is called, it must not be used.
    pub fn leave_place(&mut self) {
        self.sources.cursors_mut().filter_map(|source| source.cursor.level()).for_each(LevelCursor::leave_place);
        self.covers.clear();
        (self.came, self.giver) = (Came::Nowhere, None);
    }

    /// Begins anew for keys from `low` to `high`, as a new merge of the same table would. The merge must be
    /// [whole](Self::is_whole), and must have left its place.
    pub fn restart<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        readahead: Readahead,
    ) {
        assert!(self.is_whole, "a file that was left out may have keys between the new bounds");
        let mut is_shared = readahead == self.readahead;
        for MergeSource { cursor, at, hidden } in self.sources.cursors_mut() {
            *hidden = 0;
            match cursor {
                Cursor::Memory(cursor) => self.covers.add_memtable(cursor.memtable(), *at),
                Cursor::Level(cursor) => {
                    is_shared &= cursor.restart(source, (low, high), self.direction);
                    self.covers.add_level(cursor, *at, low, high);
                }
            }
        }
        if !is_shared {
            self.readahead = readahead;
            share_readahead(&mut self.sources, readahead);
        }
        self.sources.restart(|| NextMove::Seek);
        (self.expects_streaks, self.copies) = (self.has_streaks, FIRST_COPIES);
    }

    /// The key of the row that was found last.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The bound from which another merge can continue this one. `None` if this merge has not found a row yet.
    pub fn place(&self) -> Option<Start<'_>> {
        match self.came {
            Came::Nowhere => None,
            Came::To => Some(Bound::Included(&self.key)),
            Came::Past => Some(Bound::Excluded(&self.key)),
        }
    }

    /// Finds the next visible row before `far`, or again the row that was found last if it was not
    /// [left](Self::leave). Only the first search uses `start`. Of rows beyond `far`, only keys are read. If the row
    /// is in a file, `parts` gets its parts in `groups`, except the one in the main group. With [`Loads::Parts`], the
    /// merge also asks ahead for values outside pages.
    ///
    /// A composite step: if it runs again after a fault, it goes on where it was, without moving the sources that
    /// have arrived. It leaves invisible rows behind and releases the pages that were pinned for them.
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
                    && let MergeSource { cursor: Cursor::Level(cursor), at, .. } = self.sources.cursor_mut(source)
                {
                    if groups.any_beside_main() {
                        cursor.parts(reader, groups, row.place, parts)?;
                    }
                    if loads == Loads::Parts {
                        cursor.load_ahead(reader, groups, row.place, *at);
                    }
                }
                let was_in_file = self.giver.is_some_and(|giver| self.sources.cursor(giver).cursor.is_level());
                self.expects_streaks |= was_in_file && matches!(found, FoundRow::File(..));
                self.giver = Some(source);
                return Ok(Some(found));
            }
            self.leave();
            reader.release();
        }
    }

    /// Moves every source that has to move, and then releases the pages that were pinned for these moves. Does
    /// nothing if no row was left since the last call. A step.
    pub fn arrive<S: PageSource + ?Sized>(
        &mut self,
        reader: &S,
        (start, far): (Start<'_>, Bound<&[u8]>),
    ) -> Result<(), Stop> {
        if self.sources.has_arrived() {
            return Ok(());
        }
        let mut is_cover_missing = false;
        // Asks for the range erases around the start, so that their pages are read in the same rounds as those of the
        // rows.
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

    /// The visible row of the current key, with the source that has it. `first` is the newest source that has the
    /// key.
    fn resolve<S: PageSource + ?Sized>(&self, reader: &S, first: usize) -> Result<Option<(usize, FoundRow)>, Stop> {
        let key = self.key.as_slice();
        for i in first..self.sources.len() {
            if self.sources.key(i) != Some(key) {
                continue;
            }
            if self.covers.hidden_until(i).is_some() {
                return Ok(None);
            }
            let MergeSource { cursor, at, .. } = self.sources.cursor(i);
            let Some((kind, version, found)) = cursor.visible(reader, *at)? else {
                continue;
            };
            let shows = self.rules.clock.shows(kind, || found.until())
                && self.covers.over(i).is_none_or(|cover| cover <= version);
            if shows && kind == RowKind::Merge {
                return Ok(Some((i, FoundRow::Memory(self.fold(reader, i)?))));
            }
            return Ok(shows.then_some((i, found)));
        }
        Ok(None)
    }

    /// The value of the current key, whose newest row is a merge in source `first`. A step.
    #[cold]
    fn fold<S: PageSource + ?Sized>(&self, reader: &S, first: usize) -> Result<MemRow, Stop> {
        let key = self.key.as_slice();
        let mut folding = Folding::default();
        for i in first..self.sources.len() {
            // A range erase hides all rows of older sources. Those of the same source were joined with it.
            if i > first && self.covers.hidden_until(i).is_some() {
                break;
            }
            if self.sources.key(i) != Some(key) {
                continue;
            }
            let MergeSource { cursor, at, .. } = self.sources.cursor(i);
            let is_hidden = |version| self.covers.over(i).is_some_and(|cover| cover > version);
            let goes_on = match cursor {
                Cursor::Memory(cursor) if is_hidden(cursor.row().version()) => folding.add(None),
                Cursor::Memory(cursor) => folding.add_memory(cursor.memtable(), cursor.row()),
                Cursor::Level(cursor) => {
                    let Some(row) = cursor.visible(reader, *at)? else { continue };
                    if row.kind == RowKind::Erase || is_hidden(row.version) {
                        folding.add(None)
                    } else {
                        let content = row.value.load(reader, &cursor.file().sst.file)?.as_bytes().to_vec();
                        folding.add(Some((row.kind, row.version, content, row.until())))
                    }
                }
            };
            if !goes_on {
                break;
            }
        }
        folding.finish(&self.rules, key)
    }

    /// Leaves the row that was found last: all sources that stand at its key will move before keys are compared
    /// again.
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

    /// The bytes of the pages that the merge pins between two steps.
    pub fn pinned_bytes(&self) -> u64 {
        let levels = self.sources.cursors().map(|source| match &source.cursor {
            Cursor::Memory(..) => 0,
            Cursor::Level(cursor) => cursor.pinned_bytes(),
        });
        levels.sum()
    }

    /// Whether calling [`Merge::streaks`] is worth its time. It is not if the next rows are probably all in
    /// memtables.
    pub fn expects_streaks(&self) -> bool {
        self.expects_streaks
    }

    /// Returns the next rows of each source, newest source first, as far as they need no step and come before `far`.
    /// All of them come after the row that was left last. They lie in the pages in which the sources stand, or are
    /// copies of memtable rows between them. They end before the next row of any source that needs a step, and the
    /// same range erases cover all of them. If `is_alone`, only rows in the page of the row that was left are
    /// returned. The caller will take at most `most` rows, with their parts in `groups`. The merge stays where it is
    /// until [`Merge::resume`] is called.
    pub fn streaks(&mut self, far: Bound<&[u8]>, groups: Groups, (is_alone, most): (bool, usize)) -> Vec<SourceStreak> {
        let giver = self.giver.filter(|_| self.has_streaks);
        let streaks = giver.and_then(|giver| self.find_streaks(giver, far, groups, (is_alone, most)));
        let streaks = streaks.unwrap_or_default();
        self.expects_streaks = !streaks.is_empty();
        streaks
    }

    fn find_streaks(
        &self,
        giver: usize,
        far: Bound<&[u8]>,
        groups: Groups,
        (is_alone, most): (bool, usize),
    ) -> Option<Vec<SourceStreak>> {
        let (mut pages, mut in_memory, mut next_keys) = (Vec::new(), Vec::new(), Vec::new());
        // A hidden source is about to seek the end of a range erase that hides its rows up to the edge. All streaks
        // end at the edge, so such a source is left out.
        let is_hidden = |source| matches!(self.sources.moving(source), Some(NextMove::SeekAfter(_)));
        let giver_goes_on = self.sources.key(giver).is_some() && !is_hidden(giver);
        // The streak of the giver comes first, because without it the other streaks are not used.
        let mut of_giver = match giver_goes_on && self.sources.cursor(giver).cursor.is_level() {
            true => Some(self.streak_of(giver, far, groups).filter(Streak::has_parts)?),
            false => None,
        };
        for source in 0..self.sources.len() {
            let Some(key) = self.sources.key(source) else { continue };
            if is_hidden(source) {
                continue;
            }
            if is_alone && source != giver {
                next_keys.push(key);
            } else if !self.sources.cursor(source).cursor.is_level() {
                in_memory.push(source);
            } else if source == giver {
                pages.extend(of_giver.take().map(|streak| (source, streak)));
            } else if let Some(streak) = self.streak_of(source, far, groups) {
                pages.push((source, streak));
            } else {
                next_keys.push(key);
            }
        }
        for (_, streak) in &mut pages {
            next_keys.iter().for_each(|key| streak.until(Bound::Excluded(key)));
        }
        pages.retain(|(_, streak)| !streak.is_empty());
        if !pages.iter().any(|(_, streak)| streak.has_parts()) {
            return None;
        }
        let (_, oldest) = pages.last_mut()?;
        let mut copies = Vec::new();
        if !in_memory.is_empty() {
            // Memtable rows are copied up to the last row in the page of the oldest source, which usually has the
            // most rows.
            oldest.limit(most);
            let mut last = Vec::new();
            let end = if oldest.is_cut() { Bound::Unbounded } else { oldest.last_key(&mut last) };
            let ends = [far, self.covers.edge(), end];
            let is_before = |key: &[u8], end: Bound<&[u8]>| comes_before(key, &end, self.direction);
            let is_before_end = |key: &[u8]| {
                ends.iter().all(|&end| is_before(key, end))
                    && next_keys.iter().all(|next| is_before(key, Bound::Excluded(next)))
            };
            for source in in_memory {
                let Cursor::Memory(cursor) = &self.sources.cursor(source).cursor else { continue };
                let (start, erased) = (self.start_of(source), self.covers.over(source));
                let rows = CopiedRows::new(
                    cursor,
                    start,
                    self.direction,
                    (erased, &self.rules.clock),
                    self.copies,
                    is_before_end,
                );
                if !rows.is_empty() {
                    copies.push(SourceStreak { source, rows: StreakRows::Copied(rows) });
                }
            }
        }
        // Copies come first, because memory is newer than all files.
        let pages = pages.into_iter().map(|(source, streak)| SourceStreak { source, rows: StreakRows::Page(streak) });
        Some(copies.into_iter().chain(pages).collect())
    }

    /// The next rows of `source` that need no step and come before `far`. `None` if the next row needs a step.
    fn streak_of(&self, source: usize, far: Bound<&[u8]>, groups: Groups) -> Option<Streak> {
        let MergeSource { cursor: Cursor::Level(cursor), at, .. } = self.sources.cursor(source) else { return None };
        let shown = (*at, self.covers.over(source));
        let mut streak = cursor.streak(self.start_of(source), self.direction, shown, groups)?;
        if cursor.file().sst.meta.expiry.is_some() {
            streak.at_time(self.rules.clock.now());
        }
        streak.until(self.covers.edge());
        streak.until(far);
        Some(streak)
    }

    /// Whether the next row of `source` is the one at which it stands or the one after it.
    fn start_of(&self, source: usize) -> StreakStart {
        if self.sources.moving(source).is_some() { StreakStart::After } else { StreakStart::At }
    }

    /// Continues after the rows that were taken from `streaks`, which began at the current place of the merge. If
    /// `is_key_open`, the last row that was passed left its key undecided, and another source may have a visible row
    /// with it.
    pub fn resume<'s>(&mut self, streaks: impl IntoIterator<Item = &'s SourceStreak>, is_key_open: bool) {
        let mut last: Option<usize> = None;
        for SourceStreak { source, rows } in streaks.into_iter().filter(|beside| beside.rows.has_advanced()) {
            match (&mut self.sources.cursor_mut(*source).cursor, rows) {
                (Cursor::Level(cursor), StreakRows::Page(streak)) => cursor.resume(streak),
                (Cursor::Memory(cursor), StreakRows::Copied(rows)) => {
                    rows.resume(cursor);
                    if rows.is_used_up() {
                        self.copies = self.copies.saturating_mul(2);
                    }
                }
                _ => unreachable!("a source gives rows of one kind"),
            }
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

/// Lets the levels among `sources` read ahead, each in proportion to its bytes.
fn share_readahead(sources: &mut Frontier<MergeSource, NextMove>, readahead: Readahead) {
    let levels = |source: &MergeSource| if let Cursor::Level(cursor) = &source.cursor { cursor.bytes() } else { 0 };
    let all_bytes = sources.cursors().map(levels).sum();
    for cursor in sources.cursors_mut().filter_map(|source| source.cursor.level()) {
        cursor.set_readahead(readahead.share(cursor.bytes(), all_bytes));
    }
}

/// The start of a walk that continues after `edge`, the end of a range.
fn after(edge: &Bound<Vec<u8>>) -> Start<'_> {
    match edge {
        Bound::Included(last) => Bound::Excluded(last),
        Bound::Excluded(next) => Bound::Included(next),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl StreakRows {
    /// The direction in which the rows follow each other.
    pub fn direction(&self) -> Direction {
        match self {
            Self::Page(streak) => streak.direction(),
            Self::Copied(rows) => rows.direction(),
        }
    }

    /// The prefix that all keys of the rows share.
    pub fn prefix(&self) -> &[u8] {
        match self {
            Self::Page(streak) => streak.prefix(),
            Self::Copied(rows) => rows.prefix(),
        }
    }

    /// Whether the streak was cut at the common end of all streaks. If not, the source may have more rows before that
    /// end.
    #[inline]
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Page(streak) => streak.is_cut(),
            Self::Copied(rows) => rows.is_cut(),
        }
    }

    /// The bytes of the pinned page or of the copies.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Page(streak) => streak.pinned_bytes(),
            Self::Copied(rows) => rows.memory_bytes(),
        }
    }

    /// The place of the next row, in the page or among the copies. `None` if no row is left.
    #[inline]
    pub fn row(&self) -> Option<usize> {
        match self {
            Self::Page(streak) => streak.row(),
            Self::Copied(rows) => rows.row(),
        }
    }

    /// Reads the next row and returns what the source says about it. `None` if no row is left.
    #[inline]
    pub fn read(&mut self) -> Option<StreakRow> {
        match self {
            Self::Page(streak) => streak.read(),
            Self::Copied(rows) => rows.read(),
        }
    }

    /// The key that was read last.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Page(streak) => streak.key(),
            Self::Copied(rows) => rows.key(),
        }
    }

    /// Replaces `key` with the key of the row at place `row`.
    pub fn read_key(&self, row: usize, key: &mut Vec<u8>) {
        match self {
            Self::Page(streak) => streak.read_key(row, key),
            Self::Copied(rows) => rows.read_key(row, key),
        }
    }

    /// Passes the next row.
    #[inline]
    pub fn advance(&mut self) {
        match self {
            Self::Page(streak) => streak.advance(),
            Self::Copied(rows) => rows.advance(),
        }
    }

    fn has_advanced(&self) -> bool {
        match self {
            Self::Page(streak) => streak.has_advanced(),
            Self::Copied(rows) => rows.has_advanced(),
        }
    }
}

impl Sorted for MergeSource {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }
}

impl Cursor {
    fn is_level(&self) -> bool {
        matches!(self, Self::Level(..))
    }

    fn level(&mut self) -> Option<&mut LevelCursor> {
        if let Self::Level(cursor) = self { Some(cursor) } else { None }
    }

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
            (Self::Memory(cursor), _) => {
                cursor.step(direction);
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

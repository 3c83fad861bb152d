//! A cursor over a sorted level, which reads the files of the level one after the other. It does not decide which
//! versions a reader sees.

use crate::manifest::Level;
use crate::manifest::db_file::DbFile;
use os::sync::Arc;
use pages::{PageSource, Stop};
use sst::{Direction, Groups, Readahead, Row, RowPlace, Seek, SstCursor, StoredValue, Streak, StreakStart, Version};
use std::collections::VecDeque;
use std::ops::{Bound, Range};

/// A place in a level whose files do not overlap. Each file of level 0 gets a cursor of its own, as a level of one
/// file.
#[derive(Debug)]
pub struct LevelCursor {
    files: Level,
    /// The files through which the cursor walks. It reads no others.
    walked: Range<usize>,
    /// The prefix that all keys of this walk share. Set only if the filters have prefixes of this length.
    prefix: Option<Vec<u8>>,
    /// The index of the file in which the cursor stands or, after a fault, in which the step will go on.
    at: usize,
    cursor: Option<SstCursor>,
    /// Whether the cursor was [restarted](Self::restart) and has opened no file since. `cursor` has no place then and
    /// is only memory for the next one.
    is_left: bool,
    /// Cursors over the next files, in walk order, which have already asked for pages.
    ready: VecDeque<(usize, SstCursor)>,
    direction: Direction,
    readahead: Readahead,
    /// The bound at which the walk ends.
    far: Bound<Arc<[u8]>>,
}

/// The files of a sorted level that may have keys from `low` to `high`, judging by their bounds alone.
pub fn files_between(files: &[Arc<DbFile>], low: Bound<&[u8]>, high: Bound<&[u8]>) -> Range<usize> {
    let ends_before = |file: &Arc<DbFile>| match (file.sst.bounds().high.as_deref(), low) {
        (None, _) | (_, Bound::Unbounded) => false,
        (Some(last), Bound::Included(low)) => last < low,
        (Some(last), Bound::Excluded(low)) => last <= low,
    };
    let begins_in_time = |file: &Arc<DbFile>| match (file.sst.bounds().low.as_slice(), high) {
        (_, Bound::Unbounded) => true,
        (first, Bound::Included(high)) => first <= high,
        (first, Bound::Excluded(high)) => first < high,
    };
    let start = files.partition_point(ends_before);
    let end = files.partition_point(begins_in_time).max(start);
    start..end
}

/// As [`files_between`], but leaves out files at both ends if they have no rows, or if filter pages in memory show that
/// they have no such key. It keeps a file whose range erases may cover such a key. It reads nothing from disk.
pub fn files_asked_between<S: PageSource + ?Sized>(
    source: &S,
    files: &[Arc<DbFile>],
    low: Bound<&[u8]>,
    high: Bound<&[u8]>,
) -> Range<usize> {
    let Range { mut start, mut end } = files_between(files, low, high);
    let has_none = |at: usize| {
        let sst = &files[at].sst;
        let has_rows = || sst.meta.main.is_some() && !sst.has_none_between(source, low, high);
        !sst.may_erase_between(low, high) && !has_rows()
    };
    while start < end && has_none(start) {
        start += 1;
    }
    while start + 1 < end && has_none(end - 1) {
        end -= 1;
    }
    start..end
}

/// The prefix that all keys from `low` to `high` share, if the filters of `files` have prefixes of this length.
fn shared_prefix<'k>(files: &[Arc<DbFile>], low: Bound<&'k [u8]>, high: Bound<&[u8]>) -> Option<&'k [u8]> {
    files.first()?.sst.filtered_prefix(low, high)
}

impl LevelCursor {
    /// A cursor over all of `files`. It stands nowhere yet.
    pub fn new(files: Level, readahead: Readahead) -> Self {
        let walked = 0..files.len();
        let (prefix, cursor, ready, far) = (None, None, VecDeque::new(), Bound::Unbounded);
        let (at, is_left, direction) = (0, false, Direction::Forward);
        Self { at, prefix, files, walked, cursor, is_left, ready, direction, readahead, far }
    }

    /// A cursor over those `files` that may have keys from `low` to `high`, or `None` if there are none. It walks in
    /// `direction` and reads ahead only up to the bound at which the walk ends. It may also stand at keys outside the
    /// bounds, but opens no file that lies outside them as a whole. It is boxed because a cursor is large and should
    /// not be moved.
    pub fn within<S: PageSource + ?Sized>(
        source: &S,
        files: Level,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        readahead: Readahead,
    ) -> Option<Box<Self>> {
        let walked = files_asked_between(source, &files, low, high);
        if walked.is_empty() { None } else { Some(Self::through(files, walked, (low, high), direction, readahead)) }
    }

    /// As [`LevelCursor::within`], but there is a cursor even if no file may have such a key: then it finds no row
    /// before it is [restarted](Self::restart).
    pub fn within_any<S: PageSource + ?Sized>(
        source: &S,
        files: Level,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        readahead: Readahead,
    ) -> Box<Self> {
        let walked = files_asked_between(source, &files, low, high);
        Self::through(files, walked, (low, high), direction, readahead)
    }

    /// A cursor through those of `files` that are `walked`.
    #[inline]
    fn through(
        files: Level,
        walked: Range<usize>,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        readahead: Readahead,
    ) -> Box<Self> {
        let prefix = shared_prefix(&files[walked.clone()], low, high).map(<[u8]>::to_vec);
        let far = direction.near_far((low, high)).1.map(Arc::from);
        let (at, cursor, is_left, ready) = (walked.start, None, false, VecDeque::new());
        Box::new(Self { at, prefix, files, walked, cursor, is_left, ready, direction, readahead, far })
    }

    /// Leaves the place of the cursor and drops all its pages. Until [`LevelCursor::restart`] is called, it must not
    /// be moved.
    pub fn leave_place(&mut self) {
        if let Some(cursor) = &mut self.cursor {
            cursor.leave_place();
        }
        self.ready.clear();
    }

    /// Begins another walk in `direction`, as a new cursor [within](Self::within) these bounds would. The cursor must
    /// have left its place. It reuses the memory of its last walk, and reads ahead as far as in that walk. Returns
    /// whether it walks through the same files as in that walk.
    pub fn restart<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> bool {
        self.is_left = true;
        let walked = files_asked_between(source, &self.files, low, high);
        let is_same = walked == self.walked;
        self.walked = walked;
        match (shared_prefix(&self.files[self.walked.clone()], low, high), &mut self.prefix) {
            (Some(new), Some(prefix)) => new.clone_into(prefix),
            (new, prefix) => *prefix = new.map(<[u8]>::to_vec),
        }
        let far = direction.near_far((low, high)).1;
        if self.far.as_ref().map(|key| &**key) != far {
            self.far = far.map(Arc::from);
        }
        self.direction = direction;
        is_same
    }

    /// Sets how far the cursor reads ahead from now on.
    pub fn set_readahead(&mut self, readahead: Readahead) {
        self.readahead = readahead;
    }

    /// The stored bytes of the files through which the cursor walks, as far as the table's slices see them.
    pub fn bytes(&self) -> u64 {
        self.files[self.walked.clone()].iter().map(|file| file.sst.visible_bytes()).sum()
    }

    /// All files of the level, and the range of them through which the cursor walks.
    pub fn walked(&self) -> (&Level, Range<usize>) {
        (&self.files, self.walked.clone())
    }

    /// The bytes of the pages that the cursor pins between two steps.
    pub fn pinned_bytes(&self) -> u64 {
        let ready = self.ready.iter().map(|(_, cursor)| cursor);
        self.cursor.iter().chain(ready).map(SstCursor::pinned_bytes).sum()
    }

    fn cursor_of(&self, file: &DbFile) -> SstCursor {
        let cursor = SstCursor::new(file.sst.clone()).with_readahead(self.readahead);
        match &self.far {
            Bound::Unbounded => cursor,
            far => cursor.until(far.as_ref().map(|key| &**key)),
        }
    }

    /// The cursor of the last walk, if it is left, as a cursor over file `at`.
    fn take_left(&mut self, at: usize) -> Option<SstCursor> {
        if !std::mem::take(&mut self.is_left) {
            return None;
        }
        let mut cursor = self.cursor.take()?;
        cursor.restart(&self.files[at].sst, self.readahead, self.far.as_ref().map(|key| &**key));
        Some(cursor)
    }

    /// The file in which the cursor stands.
    pub fn file(&self) -> &Arc<DbFile> {
        &self.files[self.at]
    }

    fn open(&mut self, at: usize) -> &mut SstCursor {
        self.ready.clear();
        let is_new = self.at != at || self.is_left;
        match &mut self.cursor {
            Some(cursor) if is_new => {
                cursor.restart(&self.files[at].sst, self.readahead, self.far.as_ref().map(|key| &**key));
            }
            Some(_) => {}
            None => self.cursor = Some(self.cursor_of(&self.files[at])),
        }
        (self.at, self.is_left) = (at, false);
        self.cursor.as_mut().expect("opened above")
    }

    fn note_seek<S: PageSource + ?Sized>(&self, source: &S, outcome: &Result<bool, Stop>) {
        if let (Some(prefix), Some(cursor)) = (&self.prefix, &self.cursor) {
            cursor.note_seek(source, prefix, outcome);
        }
    }

    /// Seeks the first row at or after `key` (`Lower`) or after `key` (`Upper`). A step.
    pub fn seek<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        self.direction = Direction::Forward;
        let first = self.files.partition_point(|file| file.sst.bounds().high.as_deref().is_some_and(|high| high < key));
        for at in first.max(self.walked.start)..self.walked.end {
            let outcome = self.open(at).seek(source, key, seek);
            self.note_seek(source, &outcome);
            if outcome? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Seeks the last row at or before `key` (`Lower`) or before `key` (`Upper`). A step.
    pub fn seek_back<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        self.direction = Direction::Backward;
        let end = self.files.partition_point(|file| file.sst.bounds().low.as_slice() <= key);
        for at in (self.walked.start..end.min(self.walked.end)).rev() {
            let outcome = self.open(at).seek_back(source, key, seek);
            self.note_seek(source, &outcome);
            if outcome? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the first row. This is a step.
    pub fn seek_first<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.direction = Direction::Forward;
        self.seek_first_from(source, self.walked.start)
    }

    fn seek_first_from<S: PageSource + ?Sized>(&mut self, source: &S, first: usize) -> Result<bool, Stop> {
        for at in first..self.walked.end {
            if self.enter(at, |cursor| cursor.seek_first(source))? {
                self.ask_ahead(source);
                return Ok(true);
            }
        }
        self.cursor = None;
        Ok(false)
    }

    /// Enters file `at`, in which `seek` moves a cursor. Returns false if it finds no row. After a fault, the level
    /// cursor is where it was, so the move can be made again.
    fn enter(&mut self, at: usize, seek: impl FnOnce(&mut SstCursor) -> Result<bool, Stop>) -> Result<bool, Stop> {
        let mut cursor = match self.ready.pop_front() {
            Some((ready, cursor)) if ready == at => cursor,
            _ => {
                self.ready.clear();
                self.take_left(at).unwrap_or_else(|| self.cursor_of(&self.files[at]))
            }
        };
        match seek(&mut cursor) {
            Ok(true) => {
                self.at = at;
                self.cursor = Some(cursor);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(stop) => {
                self.ready.push_front((at, cursor));
                Err(stop)
            }
        }
    }

    /// Asks for pages of the next files, if readahead goes beyond the end of the current file.
    #[inline]
    fn ask_ahead<S: PageSource + ?Sized>(&mut self, source: &S) {
        if self.cursor.as_ref().is_some_and(SstCursor::has_rest) {
            self.ask_after(source);
        }
    }

    fn ask_after<S: PageSource + ?Sized>(&mut self, source: &S) {
        let mut at = self.at;
        for i in 0.. {
            let before = if i == 0 { self.cursor.as_ref() } else { self.ready.get(i - 1).map(|(_, cursor)| cursor) };
            if !before.is_some_and(SstCursor::has_rest) {
                return;
            }
            let next = if self.direction.is_forward() { at.checked_add(1) } else { at.checked_sub(1) };
            let next = next.filter(|next| self.walked.contains(next));
            if self.ready.get(i).is_some_and(|(ready, _)| Some(*ready) != next) {
                self.ready.truncate(i);
            }
            let mut ready = match next {
                Some(next) => Some(self.ready.remove(i).unwrap_or_else(|| (next, self.cursor_of(&self.files[next])))),
                None => None,
            };
            let before =
                if i == 0 { self.cursor.as_mut() } else { self.ready.get_mut(i - 1).map(|(_, cursor)| cursor) };
            let before = before.expect("it was there above");
            match &mut ready {
                Some((_, cursor)) => cursor.ask_after(source, before),
                None => before.forget_rest(),
            }
            let Some((next, cursor)) = ready else { return };
            self.ready.insert(i, (next, cursor));
            at = next;
        }
    }

    /// Goes to the last row. This is a step.
    pub fn seek_last<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.direction = Direction::Backward;
        self.seek_last_before(source, self.walked.end)
    }

    fn seek_last_before<S: PageSource + ?Sized>(&mut self, source: &S, end: usize) -> Result<bool, Stop> {
        for at in (self.walked.start..end).rev() {
            if self.enter(at, |cursor| cursor.seek_last(source))? {
                self.ask_ahead(source);
                return Ok(true);
            }
        }
        self.cursor = None;
        Ok(false)
    }

    fn is_at_edge(&self, direction: Direction) -> bool {
        self.cursor
            .as_ref()
            .is_none_or(|cursor| if direction.is_forward() { cursor.is_last() } else { cursor.is_first() })
    }

    /// Goes to the next row. This is a step.
    pub fn next<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.direction = Direction::Forward;
        if self.is_at_edge(Direction::Forward) {
            return if self.cursor.is_some() { self.seek_first_from(source, self.at + 1) } else { Ok(false) };
        }
        let there = self.cursor.as_mut().expect("not at the edge").next(source);
        self.ask_ahead(source);
        there
    }

    /// The file that the next forward move will enter. `None` if that move stays in the current file or no file is
    /// left.
    #[inline]
    pub fn file_ahead(&self) -> Option<&Arc<DbFile>> {
        let next = match &self.cursor {
            Some(cursor) if !cursor.is_last() => return None,
            Some(_) => self.at + 1,
            None => self.walked.start,
        };
        self.files.get(next).filter(|_| self.walked.contains(&next))
    }

    /// Skips the file that the next forward move would enter.
    pub fn skip_file_ahead(&mut self) {
        match self.cursor {
            Some(_) => self.at += 1,
            None => self.walked.start += 1,
        }
    }

    /// Goes to the previous row. This is a step.
    pub fn prev<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.direction = Direction::Backward;
        if self.is_at_edge(Direction::Backward) {
            return if self.cursor.is_some() { self.seek_last_before(source, self.at) } else { Ok(false) };
        }
        let there = self.cursor.as_mut().expect("not at the edge").prev(source);
        self.ask_ahead(source);
        there
    }

    /// The key of the row at which the cursor stands. The cursor must stand at a row.
    pub fn key(&self) -> &[u8] {
        self.cursor.as_ref().expect("the last move found a row").key()
    }

    /// The newest version of the current row that a reader at `at` sees. A step.
    pub fn visible<S: PageSource + ?Sized>(&self, source: &S, at: Version) -> Result<Option<Row>, Stop> {
        self.cursor.as_ref().expect("the last move found a row").visible(source, at)
    }

    /// Appends to `parts` the parts of the row at `place` in all `groups` except the main group, in group order. A
    /// step: if it faults, nothing is appended.
    pub fn parts<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        groups: Groups,
        place: RowPlace,
        parts: &mut Vec<StoredValue>,
    ) -> Result<(), Stop> {
        let read = self.cursor.as_mut().expect("the last move found a row").parts(source, groups, place, parts);
        self.ask_ahead(source);
        read
    }

    /// Asks ahead for the values outside pages that the caller will load: the parts in `groups` of the row at
    /// `place`, which was found last, and of the rows after it that a reader at `at` sees. The cursor does not move.
    pub fn load_ahead<S: PageSource + ?Sized>(&mut self, source: &S, groups: Groups, place: RowPlace, at: Version) {
        self.cursor.as_mut().expect("the last move found a row").load_ahead(source, groups, place, Some(at));
    }

    /// The rows of the current page from the current row on, as a reader at `at` sees them, with their parts in
    /// `groups`. Rows older than `erased` count as erased. The cursor does not move.
    pub fn streak(
        &self,
        start: StreakStart,
        direction: Direction,
        (at, erased): (Version, Option<Version>),
        groups: Groups,
    ) -> Option<Streak> {
        self.cursor.as_ref()?.streak(start, direction, (at, erased), groups)
    }

    /// Moves to the last row that `streak` has passed. The streak must have begun at the current row and passed at
    /// least one row.
    pub fn resume(&mut self, streak: &Streak) {
        self.cursor.as_mut().expect("a streak began at a row").resume(streak);
    }

    /// The cursor in the current file, for a caller that copies all versions of the row.
    pub fn versions(&mut self) -> &mut SstCursor {
        self.cursor.as_mut().expect("the last move found a row")
    }
}

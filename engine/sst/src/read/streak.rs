//! A *streak* gives a merge the rows of one page one after the other: the rest of the page in which a source of
//! the merge stands (decision 53). The merge has made sure that none of its other sources has a row between them.
//! In each column group, the parts of the streak's rows lie in one page. A streak knows no other source, and no
//! file.
//!
//! In general, a merge takes a row by comparing all its sources, in steps that may fault. But most of its rows
//! come from pages in which its sources stand already. For such a row, a streak needs no step and no lock, and no
//! new reference to a page or a file.

use super::stored_value::StoredValue;
use super::tree::TreeCursor;
use crate::Direction;
use crate::format::PageRows;
use crate::format::data_page::{Layout, RowRecord};
use crate::format::group_page::GroupLayout;
use crate::row::{RowKind, Version};
use pages::PageRef;
use std::ops::{Bound, ControlFlow, Range};

/// The rest of a page's rows in one direction, as a read at one version sees them. The streak keeps the page in
/// memory, and also the pages with the parts of its rows in the wanted column groups.
#[derive(Debug)]
pub struct Streak {
    page: PageRef,
    layout: Layout,
    /// The rows that are still to come, by their places in the page.
    rows: Range<usize>,
    /// How many rows it had at first.
    began_with: usize,
    /// Whether [`until`](Self::until) has left out rows of the page.
    is_cut: bool,
    direction: Direction,
    at: Version,
    /// A range erase at this version hides all older rows.
    erased: Option<Version>,
    /// Rows that expire at or before this time count as erased, see [`Streak::at_time`].
    now: u64,
    version_offset: u64,
    /// The key that was read last. It begins with the prefix of the page.
    key: Vec<u8>,
    /// The column groups that are read in addition to the main one. Mostly there are none.
    beside: Option<Box<BesideMain>>,
}

/// The parts of a streak's rows in the column groups that are read in addition to the main one.
#[derive(Debug, Default)]
struct BesideMain {
    pages: Vec<GroupPage>,
    /// The parts of the row that was read last, if that row was [shown](StreakRow::Shown). Each part refers to its
    /// page.
    parts: Vec<StoredValue>,
    /// Whether the page of some group is not known. If so, every row with a value counts as a row whose value lies
    /// elsewhere.
    is_unknown: bool,
}

/// Where the parts of a streak's rows lie in a page of a column group.
#[derive(Debug)]
struct GroupPage {
    layout: GroupLayout,
    /// Added (modulo 2^64) to a row's place in the streak's page, this gives the place of its part in the group's
    /// page.
    shift: usize,
}

impl BesideMain {
    /// Finds the parts of the row at place `i` of the streak's page. Returns false if a part lies outside its
    /// page, or is not known.
    fn read(&mut self, i: usize) -> bool {
        !self.is_unknown
            && self.parts.iter_mut().zip(&self.pages).all(|(part, GroupPage { layout, shift })| {
                let stored = layout.part(part.page(), i.wrapping_add(*shift));
                part.move_to(stored);
                !stored.outside
            })
    }

    /// Whether the parts of the row at place `i` of the streak's page are known and lie in their pages.
    #[inline]
    fn is_inline(&self, i: usize) -> bool {
        !self.is_unknown
            && self
                .parts
                .iter()
                .zip(&self.pages)
                .all(|(part, GroupPage { layout, shift })| !layout.is_outside(part.page(), i.wrapping_add(*shift)))
    }
}

/// The parts of a streak's rows in a group beside the main one.
#[derive(Clone, Copy, Debug)]
pub struct GroupParts<'s> {
    page: &'s [u8],
    layout: GroupLayout,
    /// The same as [`GroupPage::shift`].
    shift: usize,
}

impl<'s> GroupParts<'s> {
    /// The part of the row at place `row` of the streak's page. The part must lie in its own page.
    #[inline]
    pub fn part(&self, row: usize) -> &'s [u8] {
        let part = self.layout.part(self.page, row.wrapping_add(self.shift));
        &self.page[part.at..part.at + part.bytes]
    }
}

/// Where a streak begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreakStart {
    /// At the row where the cursor stands.
    At,
    /// After that row.
    After,
}

/// What a streak says about one of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreakRow {
    /// The key has a value in the page, between these two offsets. They have 32 bits, so that they stay in
    /// registers.
    Shown(u32, u32),
    /// It has no value.
    Gone,
    /// Nothing, because no version of the key is old enough.
    Unseen,
    /// The visible version lies in another page, or its value or a part of the value does. The streak does not go
    /// beyond this row.
    Elsewhere,
}

/// Where a [run](Streak::run) of rows ended.
#[derive(Debug)]
pub enum RunEnd<B> {
    /// At a row that was taken. The streak has not gone past that row.
    Given(B),
    /// Before this row, which was read; `None` if no row is left.
    Before(Option<StreakRow>),
}

impl Streak {
    /// The rows of the cursor's page from the cursor's row on, up to the next row that is not within the cursor's
    /// bounds. `None` if there are no such rows, if the cursor is at no row, or if the value or the visible
    /// version of its row lies in another page.
    pub(super) fn new(
        cursor: &TreeCursor,
        start: StreakStart,
        direction: Direction,
        (at, erased): (Version, Option<Version>),
        version_offset: u64,
    ) -> Option<Streak> {
        let (page, layout, i) = cursor.place()?;
        // If a streak could not give even this row, the next rows are probably of the same kind.
        let here = layout.record(page, i);
        if here.outside || here.version.0.saturating_add(version_offset) > at.0 {
            return None;
        }
        let first = layout.first_row();
        let seen = cursor.rows_around(first + i as u64);
        let near = usize::from(start == StreakStart::After);
        let rows = match direction {
            Direction::Forward => i + near..layout.rows().min(usize::try_from(seen.end - first).unwrap_or(usize::MAX)),
            Direction::Backward => seen.start.saturating_sub(first) as usize..i + 1 - near,
        };
        if rows.is_empty() {
            return None;
        }
        let streak = Streak::among(page.clone(), layout, rows, direction, (at, version_offset), Vec::new());
        Some(Streak { erased, ..streak })
    }

    /// The rows of `page` from row `i` to the end of the page. Keys are read into the memory of `key`.
    #[inline]
    pub(super) fn of_page(
        page: PageRef,
        layout: &Layout,
        i: usize,
        direction: Direction,
        seen: (Version, u64),
        key: Vec<u8>,
    ) -> Streak {
        let rows = match direction {
            Direction::Forward => i..layout.rows(),
            Direction::Backward => 0..i + 1,
        };
        Streak::among(page, layout, rows, direction, seen, key)
    }

    /// The `rows` of `page`, of which there is at least one.
    #[inline]
    fn among(
        page: PageRef,
        layout: &Layout,
        rows: Range<usize>,
        direction: Direction,
        (at, version_offset): (Version, u64),
        mut key: Vec<u8>,
    ) -> Streak {
        key.clear();
        key.reserve(KEY_BYTES);
        key.extend_from_slice(layout.prefix(&page));
        let (layout, began_with, is_cut, erased, beside) = (*layout, rows.len(), false, None, None);
        let now = 0;
        Streak { page, layout, rows, began_with, is_cut, direction, at, erased, now, version_offset, key, beside }
    }

    /// Takes the memory of the keys out of a streak that is read no more.
    pub fn take_memory(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.key)
    }

    /// Rows that expire at or before `now`, in milliseconds since 1970, count as erased from now on. Until this is
    /// called, none does.
    pub fn at_time(&mut self, now: u64) {
        self.now = now;
    }

    /// The same rows with their parts in a column group. `page` is a page of that group. Rows whose parts lie in
    /// another page of the group are left out at the end of the streak. If `page` does not even have the part of
    /// the next row, the parts of all rows of this streak are unknown.
    pub(super) fn with_group(mut self, page: &PageRef, layout: GroupLayout) -> Streak {
        let (first, first_part) = (self.layout.first_row(), layout.first_row());
        let place = |row: u64| usize::try_from(row.saturating_sub(first)).unwrap_or(usize::MAX);
        let there = place(first_part)..place(first_part.saturating_add(layout.rows() as u64));
        let kept = self.rows.start.max(there.start)..self.rows.end.min(there.end);
        let is_next_there = match self.direction {
            Direction::Forward => kept.start == self.rows.start,
            Direction::Backward => kept.end == self.rows.end,
        };
        if kept.is_empty() || !is_next_there {
            return self.without_parts();
        }
        self.began_with = kept.len();
        self.rows = kept;
        let beside = self.beside.get_or_insert_default();
        beside.pages.push(GroupPage { layout, shift: first.wrapping_sub(first_part) as usize });
        beside.parts.push(StoredValue::none_of(page));
        self
    }

    /// The same rows, but their parts in other groups are unknown. Such a streak still tells which keys the rows
    /// have, and which of these keys have no value.
    pub(super) fn without_parts(mut self) -> Streak {
        self.beside.get_or_insert_default().is_unknown = true;
        self
    }

    /// Whether the parts of the rows are known in all the groups that are read.
    pub fn has_parts(&self) -> bool {
        self.beside.as_ref().is_none_or(|beside| !beside.is_unknown)
    }

    /// Leaves out the rows beyond `far`. An excluded bound also leaves out the row whose key is the bound itself.
    pub fn until(&mut self, far: Bound<&[u8]>) {
        let search = |key| self.layout.search(&self.page, key);
        let before = self.rows.len();
        match self.direction {
            Direction::Forward => {
                let end = match far {
                    Bound::Unbounded => return,
                    Bound::Included(key) => search(key).map_or_else(|after| after, |there| there + 1),
                    Bound::Excluded(key) => search(key).unwrap_or_else(|after| after),
                };
                self.rows.end = self.rows.end.min(end).max(self.rows.start);
            }
            Direction::Backward => {
                let start = match far {
                    Bound::Unbounded => return,
                    Bound::Included(key) => search(key).unwrap_or_else(|after| after),
                    Bound::Excluded(key) => search(key).map_or_else(|after| after, |there| there + 1),
                };
                self.rows.start = self.rows.start.max(start).min(self.rows.end);
            }
        }
        let left_out = before - self.rows.len();
        self.began_with -= left_out;
        self.is_cut |= left_out > 0;
    }

    /// Leaves out all rows but the next `most`. If this leaves out any rows, the streak no longer counts as
    /// [cut](Self::is_cut): its source has more rows after the end of the streak.
    pub fn limit(&mut self, most: usize) {
        let left_out = self.rows.len().saturating_sub(most);
        if left_out > 0 {
            match self.direction {
                Direction::Forward => self.rows.end -= left_out,
                Direction::Backward => self.rows.start += left_out,
            }
            self.began_with -= left_out;
            self.is_cut = false;
        }
    }

    /// Puts the key of the streak's last row in `key`. Returns it as the bound up to which the streak has all rows
    /// of its source.
    pub fn last_key<'k>(&self, key: &'k mut Vec<u8>) -> Bound<&'k [u8]> {
        let last = match self.direction {
            Direction::Forward => self.rows.end - 1,
            Direction::Backward => self.rows.start,
        };
        self.read_key(last, key);
        Bound::Included(key)
    }

    /// Whether no row is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the streak ends at the bound given to [`until`](Self::until). If so, its source has no more rows
    /// before this bound. If not, it may have more.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The page that holds the rows and their values.
    #[inline]
    pub fn page(&self) -> &PageRef {
        &self.page
    }

    /// The parts of the row that was read last, one for each group that is read in addition to the main one. They
    /// are known only if that row was [shown](StreakRow::Shown).
    #[inline]
    pub fn parts(&self) -> &[StoredValue] {
        self.beside.as_ref().map_or(&[], |beside| &beside.parts)
    }

    /// The bytes that its pages take in the cache.
    pub fn pinned_bytes(&self) -> u64 {
        self.page.cost_bytes() + self.parts().iter().map(|part| part.page().cost_bytes()).sum::<u64>()
    }

    /// The bytes with which all keys of the page begin.
    pub fn prefix(&self) -> &[u8] {
        self.layout.prefix(&self.page)
    }

    /// The direction in which it goes.
    #[inline]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The key that was read last.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The place in the page of the row that comes next, if one exists.
    #[inline]
    pub fn row(&self) -> Option<usize> {
        if self.rows.is_empty() {
            return None;
        }
        Some(match self.direction {
            Direction::Forward => self.rows.start,
            Direction::Backward => self.rows.end - 1,
        })
    }

    /// Replaces `key` with the key of row `row` of the page.
    pub fn read_key(&self, row: usize, key: &mut Vec<u8>) {
        self.layout.read_row(&self.page, row, key);
    }

    /// Reads the next row: its [key](Self::key), and what the page says about it. Until the streak
    /// [advances](Self::advance), it reads the same row again. `None` if no row is left.
    #[inline]
    pub fn read(&mut self) -> Option<StreakRow> {
        let i = self.row()?;
        Some(if self.beside.is_none() { self.read_main(i) } else { self.read_with_parts(i) })
    }

    /// Reads the row at place `i` of the page, with its parts in the groups other than the main one.
    #[inline(never)]
    fn read_with_parts(&mut self, i: usize) -> StreakRow {
        let row = self.read_main(i);
        let is_shown = matches!(row, StreakRow::Shown(..));
        let is_whole = !is_shown || self.beside.as_mut().is_none_or(|beside| beside.read(i));
        if is_whole { row } else { StreakRow::Elsewhere }
    }

    /// Reads the row at place `i` of the page. It is inlined, because a scan spends most of its time here.
    #[inline(always)]
    fn read_main(&mut self, i: usize) -> StreakRow {
        let record = self.layout.read_after_prefix(&self.page, i, &mut self.key);
        self.says(&record)
    }

    /// What a row of the page says about its key. A row that only adds to older versions does not say enough.
    #[inline(always)]
    fn says(&self, record: &RowRecord) -> StreakRow {
        let version = Version(record.version.0.saturating_add(self.version_offset));
        if version > self.at {
            return if record.has_history { StreakRow::Elsewhere } else { StreakRow::Unseen };
        }
        if record.kind != RowKind::Put && self.is_gone(record) || self.erased.is_some_and(|erased| version < erased) {
            return StreakRow::Gone;
        }
        if record.outside || record.kind == RowKind::Merge {
            return StreakRow::Elsewhere;
        }
        StreakRow::Shown(record.value_at as u32, (record.value_at + record.value_bytes) as u32)
    }

    /// Whether a row that is not a plain put has no value: it is an erase, or has expired.
    #[cold]
    fn is_gone(&self, record: &RowRecord) -> bool {
        match record.kind {
            RowKind::Put | RowKind::Merge => false,
            RowKind::PutUntil => record.until(&self.page).is_none_or(|until| until.millis() <= self.now),
            RowKind::Erase => true,
        }
    }

    /// Gathers at most `most` rows that can be taken together, and goes to the last of them, which is then the
    /// streak's next row. The first one is the present next row, which was read and whose value lies at `value`.
    /// Gathering stops before a row that is not shown, or whose key `comes_first` rejects. Without a `comes_first`,
    /// no keys are read. Appends the places of the values to `values`, in the order of the walk.
    #[inline]
    pub fn gather(
        &mut self,
        value: (u32, u32),
        most: usize,
        comes_first: Option<impl Fn(&[u8]) -> bool>,
        values: &mut Vec<(u32, u32)>,
    ) {
        values.push(value);
        while values.len() < most && self.rows.len() > 1 {
            let i = match self.direction {
                Direction::Forward => self.rows.start + 1,
                Direction::Backward => self.rows.end - 2,
            };
            let row = match &comes_first {
                None => self.says(&self.layout.record(&self.page, i)),
                Some(comes_first) => match self.read_main(i) {
                    StreakRow::Shown(..) if !comes_first(&self.key) => return,
                    row => row,
                },
            };
            match row {
                StreakRow::Shown(start, end) if self.beside.as_ref().is_none_or(|beside| beside.is_inline(i)) => {
                    values.push((start, end));
                    self.advance();
                }
                _ => return,
            }
        }
    }

    /// The parts of the rows in one of the groups beside the main one: number `nth` of those that are read.
    #[inline]
    pub fn group_parts(&self, nth: usize) -> GroupParts<'_> {
        let beside = self.beside.as_ref().expect("a group beside the main one was asked for");
        let GroupPage { layout, shift } = beside.pages[nth];
        GroupParts { page: beside.parts[nth].page(), layout, shift }
    }

    /// Reads the keys of the rows at these places of the page, one after the other, and calls `each` with each
    /// key. All keys are read into the same buffer.
    pub fn for_each_key(&self, rows: impl Iterator<Item = usize>, mut each: impl FnMut(&[u8])) {
        let mut key = Vec::with_capacity(KEY_BYTES);
        key.extend_from_slice(self.prefix());
        for row in rows {
            self.layout.read_key_after_prefix(&self.page, row, &mut key);
            each(&key);
        }
    }

    /// Hands rows to `take`, one after the other. The first one is the next row, which was read and whose value
    /// lies at `value`. The run ends before a row that is not shown, or whose key `comes_first` rejects. `take`
    /// gets the key, the page, the parts in groups other than the main one, the place of the row in the page, and
    /// the place of its value.
    #[inline]
    pub fn run<B>(
        &mut self,
        value: (u32, u32),
        comes_first: impl Fn(&[u8]) -> bool,
        take: impl FnMut(&[u8], &PageRef, &[StoredValue], usize, Range<usize>) -> ControlFlow<B>,
    ) -> RunEnd<B> {
        if self.beside.is_none() {
            self.run_as::<false, B>(value, comes_first, take)
        } else {
            self.run_as::<true, B>(value, comes_first, take)
        }
    }

    /// As [`Streak::run`]. `HAS_PARTS` says whether parts in groups other than the main one are read. It is a
    /// constant, so that the loop need not check this for each row.
    #[inline(always)]
    fn run_as<const HAS_PARTS: bool, B>(
        &mut self,
        mut value: (u32, u32),
        comes_first: impl Fn(&[u8]) -> bool,
        mut take: impl FnMut(&[u8], &PageRef, &[StoredValue], usize, Range<usize>) -> ControlFlow<B>,
    ) -> RunEnd<B> {
        while let Some(i) = self.row() {
            let value_at = value.0 as usize..value.1 as usize;
            let parts = if HAS_PARTS { self.parts() } else { &[] };
            if let ControlFlow::Break(end) = take(&self.key, &self.page, parts, i, value_at) {
                return RunEnd::Given(end);
            }
            self.advance();
            let next = self.row().map(|i| if HAS_PARTS { self.read_with_parts(i) } else { self.read_main(i) });
            match next {
                Some(StreakRow::Shown(start, end)) if comes_first(&self.key) => value = (start, end),
                other => return RunEnd::Before(other),
            }
        }
        RunEnd::Before(None)
    }

    /// Goes past the row that comes next.
    #[inline]
    pub fn advance(&mut self) {
        match self.direction {
            Direction::Forward => self.rows.start += 1,
            Direction::Backward => self.rows.end -= 1,
        }
    }

    /// Whether it has gone past a row.
    pub fn has_advanced(&self) -> bool {
        self.rows.len() < self.began_with
    }

    /// The place in the page of the row that was passed last. If no row was passed yet, this is the place before
    /// the streak's first row.
    pub(super) fn passed(&self) -> usize {
        match self.direction {
            Direction::Forward => self.rows.start - 1,
            Direction::Backward => self.rows.end,
        }
    }
}

/// The memory that is reserved for a key at first.
const KEY_BYTES: usize = 64;

//! A cursor over the rows of a file with their versions. For each row, the caller says which version is wanted. The
//! cursor does not know which versions are hidden by range erases or by other files.

use super::parts::{GroupCursor, Groups};
use super::readahead::{Far, Readahead};
use super::row::{Row, RowPlace};
use super::scan_end::ScanEnd;
use super::sst::{Sst, main_row};
use super::stored_value::StoredValue;
use super::streak::{Streak, StreakStart};
use super::tree::{Seek, TreeCursor};
use crate::Direction;
use crate::copied_page::CopiedPage;
use crate::format::meta::TreeKind;
use crate::format::{PageRows, Seen, history_key};
use crate::row::Version;
use os::sync::Arc;
use pages::{PageSource, Stop};
use std::cell::RefCell;
use std::ops::{Bound, Range};

/// A place among the main rows of a file. Moves are steps: after a fault, the caller makes the same call again.
#[derive(Debug)]
pub struct SstCursor {
    sst: Arc<Sst>,
    main: Option<TreeCursor>,
    /// The place in the history where this cursor last looked up an older version. To a caller, such a look-up
    /// does not move the cursor. It is boxed because few files have a history, and each range moves its cursors.
    history: Option<Box<RefCell<TreeCursor>>>,
    /// One cursor for each column group whose parts a caller has asked for. Each is made when it is first needed.
    groups: Vec<GroupCursor>,
    readahead: Readahead,
    edge: Option<ScanEnd>,
    direction: Direction,
    key: Vec<u8>,
}

/// A cursor over the main rows of `sst` whose ids are in `rows`.
#[inline]
fn main_of(sst: &Sst, rows: Range<u64>) -> Option<TreeCursor> {
    let cursor = |tree| TreeCursor::new(&sst.file, TreeKind::Main, tree, sst.prefer_flat, sst.rows().within(rows));
    sst.meta.main.map(cursor)
}

/// A cursor over the history of `sst`.
#[inline]
fn history_of(sst: &Sst) -> Option<TreeCursor> {
    let tree = sst.meta.history.get()?;
    let mut history = TreeCursor::new(&sst.file, TreeKind::History, tree, sst.prefer_flat, 0..u64::MAX);
    history.begin(Direction::Forward);
    Some(history)
}

impl SstCursor {
    /// A cursor over `sst` that has no place yet. Allocates nothing unless the file has a history.
    pub fn new(sst: Arc<Sst>) -> Self {
        Self::within(sst, 0..u64::MAX)
    }

    /// A cursor over the main rows of `sst` that the table sees and whose ids are in `rows`, with all their
    /// versions. It shows no other rows, and reads no page that has none of them.
    pub fn within(sst: Arc<Sst>, rows: Range<u64>) -> Self {
        let main = main_of(&sst, rows);
        let history = history_of(&sst).map(|history| Box::new(RefCell::new(history)));
        let (groups, readahead, edge, key) = (Vec::new(), Readahead::NONE, None, Vec::new());
        Self { sst, main, history, groups, readahead, edge, direction: Direction::Forward, key }
    }

    /// Lets the cursor ask ahead as `readahead` says when it goes from page to page. The trees of the file share
    /// the readahead window in proportion to their lengths.
    pub fn with_readahead(mut self, readahead: Readahead) -> Self {
        self.set_readahead(readahead);
        self
    }

    #[inline]
    fn set_readahead(&mut self, readahead: Readahead) {
        if let Some(main) = &mut self.main {
            self.sst.share(TreeKind::Main, main, readahead);
        }
        if let Some(history) = &mut self.history {
            self.sst.share(TreeKind::History, history.get_mut(), readahead);
        }
        self.readahead = readahead;
    }

    /// Lets the cursor ask ahead only for rows from the start of the scan to the key `far`, and for the parts and
    /// older versions of these rows. The cursor itself may go beyond `far`.
    pub fn until(mut self, far: Bound<&[u8]>) -> Self {
        self.set_far(far);
        self
    }

    #[inline]
    fn set_far(&mut self, far: Bound<&[u8]>) {
        let is_set = match &self.edge {
            Some(edge) => Arc::ptr_eq(&edge.sst, &self.sst) && edge.far.is_at(far),
            None => matches!(far, Bound::Unbounded),
        };
        if is_set {
            return;
        }
        let known = self.edge.take().map(|edge| edge.far).filter(|known| known.is_at(far));
        self.edge = known.or_else(|| Far::new(far)).map(|far| ScanEnd { sst: Arc::clone(&self.sst), far });
        if let Some(main) = &mut self.main {
            main.set_edge(self.edge.clone());
        }
        if let Some(history) = &mut self.history {
            history.get_mut().set_edge(self.edge.clone());
        }
    }

    /// Leaves the place of the cursor and drops all its pages. It keeps the memory that it has allocated, for the next
    /// walk. Until [`SstCursor::restart`] is called, it must not be moved.
    pub fn leave_place(&mut self) {
        if let Some(main) = &mut self.main {
            main.leave_place();
        }
        if let Some(history) = &mut self.history {
            history.get_mut().leave_place();
        }
        self.groups.clear();
    }

    /// Makes this a cursor over `sst` that has no place yet, in the memory that it has allocated for its last walk. It
    /// asks ahead as `readahead` says, for rows up to the key `far`. The cursor must have been made for all rows of
    /// its file.
    pub fn restart(&mut self, sst: &Arc<Sst>, readahead: Readahead, far: Bound<&[u8]>) {
        self.groups.clear();
        self.direction = Direction::Forward;
        if Arc::ptr_eq(&self.sst, sst) {
            if let Some(main) = &mut self.main {
                main.restart();
            }
            if let Some(history) = &mut self.history {
                history.get_mut().restart();
                history.get_mut().begin(Direction::Forward);
            }
        } else {
            self.main = main_of(sst, 0..u64::MAX);
            match (&mut self.history, history_of(sst)) {
                (Some(place), Some(history)) => *place.get_mut() = history,
                (place, history) => *place = history.map(|history| Box::new(RefCell::new(history))),
            }
            self.sst.clone_from(sst);
        }
        self.set_readahead(readahead);
        self.set_far(far);
    }

    /// Whether the readahead window reaches beyond the end of this file, so that pages of the next file of the
    /// scan must be asked for.
    #[inline]
    pub fn has_rest(&self) -> bool {
        self.main.as_ref().is_some_and(TreeCursor::has_rest)
            || self.groups.iter().any(GroupCursor::has_rest)
            || self.history.as_ref().is_some_and(|history| history.borrow().has_rest())
    }

    /// Asks for the first pages that a scan will need in this file. `before` is the scan's cursor over the previous
    /// file. Must be called if [`SstCursor::has_rest`] is true for `before`. Moves neither cursor.
    pub fn ask_after<S: PageSource + ?Sized>(&mut self, source: &S, before: &mut Self) {
        self.set_direction(before.direction);
        if let (Some(main), Some(before)) = (&mut self.main, &mut before.main) {
            main.ask_after(source, before);
        }
        if let (Some(history), Some(before)) = (&mut self.history, &mut before.history) {
            history.get_mut().ask_after(source, before.get_mut());
        }
        for (i, group) in before.groups.iter_mut().enumerate() {
            self.group(i, group.group()).ask_after(source, group);
        }
        // If this file lacks a tree of the file before, nothing takes over the rest of that tree's window.
        before.forget_rest();
    }

    /// Drops the rest of the readahead window that lies beyond this file. Called if the scan reads no file after
    /// this one.
    pub fn forget_rest(&mut self) {
        if let Some(main) = &mut self.main {
            main.forget_rest();
        }
        if let Some(history) = &mut self.history {
            history.get_mut().forget_rest();
        }
        self.groups.iter_mut().for_each(GroupCursor::forget_rest);
    }

    /// The cursor over column group `group`, which is number `i` among the groups that this cursor reads.
    fn group(&mut self, i: usize, group: usize) -> &mut GroupCursor {
        if self.groups.get(i).is_none_or(|cursor| cursor.group() != group) {
            let cursor = GroupCursor::new(self.sst.clone(), group).with_readahead(self.readahead);
            let mut cursor = cursor.until(self.edge.as_ref());
            cursor.begin(self.direction);
            self.groups.truncate(i);
            self.groups.push(cursor);
        }
        &mut self.groups[i]
    }

    /// Begins a walk in this direction.
    fn begin(&mut self, direction: Direction) {
        self.direction = direction;
        if let Some(history) = &mut self.history {
            history.get_mut().begin(direction);
        }
        self.groups.iter_mut().for_each(|group| group.begin(direction));
    }

    /// Continues the walk in this direction.
    #[inline]
    fn set_direction(&mut self, direction: Direction) {
        if self.direction != direction {
            self.begin(direction);
        }
    }

    /// The file.
    pub fn sst(&self) -> &Arc<Sst> {
        &self.sst
    }

    fn moved(&mut self, step: impl FnOnce(&mut TreeCursor) -> Result<bool, Stop>) -> Result<bool, Stop> {
        let Some(main) = &mut self.main else { return Ok(false) };
        let there = step(main)?;
        if there {
            main.read(&mut self.key);
        }
        Ok(there)
    }

    /// Goes forward to `key`. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        self.begin(Direction::Forward);
        self.moved(|main| main.seek(source, key, seek))
    }

    /// Goes backward to `key`. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_back<S: PageSource + ?Sized>(&mut self, source: &S, key: &[u8], seek: Seek) -> Result<bool, Stop> {
        self.begin(Direction::Backward);
        self.moved(|main| main.seek_back(source, key, seek))
    }

    /// Goes to the first row. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_first<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.set_direction(Direction::Forward);
        self.moved(|main| main.seek_first(source))
    }

    /// Goes to the last row. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn seek_last<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.set_direction(Direction::Backward);
        self.moved(|main| main.seek_last(source))
    }

    /// Goes to the next row. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn next<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.set_direction(Direction::Forward);
        self.moved(|main| main.next(source))
    }

    /// Goes to the previous row. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn prev<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        self.set_direction(Direction::Backward);
        self.moved(|main| main.prev(source))
    }

    /// Notes the outcome of a seek for keys that begin with `prefix`. If such seeks often find no key in this
    /// file, later seeks ask the file's filter first.
    pub fn note_seek<S: PageSource + ?Sized>(&self, source: &S, prefix: &[u8], outcome: &Result<bool, Stop>) {
        let place = self.main.as_ref().and_then(TreeCursor::row);
        let row = place.unwrap_or(self.sst.meta.rows().saturating_sub(1));
        let found = match outcome {
            Ok(there) => &Ok(*there && self.key.starts_with(prefix)),
            fault_or_failure => fault_or_failure,
        };
        let page = self.main.as_ref().and_then(TreeCursor::place).map(|(page, ..)| page.address());
        self.sst.note_seek(source, prefix, row, page.as_ref(), found);
    }

    /// Whether the cursor is at a row.
    pub fn is_somewhere(&self) -> bool {
        self.main.as_ref().is_some_and(|main| main.row().is_some())
    }

    /// Whether the cursor is at the last row, or at no row.
    pub fn is_last(&self) -> bool {
        self.main.as_ref().is_none_or(TreeCursor::is_last)
    }

    /// Whether the cursor is at the first row, or at no row.
    pub fn is_first(&self) -> bool {
        self.main.as_ref().is_none_or(TreeCursor::is_first)
    }

    /// The key of the cursor's row. If the cursor is at no row, this is the key of the last row at which it was.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The newest version of the row. `None` if the cursor is nowhere.
    pub fn newest(&self) -> Option<Row> {
        let (page, layout, i) = self.main.as_ref()?.place()?;
        Some(self.sst.row(page.clone(), &layout.record(page, i), RowPlace::Newest(layout.first_row() + i as u64)))
    }

    /// The memory, in bytes, of the pages that the cursor keeps from one step to the next. A page that two of its
    /// trees keep counts twice.
    pub fn pinned_bytes(&self) -> u64 {
        let history = self.history.as_ref().map_or(0, |history| history.borrow().pinned_bytes());
        let groups: u64 = self.groups.iter().map(GroupCursor::pinned_bytes).sum();
        self.main.as_ref().map_or(0, TreeCursor::pinned_bytes) + history + groups
    }

    /// The rows from the cursor's row to the end of the row's page, as a read at version `at` sees them. Rows
    /// older than version `erased` count as erased. The streak has the parts of the rows in `groups` only if these
    /// parts lie in the group pages that the cursor keeps. Moves nothing.
    pub fn streak(
        &self,
        start: StreakStart,
        direction: Direction,
        (at, erased): (Version, Option<Version>),
        groups: Groups,
    ) -> Option<Streak> {
        let streak = Streak::new(self.main.as_ref()?, start, direction, (at, erased), self.sst.version_offset);
        if groups.any_beside_main() { Some(self.with_groups(streak?, groups)) } else { streak }
    }

    #[inline(never)]
    fn with_groups(&self, streak: Streak, groups: Groups) -> Streak {
        groups.beside_main().enumerate().fold(streak, |streak, (i, group)| {
            let cursor = self.groups.get(i).filter(|cursor| cursor.group() == group);
            match cursor.and_then(GroupCursor::page_of_newest) {
                Some((page, layout)) if streak.has_parts() => streak.with_group(page, layout),
                _ => streak.without_parts(),
            }
        })
    }

    /// Goes to the last row that `streak` has passed. The streak must have begun at the row of this cursor, and
    /// must have passed at least one row.
    pub fn resume(&mut self, streak: &Streak) {
        let Some(main) = &mut self.main else { return };
        main.go_within(streak.passed());
        main.read(&mut self.key);
    }

    /// Appends the parts of the row at `place` to `parts`: one part for each group in `groups` except the main
    /// group, in the order of the groups. A step: if it faults, nothing is appended.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn parts<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        groups: Groups,
        place: RowPlace,
        parts: &mut Vec<StoredValue>,
    ) -> Result<(), Stop> {
        let before = parts.len();
        let mut missing = false;
        for (i, group) in groups.beside_main().enumerate() {
            match self.group(i, group).part(source, place) {
                Ok(part) => parts.push(part),
                Err(Stop::Fault) => missing = true,
                Err(stop) => {
                    parts.truncate(before);
                    return Err(stop);
                }
            }
        }
        if missing {
            parts.truncate(before);
            return Err(Stop::Fault);
        }
        Ok(())
    }

    /// Announces that the caller will load the parts in `groups` of the row at `place`, and then the parts of the
    /// rows after it. The row must be the one that the cursor found last. If `at` is given, the caller reads the
    /// rows as of this version, and otherwise in all their versions. The call asks ahead for the parts that lie
    /// outside their pages. It does not move the cursor.
    #[inline]
    pub fn load_ahead<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        groups: Groups,
        place: RowPlace,
        at: Option<Version>,
    ) {
        if self.sst.meta.value_bytes > 0 && !self.readahead.is_none() {
            self.load_parts_ahead(source, groups, place, at);
        }
    }

    fn load_parts_ahead<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        groups: Groups,
        place: RowPlace,
        at: Option<Version>,
    ) {
        let at = at.map(|at| Version(at.0.saturating_sub(self.sst.version_offset)));
        if groups.contains(0) {
            match (place, &mut self.main, &mut self.history) {
                (RowPlace::Newest(_), Some(main), _) => main.load_ahead(source, at.map_or(Seen::All, Seen::At)),
                (RowPlace::Older(_), _, Some(history)) => {
                    history.get_mut().load_ahead(source, at.map_or(Seen::All, Seen::NewestAt));
                }
                _ => {}
            }
        }
        for group in &mut self.groups {
            if groups.contains(group.group()) {
                group.load_ahead(source, place);
            }
        }
    }

    /// Whether the row is the first one of its page.
    #[inline]
    pub fn is_at_page_start(&self) -> bool {
        self.main.as_ref().and_then(TreeCursor::place).is_some_and(|(_, _, i)| i == 0)
    }

    /// Replaces `key` with the last key of the page in which the cursor stands. Returns false if the cursor is
    /// nowhere.
    pub fn read_last_of_page(&self, key: &mut Vec<u8>) -> bool {
        let Some((page, layout, _)) = self.main.as_ref().and_then(TreeCursor::place) else { return false };
        layout.read_row(page, layout.rows() - 1, key);
        true
    }

    /// The page in which the cursor stands, if the page can be copied to another file as it is. For this, the
    /// table must see all of its rows, no row may have older versions or parts in column groups, and all values
    /// must lie in the page.
    pub fn copied_page(&self) -> Option<CopiedPage> {
        let (page, layout, _) = self.main.as_ref().and_then(TreeCursor::place)?;
        let is_alone = self.sst.slice.is_none() && self.sst.meta.groups.is_empty();
        if is_alone { CopiedPage::of(page, layout, self.sst.version_offset) } else { None }
    }

    /// Goes to the last row of the page.
    pub fn go_to_page_end(&mut self) {
        let Some(main) = &mut self.main else { return };
        let Some((_, layout, _)) = main.place() else { return };
        main.go_within(layout.rows() - 1);
        main.read(&mut self.key);
    }

    /// The newest version of the row that is not newer than `at`; `None` if there is none. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn visible<S: PageSource + ?Sized>(&self, source: &S, at: Version) -> Result<Option<Row>, Stop> {
        let Some((page, layout, i)) = self.main.as_ref().and_then(TreeCursor::place) else { return Ok(None) };
        self.sst.visible(page, layout, i, at, |version| {
            let Some(history) = &self.history else { return Ok(None) };
            let (mut history, row) = (history.borrow_mut(), layout.first_row() + i as u64);
            history.look_up(source, &history_key(row, version), Seek::Lower)?;
            let place = history.place();
            Ok(place.and_then(|(page, layout, i)| self.sst.older_version(row, (page.clone(), *layout, i))))
        })
    }

    /// Goes to the newest of the row's older versions; false if it has none. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn first_older<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        let Some((page, layout, i)) = self.main.as_ref().and_then(TreeCursor::place) else { return Ok(false) };
        let row = layout.first_row() + i as u64;
        match &mut self.history {
            Some(history) if layout.record(page, i).has_history => {
                let there = history.get_mut().look_up(source, &history_key(row, Version::MAX), Seek::Lower)?;
                Ok(there && self.older_row() == Some(row))
            }
            _ => Ok(false),
        }
    }

    /// Goes to the next older version after the one that [`SstCursor::first_older`] or this call has found; false
    /// after the oldest. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn next_older<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<bool, Stop> {
        let row = self.older_row();
        let Some(history) = &mut self.history else { return Ok(false) };
        Ok(history.get_mut().next(source)? && self.older_row() == row)
    }

    /// The older version found last.
    pub fn older(&self) -> Option<Row> {
        let history = self.history.as_ref()?.borrow();
        let (page, layout, i) = history.place()?;
        Some(self.sst.row(page.clone(), &layout.record(page, i), RowPlace::Older(layout.first_row() + i as u64)))
    }

    /// The id of the main row whose older version was looked up last.
    fn older_row(&self) -> Option<u64> {
        let history = self.history.as_ref()?.borrow();
        history.place().map(|(page, layout, i)| main_row(page, layout, i))
    }
}

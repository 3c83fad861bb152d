//! The parts of rows that lie in column groups other than the main one. They are found by row id. This module
//! knows no keys and no versions: its caller gets the row id from the main tree or the history.

use super::readahead::Readahead;
use super::row::RowPlace;
use super::scan_end::ScanEnd;
use super::sst::Sst;
use super::stored_value::StoredValue;
use super::tree::{PartCursor, TreeCursor};
use crate::Direction;
use crate::format::group_page::GroupLayout;
use crate::format::meta::{MAX_GROUPS, TreeKind};
use crate::format::{PageRows, Seen};
use os::sync::Arc;
use pages::{PageKind, PageRef, PageSource, Stop};

/// A set of column groups. Group 0 is the main one, whose parts lie beside the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Groups(u16);

const _: () = assert!(MAX_GROUPS < 16, "a bit for each group and for the main one");

impl Groups {
    /// No group: a read with this set gets only keys, versions and kinds.
    pub const NONE: Self = Self(0);

    /// The main group alone.
    pub const MAIN: Self = Self(1);

    /// The first `count` groups, including the main one. At most 16.
    pub fn first(count: usize) -> Self {
        Self(((1u32 << count) - 1) as u16)
    }

    /// These groups and `group`.
    #[must_use]
    pub fn with(self, group: usize) -> Self {
        Self(self.0 | 1 << group)
    }

    /// Whether `group` is one of these groups.
    pub fn contains(self, group: usize) -> bool {
        self.0 >> group & 1 != 0
    }

    /// Whether any of these groups is not the main one.
    pub fn any_beside_main(self) -> bool {
        self.0 & !Self::MAIN.0 != 0
    }

    /// How many of these groups come before `group`, not counting the main group. `group` must not be the main
    /// one.
    #[inline]
    pub fn beside_main_before(self, group: usize) -> usize {
        (self.0 & !Self::MAIN.0 & ((1 << group) - 1)).count_ones() as usize
    }

    /// These groups without the main one, in order.
    pub fn beside_main(self) -> impl Iterator<Item = usize> {
        (1..=MAX_GROUPS).filter(move |&group| self.contains(group))
    }
}

impl Sst {
    /// The part of the row at `place` in column group `group`, which is not the main one. A step; allocates
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn part<S: PageSource + ?Sized>(&self, source: &S, group: usize, place: RowPlace) -> Result<StoredValue, Stop> {
        let (kind, row) = tree_of(group, place);
        let descent = self.descent(kind).ok_or_else(|| self.no_tree(kind))?;
        let (page, layout): (PageRef, GroupLayout) = descent.page_of_row(source, row)?;
        let part = layout.part(&page, (row - layout.first_row()) as usize);
        Ok(StoredValue::of_part(&page, part))
    }

    /// The stored bytes of all data pages for which a walk over the rows of the file may ask ahead.
    fn page_bytes(&self) -> u64 {
        let filter = self.meta.filter.as_ref().map(|filter| &filter.tree);
        let keyed = [self.meta.main.as_ref(), self.meta.history.tree(), filter];
        let groups = self.meta.groups.iter().flat_map(|trees| [trees.newest.as_ref(), trees.older.as_ref()]);
        let trees = keyed.into_iter().chain(groups).flatten();
        trees.map(|tree| tree.totals.bytes).fold(0, u64::saturating_add)
    }

    /// The stored bytes of the values that lie outside the pages of a tree.
    fn value_bytes(&self, kind: TreeKind) -> u64 {
        match kind {
            TreeKind::Main => {
                let others = self.meta.trees().map(|(kind, _)| kind).filter(|kind| *kind != TreeKind::Main);
                let others = others.map(|kind| self.value_bytes(kind)).fold(0, u64::saturating_add);
                self.meta.value_bytes.saturating_sub(others)
            }
            TreeKind::History | TreeKind::Group(_) | TreeKind::GroupHistory(_) => {
                self.meta.tree(kind).map_or(0, |tree| tree.totals.group_bytes)
            }
            TreeKind::RangeErases | TreeKind::Filter => 0,
        }
    }

    /// Lets `cursor` over tree `kind` ask ahead within its share of a window. All trees of the file share one
    /// window. Large values share it with the trees as soon as the walk reads values.
    pub(super) fn share<L: PageRows>(&self, kind: TreeKind, cursor: &mut TreeCursor<L>, readahead: Readahead) {
        // The lengths of all trees are added up only for a cursor that reads ahead.
        if readahead.is_none() {
            return cursor.set_readahead(readahead);
        }
        let pages = self.meta.tree(kind).map_or(0, |tree| tree.totals.bytes);
        cursor.set_readahead(readahead.share(pages, self.page_bytes()));
        let values = self.value_bytes(kind);
        if values > 0 {
            let all = self.page_bytes().saturating_add(self.meta.value_bytes);
            cursor.set_values_ahead(readahead.share(pages, all), readahead.share(values, all));
        }
    }

    fn no_tree(&self, kind: TreeKind) -> Stop {
        let at = self.meta.file_bytes.saturating_sub(os::BLOCK_BYTES as u64);
        self.file.corrupt(PageKind::Footer, at, format!("the file has rows and no tree for {kind}")).into()
    }
}

fn tree_of(group: usize, place: RowPlace) -> (TreeKind, u64) {
    assert!((1..=MAX_GROUPS).contains(&group), "the main group's part is in the row");
    match place {
        RowPlace::Newest(row) => (TreeKind::Group(group as u8), row),
        RowPlace::Older(row) => (TreeKind::GroupHistory(group as u8), row),
    }
}

/// A cursor in a column group, for a walk that reads the parts of successive rows.
#[derive(Debug)]
pub struct GroupCursor {
    sst: Arc<Sst>,
    group: usize,
    newest: Option<PartCursor>,
    older: Option<PartCursor>,
}

impl GroupCursor {
    /// A cursor over column group `group` of `sst`. `group` must not be the main group. Allocates nothing.
    pub fn new(sst: Arc<Sst>, group: usize) -> Self {
        let cursor = |place: RowPlace| {
            let (kind, _) = tree_of(group, place);
            let tree = *sst.meta.tree(kind)?;
            let rows = match place {
                RowPlace::Newest(_) => sst.rows(),
                RowPlace::Older(_) => (0..u64::MAX).into(),
            };
            Some(PartCursor::new(&sst.file, kind, tree, sst.prefer_flat, rows))
        };
        let (newest, older) = (cursor(RowPlace::Newest(0)), cursor(RowPlace::Older(0)));
        Self { group, newest, older, sst }
    }

    /// Lets the cursor ask ahead as `readahead` says when it goes from page to page. All trees of the file share
    /// `readahead`.
    pub fn with_readahead(mut self, readahead: Readahead) -> Self {
        let sst = &self.sst;
        for (place, cursor) in [(RowPlace::Newest(0), &mut self.newest), (RowPlace::Older(0), &mut self.older)] {
            if let Some(cursor) = cursor {
                sst.share(tree_of(self.group, place).0, cursor, readahead);
            }
        }
        self
    }

    /// Lets the cursor ask ahead only for the parts of main rows that lie before `edge`, where the scan ends.
    pub(super) fn until(mut self, edge: Option<&ScanEnd>) -> Self {
        for cursor in [&mut self.newest, &mut self.older].into_iter().flatten() {
            cursor.set_edge(edge.cloned());
        }
        self
    }

    /// Begins a walk over rows in this direction.
    pub(super) fn begin(&mut self, direction: Direction) {
        [&mut self.newest, &mut self.older].into_iter().flatten().for_each(|cursor| cursor.begin(direction));
    }

    /// Whether the readahead window reaches beyond the end of this file, so that pages of the next file of the
    /// scan must be asked for.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        [&self.newest, &self.older].into_iter().flatten().any(PartCursor::has_rest)
    }

    /// Asks for the first pages of this file. The cursor `before` over the previous file has come to the end of
    /// its file.
    pub(super) fn ask_after<S: PageSource + ?Sized>(&mut self, source: &S, before: &mut Self) {
        let pairs = [(&mut self.newest, &mut before.newest), (&mut self.older, &mut before.older)];
        for (cursor, before) in pairs {
            if let (Some(cursor), Some(before)) = (cursor, before) {
                cursor.ask_after(source, before);
            }
        }
    }

    pub(super) fn forget_rest(&mut self) {
        [&mut self.newest, &mut self.older].into_iter().flatten().for_each(PartCursor::forget_rest);
    }

    /// The memory, in bytes, of the pages that the cursor keeps from one step to the next.
    pub fn pinned_bytes(&self) -> u64 {
        self.newest.iter().chain(&self.older).map(PartCursor::pinned_bytes).sum()
    }

    /// Asks ahead for parts that lie outside their pages, beginning with the part of the row at `place`. The
    /// caller will load all these parts. The part at `place` must be the one that the cursor found last.
    pub(super) fn load_ahead<S: PageSource + ?Sized>(&mut self, source: &S, place: RowPlace) {
        let cursor = match place {
            RowPlace::Newest(_) => &mut self.newest,
            RowPlace::Older(_) => &mut self.older,
        };
        if let Some(cursor) = cursor {
            cursor.load_ahead(source, Seen::All);
        }
    }

    /// The group.
    pub fn group(&self) -> usize {
        self.group
    }

    /// The page in which the cursor last found a part of a newest row. `None` if that part lies outside the page:
    /// the next parts then probably lie outside, too, so the page would be of no use.
    pub(super) fn page_of_newest(&self) -> Option<(&PageRef, GroupLayout)> {
        let (page, layout, i) = self.newest.as_ref().and_then(PartCursor::place)?;
        (!layout.part(page, i).outside).then_some((page, *layout))
    }

    /// The part of the row at `place`. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    pub fn part<S: PageSource + ?Sized>(&mut self, source: &S, place: RowPlace) -> Result<StoredValue, Stop> {
        let (kind, row) = tree_of(self.group, place);
        let cursor = match place {
            RowPlace::Newest(_) => &mut self.newest,
            RowPlace::Older(_) => &mut self.older,
        };
        let Some(cursor) = cursor else { return Err(self.sst.no_tree(kind)) };
        if !cursor.seek_row(source, row)? {
            let at = self.sst.meta.file_bytes.saturating_sub(os::BLOCK_BYTES as u64);
            let why = format!("{kind} ends before row {row}");
            return Err(self.sst.file.corrupt(PageKind::Footer, at, why).into());
        }
        let (page, layout, i) = cursor.place().expect("the row was found");
        Ok(StoredValue::of_part(page, layout.part(page, i)))
    }
}

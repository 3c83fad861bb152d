//! A page in memory, with the rows in it that a precharge is interested in. This module knows where the values of
//! these rows lie, but not why they are read.

use crate::format::data_page::Layout;
use crate::format::group_page::GroupLayout;
use crate::format::meta::TreeKind;
use crate::format::{OutsideValue, PageRows};
use pages::PageRef;
use std::ops::Range;

/// A page in memory, with the rows in it that a precharge is interested in.
pub(super) struct PresentPage<'p> {
    kind: TreeKind,
    pub page: &'p PageRef,
    pub first_row: u64,
    pub rows: Range<u64>,
}

impl<'p> PresentPage<'p> {
    /// `None` if the page does not hold exactly the rows `span`.
    pub fn new(kind: TreeKind, page: &'p PageRef, span: &Range<u64>, rows: Range<u64>) -> Option<Self> {
        let (first_row, count) = if kind.is_by_row() {
            let layout = GroupLayout::of(page);
            (layout.first_row(), layout.rows())
        } else {
            let layout = Layout::of(page);
            (layout.first_row(), layout.rows())
        };
        let holds = first_row == span.start && first_row.checked_add(count as u64) == Some(span.end);
        holds.then_some(Self { kind, page, first_row, rows })
    }

    /// The references to values outside the page, in the rows that the precharge is interested in.
    pub fn references(&self) -> impl Iterator<Item = OutsideValue<'p>> {
        let Self { kind, page, first_row, .. } = *self;
        self.rows.clone().filter_map(move |row| {
            let i = (row - first_row) as usize;
            let (at, bytes, outside) = if kind.is_by_row() {
                let part = GroupLayout::of(page).part(page, i);
                (part.at, part.bytes, part.outside)
            } else {
                let record = Layout::of(page).record(page, i);
                (record.value_at, record.value_bytes, record.outside)
            };
            let reference = || OutsideValue::new(&page[at..at + bytes]).expect("a validated page's references decode");
            outside.then(reference)
        })
    }
}

//! Finds the rows that follow a place in a file, up to the end of the page in which the first of them lies. It keeps
//! no place, takes no step twice and asks for nothing ahead: it is for a reader of pages that are in memory, and a
//! cursor takes over where it finds nothing. This module knows no other file and no range erases.

use super::descent::{Descent, Leaf, TreePlace};
use super::sst::Sst;
use super::streak::Streak;
use crate::Direction;
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::meta::TreeKind;
use crate::format::node::IndexNode;
use crate::row::Version;
use pages::{Page, PageLender, Stop};
use std::ops::Bound;

/// What a file says about the rows that follow a place.
#[derive(Debug)]
pub enum RestOfPage {
    /// The file has no row there.
    Nothing,
    /// The next row and the rows after it in its page. What the streak says about them may lie elsewhere.
    Rows(Streak),
    /// Only a cursor can tell, because a page is not in memory, or because the table sees only a slice of the file.
    Unknown,
}

impl Sst {
    /// The rows that follow `start` in `direction`, as a read at version `at` sees them, up to the end of the page
    /// in which the first of them lies. If there are rows, they take the memory of `key`.
    pub fn rest_of_page<S: PageLender + ?Sized>(
        &self,
        source: &S,
        start: Bound<&[u8]>,
        direction: Direction,
        at: Version,
        key: &mut Vec<u8>,
    ) -> RestOfPage {
        if self.slice.is_some() {
            return RestOfPage::Unknown;
        }
        let Some(main) = self.descent(TreeKind::Main) else { return RestOfPage::Nothing };
        let place = match direction {
            Direction::Forward => main.first_from(source, start),
            Direction::Backward => main.last_to(source, start),
        };
        match place {
            Ok(None) => RestOfPage::Nothing,
            Ok(Some((page, layout, i))) => {
                let Some(page) = page.keep() else { return RestOfPage::Unknown };
                let (seen, key) = ((at, self.version_offset), std::mem::take(key));
                RestOfPage::Rows(Streak::of_page(page, &layout, i, direction, seen, key))
            }
            // A damaged page is reported by the cursor that needs it.
            Err(Stop::Fault | Stop::Failed(_)) => RestOfPage::Unknown,
        }
    }
}

/// The outcome of a look for a row: its place, or `None` if there is no such row.
type Found<S> = Result<Option<TreePlace<Layout, <S as PageLender>::Page>>, Stop>;

impl Descent<'_> {
    /// The first row at or after an included bound, or after an excluded one.
    fn first_from<S: PageLender + ?Sized>(&self, source: &S, start: Bound<&[u8]>) -> Found<S> {
        let (Bound::Included(key) | Bound::Excluded(key)) = start else { return self.at_row(source, 0) };
        let way = self.way_of_key(source, key)?;
        let (page, layout) = self.page_under(source, &way)?;
        let i = match (layout.search(&page, key), start) {
            (Ok(i), Bound::Excluded(_)) => i + 1,
            (Ok(i) | Err(i), _) => i,
        };
        if i < layout.rows() {
            return Ok(Some((page, layout, i)));
        }
        let row = layout.first_row() + layout.rows() as u64;
        self.beside(source, way.above.as_ref(), row)
    }

    /// The last row at or before an included bound, or before an excluded one.
    fn last_to<S: PageLender + ?Sized>(&self, source: &S, start: Bound<&[u8]>) -> Found<S> {
        let (Bound::Included(key) | Bound::Excluded(key)) = start else {
            return self.rows().checked_sub(1).map_or(Ok(None), |row| self.at_row(source, row));
        };
        let way = self.way_of_key(source, key)?;
        let (page, layout) = self.page_under(source, &way)?;
        let end = match (layout.search(&page, key), start) {
            (Ok(i), Bound::Included(_)) => i + 1,
            (Ok(i) | Err(i), _) => i,
        };
        if end > 0 {
            return Ok(Some((page, layout, end - 1)));
        }
        match layout.first_row().checked_sub(1) {
            Some(row) => self.beside(source, way.above.as_ref(), row),
            None => Ok(None),
        }
    }

    /// Row `row`, the last one of the page before the child of `leaf`, or the first one of the page after it.
    fn beside<S: PageLender + ?Sized>(&self, source: &S, leaf: Option<&Leaf<S::Page>>, row: u64) -> Found<S> {
        let Some(Leaf { page: above, child }) = leaf else { return self.at_row(source, row) };
        let node = IndexNode::new(above);
        let child = match *child {
            child if child > 0 && node.rows_through(child - 1) == row + 1 => child - 1,
            child if child + 1 < node.children() && node.rows_through(child) == row => child + 1,
            _ => return self.at_row(source, row),
        };
        let address = node.address(child);
        let page = source.page(self.under(&address, TreeKind::Main.page_kind(), above, child))?;
        let layout = Layout::of(&page);
        self.check_row(row, &layout, &address)?;
        let i = (row - layout.first_row()) as usize;
        Ok(Some((page, layout, i)))
    }

    /// Row `row`; `None` if it is after the last one.
    fn at_row<S: PageLender + ?Sized>(&self, source: &S, row: u64) -> Found<S> {
        if row >= self.rows() {
            return Ok(None);
        }
        let (page, layout): (S::Page, Layout) = self.page_of_row(source, row)?;
        let i = (row - layout.first_row()) as usize;
        Ok(Some((page, layout, i)))
    }
}

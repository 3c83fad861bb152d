//! A look-up in stages, for a caller that looks up several keys. Each stage asks the memory for what the next one reads and
//! does not wait for it, so that the caller runs a stage for all keys before it runs the next: then the keys wait for the
//! memory together. It does not know how many keys there are, and answers nothing itself.
//!
//! An approach only spares work. It takes what is in memory, and a look-up goes on from wherever the approach has stopped.

use super::descent::{Descent, Way};
use crate::format::PageRows;
use crate::format::data_page::Layout;
use pages::{PageRef, PageSource, Stop};

/// How far the look-up of a key in a file has come. It keeps pages, so it ends with the step that began it.
#[derive(Default)]
pub struct Approach(Reached);

#[derive(Default)]
enum Reached {
    /// Nothing yet.
    #[default]
    Nothing,
    /// The node above the data page.
    Node(Way),
    /// The data page.
    Page(PageRef, Layout),
}

impl Approach {
    /// The first stage: goes down `main` to the node above the data page of `key`. It stops at a node that is not in memory.
    pub(super) fn begin<S: PageSource + ?Sized>(main: &Descent<'_>, source: &S, key: &[u8]) -> Self {
        Self(match main.peek_node_above(source, key) {
            Some(way) => Reached::Node(way),
            None => Reached::Nothing,
        })
    }

    /// The second stage: takes the data page of `key`, and finds the row by its head.
    pub(super) fn find_row<S: PageSource + ?Sized>(&mut self, main: &Descent<'_>, source: &S, key: &[u8]) {
        let Reached::Node(way) = &self.0 else { return };
        if let Some(page) = main.peek_page_at(source, way) {
            let layout = Layout::of(&page);
            layout.prefetch(&page, key);
            self.0 = Reached::Page(page, layout);
        }
    }

    /// The main page under which `key` lies if it exists.
    #[inline]
    pub(super) fn page<S: PageSource + ?Sized>(
        self,
        main: &Descent<'_>,
        source: &S,
        key: &[u8],
    ) -> Result<(PageRef, Layout), Stop> {
        match self.0 {
            Reached::Nothing => main.page_of_key(source, key),
            Reached::Node(way) => main.page_under(source, &way),
            Reached::Page(page, layout) => Ok((page, layout)),
        }
    }
}

#[cfg(test)]
mod tests;

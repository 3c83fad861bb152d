//! Lists what lies under a page of a tree: child subtrees with their key ranges, or large values. It serves walks
//! that choose pages by key or row id without reading the rows. It loads no page.

use super::descent::Subtree;
use super::sst::Sst;
use crate::KeyRange;
use crate::format::data_page::Layout;
use crate::format::group_page::GroupLayout;
use crate::format::meta::TreeKind;
use crate::format::{OutsideValue, PageRows};
use pages::{Address, Error, PageKind, PageRef};

/// A subtree with the keys under it.
#[derive(Clone, Debug)]
pub struct KeyedSubtree {
    /// What its parent says about it.
    pub subtree: Subtree,
    /// The kind of the page at its top.
    pub kind: PageKind,
    /// The range in which the keys of its rows lie: all keys, in a tree without keys.
    pub keys: KeyRange,
}

impl Sst {
    /// The page at the top of a tree; `None` if the file has no such tree.
    pub fn top(&self, tree: TreeKind) -> Option<KeyedSubtree> {
        let descent = self.descent(tree)?;
        let subtree = descent.whole();
        Some(KeyedSubtree { subtree, kind: descent.kind_at(subtree.level), keys: KeyRange::ALL })
    }

    /// The subtrees directly below `keyed`, a subtree of `tree` with `page` at its top. A data page has none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the page is not a node of this tree.
    pub fn subtrees_below(
        &self,
        tree: TreeKind,
        keyed: &KeyedSubtree,
        page: &PageRef,
    ) -> Result<Vec<KeyedSubtree>, Error> {
        let Some(descent) = self.descent(tree) else { return Ok(Vec::new()) };
        let Some(level) = keyed.subtree.level.checked_sub(1) else { return Ok(Vec::new()) };
        let node = descent.node(page, &keyed.subtree.address)?;
        let child = |i: usize| KeyedSubtree {
            subtree: keyed.subtree.child(&node, i),
            kind: descent.kind_at(level),
            keys: node.keys_under(i, &keyed.keys),
        };
        Ok((0..node.children()).map(child).collect())
    }

    /// Addresses of the chunks of all values that lie outside `page` but belong to its rows or parts. `page` is a
    /// data page of `tree`.
    pub fn values_outside(&self, tree: TreeKind, page: &PageRef) -> Vec<Address> {
        let mut chunks = Vec::new();
        let mut add = |at: usize, bytes: usize| {
            let value = OutsideValue::new(&page[at..at + bytes]).expect("a validated page's references decode");
            chunks.extend(value.chunks());
        };
        if tree.is_by_row() {
            let layout = GroupLayout::of(page);
            let parts = (0..layout.rows()).map(|i| layout.part(page, i)).filter(|part| part.outside);
            parts.for_each(|part| add(part.at, part.bytes));
        } else {
            let layout = Layout::of(page);
            let records = (0..layout.rows()).map(|i| layout.record(page, i)).filter(|record| record.outside);
            records.for_each(|record| add(record.value_at, record.value_bytes));
        }
        chunks
    }
}

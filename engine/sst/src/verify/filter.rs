//! Walks the filter of a file in step with the main tree. It checks that the filter denies no key and no prefix,
//! and that each key and prefix is found in the partition that covers its row. This module does not know the
//! values of rows.

use super::check::Check;
use super::tree_walk::{DataPage, TreeWalk};
use crate::format::PageRows;
use crate::format::filter::{FilterLayout, hash_key, hash_prefix};
use crate::format::meta::FilterTree;
use pages::{PageKind, PageSource, Result};

/// The walk over the partitions of a filter; `None` if the file has no filter.
pub(super) struct FilterWalk(Option<PartitionWalk>);

struct PartitionWalk {
    filter: FilterTree,
    walk: TreeWalk,
    here: Option<DataPage<FilterLayout>>,
    /// The prefix of the previous key, or empty if that key had no prefix.
    prefix: Vec<u8>,
}

impl FilterWalk {
    pub fn new(filter: Option<FilterTree>, walk: impl FnOnce(&FilterTree) -> TreeWalk) -> Self {
        Self(filter.map(|filter| PartitionWalk { walk: walk(&filter), filter, here: None, prefix: Vec::new() }))
    }

    /// Checks the key of the next row of the main tree.
    pub fn key<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>, row: u64, key: &[u8]) -> Result<()> {
        let Some(walk) = &mut self.0 else { return Ok(()) };
        let is_first = row.is_multiple_of(walk.filter.partition_rows.into());
        if is_first {
            walk.here = walk.walk.next(check)?;
        }
        let Some(DataPage { page, layout, at }) = &walk.here else {
            let why = format!("it has no partition for row {row}");
            return Err(check.corrupt(PageKind::Filter, check.footer_offset(), why));
        };
        let keys = walk.walk.keys();
        let prefix_bytes = usize::from(walk.filter.prefix_bytes);
        let prefix = key.get(..prefix_bytes).filter(|prefix| !prefix.is_empty()).unwrap_or_default();
        let is_new = prefix != walk.prefix;
        let form = walk.filter.form;
        let why = if layout.form() != form {
            "its form is not the one that the features of the file name".to_owned()
        } else if !(layout.first_row()..layout.first_row() + layout.rows() as u64).contains(&row) {
            format!("it covers {} rows from {}, and not row {row}", layout.rows(), layout.first_row())
        } else if !keys.contains(key) {
            format!("the key of row {row} is not between its parent's separators")
        } else if !form.may_contain(page, hash_key(key)) {
            format!("it denies the key of row {row}")
        } else if prefix.is_empty() {
            String::new()
        } else if is_new && prefix < keys.start.as_slice() {
            format!("the prefix of row {row} is looked for in a partition before it")
        } else if (is_first || is_new) && !form.may_contain(page, hash_prefix(prefix)) {
            format!("it denies the prefix of row {row}")
        } else {
            String::new()
        };
        if !why.is_empty() {
            return Err(check.corrupt(PageKind::Filter, at.offset, why));
        }
        if is_new {
            walk.prefix.clear();
            walk.prefix.extend_from_slice(prefix);
        }
        Ok(())
    }

    /// Checks, after the last row, that no partition is left.
    pub fn end<S: PageSource + ?Sized>(&mut self, check: &mut Check<'_, S>) -> Result<()> {
        let Some(walk) = &mut self.0 else { return Ok(()) };
        match walk.walk.next::<_, FilterLayout>(check)? {
            None => Ok(()),
            Some(left) => Err(check.corrupt(PageKind::Filter, left.at.offset, "it covers no row of the main tree")),
        }
    }
}

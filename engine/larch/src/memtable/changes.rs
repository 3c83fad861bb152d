//! Finds what was written to a memtable after a version, so that a transaction can tell whether the rows that it has
//! read have changed. This module does not know transactions.

use super::Memtable;
use super::node::Node;
use super::skip_list::Probe;
use sst::{KeyRange, Version};

impl Memtable {
    /// Whether a commit after `since` has put or erased `key`.
    pub fn has_changed(&self, key: &[u8], since: Version) -> bool {
        let newest = self.rows.first_from(&Probe::before(key)).filter(|node| node.key() == key);
        newest.is_some_and(|node| node.version() > since)
            || self.cover(key, Version::MAX).is_some_and(|cover| cover > since)
    }

    /// A key in `range` that a commit after `since` has put or erased. For a range erase, this is the first key of
    /// `range` that it covers, even if that key had no value before. The search walks over all rows of the range.
    pub fn changed_key(&self, range: &KeyRange<&[u8]>, since: Version) -> Option<Vec<u8>> {
        let mut next = self.rows.first_from(&Probe::before(range.start));
        while let Some(node) = next.filter(|node: &Node<'_>| range.ends_after(node.key())) {
            if node.version() > since {
                return Some(node.key().to_vec());
            }
            next = self.rows.following(node);
        }
        if !self.has_range_erases() {
            return None;
        }
        let is_later = |version: Version| version > since;
        let erases = self.range_erases.read();
        if erases.cover(range.start, Version::MAX).is_some_and(is_later) {
            return Some(range.start.to_vec());
        }
        erases.first_beginning_in(range, is_later)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

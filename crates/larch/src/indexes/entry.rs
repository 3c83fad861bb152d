//! The bytes of an entry of an index. It knows no rows.
//!
//! ```text
//! key of the entry:    index key | key of the row
//! value of the entry:  bytes of the index key, varint
//! ```
//!
//! No key of an index begins with another one, so the entries are ordered by index key first.

use crate::bounds;
use crate::read::Key;
use sst::format::varint;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// One entry of an index: the key that a row has in the index, and the key of the row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexEntry {
    bytes: Key,
    index_key_bytes: usize,
}

impl IndexEntry {
    /// The entry with these bytes; `None` if they are none.
    pub(crate) fn of(key: Key, value: &[u8]) -> Option<Self> {
        let index_key_bytes = split(&key, value)?.0.len();
        Some(Self { bytes: key, index_key_bytes })
    }

    /// The key that the row has in the index.
    pub fn index_key(&self) -> &[u8] {
        &self.bytes[..self.index_key_bytes]
    }

    /// The key of the row.
    pub fn row_key(&self) -> &[u8] {
        &self.bytes[self.index_key_bytes..]
    }
}

impl fmt::Debug for IndexEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.index_key().escape_ascii(), self.row_key().escape_ascii())
    }
}

/// The key of the entry of `row_key` under `index_key`.
pub fn key(index_key: &[u8], row_key: &[u8]) -> Vec<u8> {
    [index_key, row_key].concat()
}

/// The value of an entry with this `index_key`.
pub fn value(index_key: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    varint::put(&mut value, index_key.len() as u64);
    value
}

/// The index key and the key of the row; `None` if the bytes are no entry.
pub fn split<'e>(key: &'e [u8], mut value: &[u8]) -> Option<(&'e [u8], &'e [u8])> {
    let bytes = usize::try_from(varint::take(&mut value)?).ok()?;
    key.split_at_checked(bytes).filter(|_| value.is_empty())
}

/// The keys of entries among which are all whose index keys are within `keys`.
pub fn bounds_of(keys: &bounds::Owned) -> bounds::Owned {
    let low = match &keys.0 {
        Bound::Included(low) | Bound::Excluded(low) => Bound::Included(low.clone()),
        Bound::Unbounded => Bound::Unbounded,
    };
    let high = match &keys.1 {
        Bound::Included(high) => bounds::of_prefix(high).1,
        other => other.clone(),
    };
    (low, high)
}

/// Whether `index_key` is within `keys`.
pub fn is_within((low, high): &bounds::Owned, index_key: &[u8]) -> bool {
    let bounds: bounds::Borrowed<'_> = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
    RangeBounds::<[u8]>::contains(&bounds, index_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_split_where_its_value_says() {
        for (index_key, row_key) in [("", ""), ("", "row"), ("key", ""), ("key", "row"), (&"k".repeat(300), "row")] {
            let (index_key, row_key) = (index_key.as_bytes(), row_key.as_bytes());
            let entry = IndexEntry::of(key(index_key, row_key).into(), &value(index_key)).expect("it is one");
            assert_eq!((entry.index_key(), entry.row_key()), (index_key, row_key));
        }
        for damaged in [&[][..], &[4], &[0x80], &[1, 0]] {
            assert!(split(b"key", damaged).is_none(), "{damaged:?}");
        }
    }
}

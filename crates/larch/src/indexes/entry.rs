//! The bytes of an entry of an index. It knows no rows.
//!
//! ```text
//! key of the entry:    index key, in which 00 is written as 00 FF | 00 00 | key of the row
//! value of the entry:  nothing
//! ```
//!
//! So the entries are ordered by index key first and by the key of the row next, whatever the bytes of either are: the end `00 00`
//! comes before every byte with which a longer index key goes on.

use crate::bounds;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

/// What follows a 00 in an index key, and what follows the 00 that ends it.
const ESCAPED: u8 = 0xFF;
const END: u8 = 0;

/// One entry of an index: the key that a row has in the index, and the key of the row.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IndexEntry {
    /// The index key, as it is without the escapes, and then the key of the row.
    keys: Box<[u8]>,
    /// Where the key of the row begins in them.
    row_at: usize,
}

impl IndexEntry {
    /// The entry in a row of the table of entries; `None` if it is none.
    pub(crate) fn of(key: &[u8], value: &[u8]) -> Option<Self> {
        let (escapes, end) = end_of_index_key(key).filter(|_| value.is_empty())?;
        let (index_key, row_key) = (&key[..end], &key[end + 2..]);
        let row_at = end - escapes;
        if escapes == 0 {
            return Some(Self { keys: [index_key, row_key].concat().into(), row_at });
        }
        let mut keys = Vec::with_capacity(row_at + row_key.len());
        unescape(index_key, &mut keys);
        keys.extend_from_slice(row_key);
        Some(Self { keys: keys.into(), row_at })
    }

    /// The key that the row has in the index.
    pub fn index_key(&self) -> &[u8] {
        &self.keys[..self.row_at]
    }

    /// The key of the row.
    pub fn row_key(&self) -> &[u8] {
        &self.keys[self.row_at..]
    }
}

/// By index key first and by the key of the row next, as the entries lie in an index.
impl Ord for IndexEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.index_key(), self.row_key()).cmp(&(other.index_key(), other.row_key()))
    }
}

impl PartialOrd for IndexEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for IndexEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.index_key().escape_ascii(), self.row_key().escape_ascii())
    }
}

/// How many escapes the index key in the key of an entry has, and where it ends; `None` if it does not end.
fn end_of_index_key(key: &[u8]) -> Option<(usize, usize)> {
    let (mut escapes, mut at) = (0, 0);
    loop {
        at += key[at..].iter().position(|byte| *byte == 0)?;
        match *key.get(at + 1)? {
            END => return Some((escapes, at)),
            ESCAPED => escapes += 1,
            _ => return None,
        }
        at += 2;
    }
}

/// Appends the index key that is written as `escaped`.
fn unescape(escaped: &[u8], index_key: &mut Vec<u8>) {
    let mut after_zero = false;
    for &byte in escaped {
        if !after_zero {
            index_key.push(byte);
        }
        after_zero = !after_zero && byte == 0;
    }
}

/// What the keys of the entries under `index_key` begin with.
fn prefix(index_key: &[u8], more: usize) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(key_bytes(index_key, &[]) + more);
    for &byte in index_key {
        prefix.push(byte);
        if byte == 0 {
            prefix.push(ESCAPED);
        }
    }
    prefix.extend([0, END]);
    prefix
}

/// The bytes of [`key`].
pub fn key_bytes(index_key: &[u8], row_key: &[u8]) -> usize {
    let zeros = index_key.iter().filter(|byte| **byte == 0).count();
    index_key.len() + zeros + 2 + row_key.len()
}

/// The key of the entry of `row_key` under `index_key`.
pub fn key(index_key: &[u8], row_key: &[u8]) -> Vec<u8> {
    let mut key = prefix(index_key, row_key.len());
    key.extend_from_slice(row_key);
    key
}

/// The keys of the entries whose index keys are within `keys`.
pub fn bounds_of(keys: &bounds::Owned) -> bounds::Owned {
    let first = |index_key: &Vec<u8>| prefix(index_key, 0);
    let after = |index_key: &Vec<u8>| {
        let mut after = prefix(index_key, 0);
        *after.last_mut().expect("it has an end") += 1;
        after
    };
    let low = match &keys.0 {
        Bound::Included(low) => Bound::Included(first(low)),
        Bound::Excluded(low) => Bound::Included(after(low)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let high = match &keys.1 {
        Bound::Included(high) => Bound::Excluded(after(high)),
        Bound::Excluded(high) => Bound::Excluded(first(high)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (low, high)
}

/// The keys of the entries under `index_key`.
pub fn bounds_under(index_key: &[u8]) -> bounds::Owned {
    bounds_of(&(Bound::Included(index_key.to_vec()), Bound::Included(index_key.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::RangeBounds;

    /// Keys that begin with one another, and with the bytes that mean something in an entry.
    const KEYS: [&[u8]; 14] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\0\xff",
        b"\0\x01",
        b"\0\xff",
        b"\0\xff\0",
        b"\x01",
        b"a",
        b"a\0",
        b"a\0\0",
        b"a\0\xff",
        b"ab",
        b"\xff",
    ];

    #[test]
    fn an_entry_has_the_keys_that_it_was_made_of() {
        for index_key in KEYS.into_iter().chain([&[b'k'; 300][..], &[0; 300]]) {
            for row_key in KEYS {
                let entry = IndexEntry::of(&key(index_key, row_key), b"").expect("it is one");
                assert_eq!((entry.index_key(), entry.row_key()), (index_key, row_key));
            }
        }
        for damaged in [&b""[..], b"key", b"key\0", b"key\0\x01row", b"\0\xff\0"] {
            assert!(IndexEntry::of(damaged, b"").is_none(), "{}", damaged.escape_ascii());
        }
        assert!(IndexEntry::of(&key(b"key", b"row"), b"value").is_none());
    }

    #[test]
    fn entries_are_ordered_by_index_key_and_then_by_the_key_of_the_row() {
        let pairs: Vec<(&[u8], &[u8])> = KEYS.into_iter().flat_map(|index| KEYS.map(|row| (index, row))).collect();
        for (index, row) in &pairs {
            for (other_index, other_row) in &pairs {
                let order = (index, row).cmp(&(other_index, other_row));
                let [one, other] = [key(index, row), key(other_index, other_row)];
                assert_eq!(one.cmp(&other), order);
                assert_eq!(IndexEntry::of(&one, b"").cmp(&IndexEntry::of(&other, b"")), order);
            }
        }
    }

    #[test]
    fn bounds_hold_the_entries_of_their_index_keys_and_no_others() {
        let bounds = || {
            let ends = |key: &'static [u8]| [Bound::Included(key.to_vec()), Bound::Excluded(key.to_vec())];
            KEYS.into_iter().flat_map(ends).chain([Bound::Unbounded])
        };
        for low in bounds() {
            for high in bounds() {
                let keys = (low.clone(), high);
                let within = bounds_of(&keys);
                for index_key in KEYS {
                    for row_key in KEYS {
                        let entry = key(index_key, row_key);
                        let is_wanted = RangeBounds::<Vec<u8>>::contains(&keys, &index_key.to_vec());
                        assert_eq!(RangeBounds::<Vec<u8>>::contains(&within, &entry), is_wanted, "{entry:?} {keys:?}");
                    }
                }
            }
        }
    }
}

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
use crate::read::Key;
use std::fmt;
use std::ops::Bound;

/// What follows a 00 in an index key, and what follows the 00 that ends it.
const ESCAPED: u8 = 0xFF;
const END: u8 = 0;

/// One entry of an index: the key that a row has in the index, and the key of the row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexEntry {
    /// The key of the entry.
    bytes: Key,
    /// Where the key of the row begins in it.
    row_at: usize,
    /// The index key, if its bytes do not stand in the key of the entry as they are.
    unescaped: Option<Box<[u8]>>,
}

impl IndexEntry {
    /// The entry with these bytes; `None` if they are none.
    pub(crate) fn of(key: Key, value: &[u8]) -> Option<Self> {
        let row_at = row_at(&key).filter(|_| value.is_empty())?;
        let index_key = &key[..row_at - 2];
        let unescaped = index_key.contains(&0).then(|| unescape(index_key).into());
        Some(Self { bytes: key, row_at, unescaped })
    }

    /// The key that the row has in the index.
    pub fn index_key(&self) -> &[u8] {
        self.unescaped.as_deref().unwrap_or_else(|| &self.bytes[..self.row_at - 2])
    }

    /// The key of the row.
    pub fn row_key(&self) -> &[u8] {
        &self.bytes[self.row_at..]
    }
}

impl fmt::Debug for IndexEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.index_key().escape_ascii(), self.row_key().escape_ascii())
    }
}

/// Where the key of the row begins in the key of an entry; `None` if it is none.
fn row_at(key: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += key[at..].iter().position(|byte| *byte == 0)?;
        match *key.get(at + 1)? {
            END => return Some(at + 2),
            ESCAPED => at += 2,
            _ => return None,
        }
    }
}

fn unescape(escaped: &[u8]) -> Vec<u8> {
    let mut index_key = Vec::with_capacity(escaped.len());
    let mut after_zero = false;
    for &byte in escaped {
        if !after_zero {
            index_key.push(byte);
        }
        after_zero = !after_zero && byte == 0;
    }
    index_key
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
                let entry = IndexEntry::of(key(index_key, row_key).into(), b"").expect("it is one");
                assert_eq!((entry.index_key(), entry.row_key()), (index_key, row_key));
            }
        }
        for damaged in [&b""[..], b"key", b"key\0", b"key\0\x01row", b"\0\xff\0"] {
            assert!(IndexEntry::of(damaged.into(), b"").is_none(), "{}", damaged.escape_ascii());
        }
        assert!(IndexEntry::of(key(b"key", b"row").into(), b"value").is_none());
    }

    #[test]
    fn entries_are_ordered_by_index_key_and_then_by_the_key_of_the_row() {
        let pairs: Vec<(&[u8], &[u8])> = KEYS.into_iter().flat_map(|index| KEYS.map(|row| (index, row))).collect();
        for (index, row) in &pairs {
            for (other_index, other_row) in &pairs {
                assert_eq!(
                    key(index, row).cmp(&key(other_index, other_row)),
                    (index, row).cmp(&(other_index, other_row))
                );
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

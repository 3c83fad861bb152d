//! The bytes of the entries of an index. This module does not know how the entries are stored.
//!
//! ```text
//! key of the entry:    index key, in which 00 is written as 00 FF | 00 00 | key of the row
//! value of the entry:  nothing
//! ```
//!
//! So entries are ordered by index key, and those with the same index key by row key, whatever bytes the keys have:
//! the end mark `00 00` is less than any bytes that a longer index key can have in its place.

use crate::base::bounds;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

/// The byte after 00: `ESCAPED` if the 00 is part of the index key, `END` at the end of the index key.
const ESCAPED: u8 = 0xFF;
const END: u8 = 0;

/// One entry of an index: an index key, and the key of the row that has it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IndexEntry {
    /// The index key without escapes, followed by the key of the row.
    keys: Box<[u8]>,
    /// Where the key of the row begins in `keys`.
    row_at: usize,
}

impl IndexEntry {
    /// Decodes a row of the table of entries. `None` if the row is not an entry.
    pub(crate) fn of(key: &[u8], value: &[u8]) -> Option<Self> {
        let mut keys = key.to_vec();
        let (row_at, end) = without_escapes(&mut keys).filter(|_| value.is_empty())?;
        keys.truncate(end);
        Some(Self { keys: keys.into(), row_at })
    }

    pub(crate) fn new(index_key: &[u8], row_key: &[u8]) -> Self {
        Self { keys: [index_key, row_key].concat().into(), row_at: index_key.len() }
    }

    /// The index key of the row.
    pub fn index_key(&self) -> &[u8] {
        &self.keys[..self.row_at]
    }

    /// The key of the row.
    pub fn row_key(&self) -> &[u8] {
        &self.keys[self.row_at..]
    }
}

/// A list of entries whose keys share one buffer, which is reused for the next entries.
#[derive(Default)]
pub struct EntryList {
    /// The index key of each entry, without escapes, followed by the key of its row.
    keys: Vec<u8>,
    /// Where the row key of each entry begins and ends in `keys`.
    places: Vec<(usize, usize)>,
}

impl EntryList {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The bytes of the keys of all entries.
    pub fn key_bytes(&self) -> usize {
        self.keys.len()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.places.clear();
    }

    /// Decodes and adds a row of the table of entries. `None` if the row is not an entry.
    #[inline]
    pub fn push_row(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        let start = self.keys.len();
        // The whole stored key is copied, and then the escapes are removed from the copy.
        self.keys.extend_from_slice(key);
        let Some((row_at, end)) = without_escapes(&mut self.keys[start..]).filter(|_| value.is_empty()) else {
            self.keys.truncate(start);
            return None;
        };
        self.keys.truncate(start + end);
        self.places.push((start + row_at, start + end));
        Some(())
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: &IndexEntry) {
        self.keys.extend_from_slice(entry.index_key());
        let row_at = self.keys.len();
        self.keys.extend_from_slice(entry.row_key());
        self.places.push((row_at, self.keys.len()));
    }

    /// The index key and the row key of each entry.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        let mut at = 0;
        self.places.iter().map(move |&(row_at, end)| {
            let from = std::mem::replace(&mut at, end);
            (&self.keys[from..row_at], &self.keys[row_at..end])
        })
    }

    /// Copies of the entries from number `first` on.
    pub fn entries_from(&self, first: usize) -> impl Iterator<Item = IndexEntry> {
        self.iter().skip(first).map(|(index_key, row_key)| IndexEntry::new(index_key, row_key))
    }
}

/// Entries are ordered by index key, then by row key, as in the index.
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

/// Decodes the stored key of an entry in place into the index key without escapes, followed by the row key. Returns
/// where the row key begins and ends. `None` if `key` is not the key of an entry.
#[inline]
fn without_escapes(key: &mut [u8]) -> Option<(usize, usize)> {
    let (mut from, mut to) = (0, 0);
    loop {
        let byte = *key.get(from)?;
        from += 1;
        if byte == 0 {
            match *key.get(from)? {
                END => break,
                ESCAPED => {}
                _ => return None,
            }
            from += 1;
        }
        key[to] = byte;
        to += 1;
    }
    let row = from + 1..key.len();
    let end = to + row.len();
    key.copy_within(row, to);
    Some((to, end))
}

/// The common prefix of the stored keys of all entries with this index key, with room for `more` bytes.
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

/// The length of [`key`].
pub fn key_bytes(index_key: &[u8], row_key: &[u8]) -> usize {
    let zeros = index_key.iter().filter(|byte| **byte == 0).count();
    index_key.len() + zeros + 2 + row_key.len()
}

/// The stored key of the entry with these keys.
pub fn key(index_key: &[u8], row_key: &[u8]) -> Vec<u8> {
    let mut key = prefix(index_key, row_key.len());
    key.extend_from_slice(row_key);
    key
}

/// The bounds of the stored keys of all entries whose index keys are within `keys`.
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

/// The bounds of the stored keys of all entries with this index key.
pub fn bounds_under(index_key: &[u8]) -> bounds::Owned {
    bounds_of(&(Bound::Included(index_key.to_vec()), Bound::Included(index_key.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::RangeBounds;

    /// Some of these keys are prefixes of others, and some contain bytes that have a meaning in stored keys.
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
        let (mut list, mut all) = (EntryList::default(), Vec::new());
        for index_key in KEYS.into_iter().chain([&[b'k'; 300][..], &[0; 300]]) {
            for row_key in KEYS {
                let entry = IndexEntry::of(&key(index_key, row_key), b"").expect("it is one");
                assert_eq!((entry.index_key(), entry.row_key()), (index_key, row_key));
                list.push_row(&key(index_key, row_key), b"").expect("it is one");
                list.push(&entry);
                all.extend([entry.clone(), entry]);
            }
        }
        let in_list: Vec<_> = list.iter().map(|(index_key, row_key)| IndexEntry::new(index_key, row_key)).collect();
        assert_eq!((in_list, list.len()), (all.clone(), all.len()));
        assert_eq!(list.entries_from(5).collect::<Vec<_>>(), all[5..]);
        for damaged in [&b""[..], b"key", b"key\0", b"key\0\x01row", b"\0\xff\0"] {
            assert!(IndexEntry::of(damaged, b"").is_none(), "{}", damaged.escape_ascii());
            assert!(list.push_row(damaged, b"").is_none() && list.len() == all.len(), "{}", damaged.escape_ascii());
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

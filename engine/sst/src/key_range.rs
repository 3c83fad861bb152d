//! A range of keys: all strings from a first string on that are less than an end. Inside the engine, intervals of
//! keys have this form. This module knows strings, but no rows, files or versions.
//!
//! `start` belongs to the range and `end` does not. If a range begins after a key, its `start` is the string that
//! follows this key. If a range ends with a key, its `end` is the string that follows this key. See [`next_key`].
//!
//! Two other things look like a range. A caller gives a pair of [`Bound`]s. If the engine only compares keys with
//! these bounds, it does not make a range from them, because making a range copies the keys. The bounds of a file
//! ([`KeyBounds`](crate::KeyBounds)) have a high end, which may be a key of the file;
//! [`KeyBounds::to_range`](crate::KeyBounds::to_range) makes a range from such bounds.

use crate::row::MAX_KEY_BYTES;
use std::ops::Bound;

/// Keys from `start` to before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange<K = Vec<u8>> {
    /// The first string that belongs to the range.
    pub start: K,
    /// The first string after the range; `None` if it has no end.
    pub end: Option<K>,
}

impl KeyRange {
    /// All keys.
    pub const ALL: Self = Self { start: Vec::new(), end: None };

    /// The keys between two bounds; `None` if there is no key between them.
    pub fn between(low: Bound<&[u8]>, high: Bound<&[u8]>) -> Option<Self> {
        let start = match low {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => next_key(key)?,
        };
        let end = match high {
            Bound::Unbounded => None,
            Bound::Included(key) => next_key(key),
            Bound::Excluded(key) => Some(key.to_vec()),
        };
        Self::new(start, end)
    }

    /// The range of one key.
    pub fn of_key(key: &[u8]) -> Self {
        Self { start: key.to_vec(), end: next_key(key) }
    }

    /// Makes the range grow to the smallest range that includes both the old range and `other`.
    pub fn join(&mut self, other: Self) {
        self.start = std::mem::take(&mut self.start).min(other.start);
        self.end = self.end.take().zip(other.end).map(|(a, b)| a.max(b));
    }

    /// The bytes of memory that the range takes in addition to its own size.
    pub fn heap_bytes(&self) -> usize {
        self.start.capacity() + self.end.as_ref().map_or(0, Vec::capacity)
    }
}

impl<K: AsRef<[u8]>> KeyRange<K> {
    /// The range from `start` to before `end`; `None` if no string belongs to the range.
    pub fn new(start: K, end: Option<K>) -> Option<Self> {
        Some(Self { start, end }).filter(|range| !range.is_empty())
    }

    /// Whether no string belongs to it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.ends_after(self.start.as_ref())
    }

    /// Whether `key` belongs to it.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_ref() <= key && self.ends_after(key)
    }

    /// Whether `key` lies before the end of the range.
    #[inline]
    pub fn ends_after(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| key < end.as_ref())
    }

    /// Whether some string belongs to both ranges. Neither range may be empty.
    #[inline]
    pub fn overlaps<L: AsRef<[u8]>>(&self, other: &KeyRange<L>) -> bool {
        self.ends_after(other.start.as_ref()) && other.ends_after(self.start.as_ref())
    }

    /// Whether no string lies between the two ranges: they overlap, or one range begins where the other range ends.
    pub fn touches(&self, other: &Self) -> bool {
        let reaches = |a: &Self, b: &Self| a.end.as_ref().is_none_or(|end| b.start.as_ref() <= end.as_ref());
        reaches(self, other) && reaches(other, self)
    }

    /// Whether every key between the bounds belongs to the range.
    #[inline]
    pub fn holds(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        let start = self.start.as_ref();
        let begins = match low {
            Bound::Included(low) | Bound::Excluded(low) => start <= low,
            Bound::Unbounded => start.is_empty(),
        };
        begins
            && match (self.end.as_ref().map(AsRef::as_ref), high) {
                (None, _) => true,
                (Some(_), Bound::Unbounded) => false,
                (Some(end), Bound::Included(high)) => high < end,
                (Some(end), Bound::Excluded(high)) => high <= end,
            }
    }

    /// The range of the strings that belong to both ranges; `None` if there is no such string.
    pub fn meet<L: AsRef<[u8]>>(&self, other: &KeyRange<L>) -> Option<KeyRange> {
        let ends = [self.end.as_ref().map(AsRef::as_ref), other.end.as_ref().map(AsRef::as_ref)];
        let meet =
            KeyRange { start: self.start.as_ref().max(other.start.as_ref()), end: ends.into_iter().flatten().min() };
        (!meet.is_empty()).then(|| meet.to_vecs())
    }

    /// The same range with its own copies of the two strings.
    pub fn to_vecs(&self) -> KeyRange {
        KeyRange { start: self.start.as_ref().to_vec(), end: self.end.as_ref().map(|end| end.as_ref().to_vec()) }
    }

    /// Its start as a bound.
    #[inline]
    pub fn low(&self) -> Bound<&[u8]> {
        Bound::Included(self.start.as_ref())
    }

    /// Its end as a bound.
    #[inline]
    pub fn high(&self) -> Bound<&[u8]> {
        self.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(end.as_ref()))
    }
}

/// The key that follows `key` directly; `None` if `key` is the greatest key of all. The next string is `key` with a
/// zero byte at its end. If `key` has the greatest length, that string is too long to be a key. Then the next key
/// is the first string after `key` that does not begin with `key`.
pub fn next_key(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() == MAX_KEY_BYTES {
        return successor(key);
    }
    Some(next_string(key))
}

/// The string that comes directly after `string` in the order of strings.
pub fn next_string(string: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(string.len() + 1);
    next.extend_from_slice(string);
    next.push(0);
    next
}

/// The shortest string greater than every string that starts with `prefix`; `None` if none exists.
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All strings of up to three bytes over two letters, in order.
    fn strings() -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        for len in 0..3 {
            let longer = all
                .iter()
                .filter(|string: &&Vec<u8>| string.len() == len)
                .flat_map(|string| [0, 1].map(|byte| [string.as_slice(), &[byte]].concat()));
            let longer: Vec<Vec<u8>> = longer.collect();
            all.extend(longer);
        }
        all.sort();
        all
    }

    fn ranges(strings: &[Vec<u8>]) -> Vec<KeyRange> {
        let ends = || strings.iter().cloned().map(Some).chain([None]);
        strings.iter().flat_map(|start| ends().filter_map(|end| KeyRange::new(start.clone(), end))).collect()
    }

    /// Compares ranges by the strings that belong to them. The strings that are tried are up to one byte longer
    /// than the longest bound.
    #[test]
    fn every_question_is_answered_as_by_a_list_of_the_strings() {
        let strings = strings();
        let list =
            |range: &KeyRange| -> Vec<usize> { (0..strings.len()).filter(|&i| range.contains(&strings[i])).collect() };
        let ranges = ranges(&strings);
        for a in &ranges {
            let of_a = list(a);
            assert_eq!(of_a.first(), strings.iter().position(|string| *string == a.start).as_ref());
            assert_eq!(KeyRange::between(a.low(), a.high()).as_ref(), Some(a));
            for b in &ranges {
                let of_b = list(b);
                let both: Vec<usize> = of_a.iter().copied().filter(|i| of_b.contains(i)).collect();
                assert_eq!(a.overlaps(b), !both.is_empty(), "{a:?} {b:?}");
                assert_eq!(a.meet(b).map_or(Vec::new(), |meet| list(&meet)), both, "{a:?} {b:?}");
                assert_eq!(a.holds(b.low(), b.high()), of_b == both && (b.end.is_some() || a.end.is_none()));
                let mut joined = a.clone();
                joined.join(b.clone());
                let whole: Vec<usize> =
                    (of_a[0].min(of_b[0])..=*of_a.last().max(of_b.last()).expect("not empty")).collect();
                assert_eq!(list(&joined), whole);
                let either = (0..strings.len()).filter(|i| of_a.contains(i) || of_b.contains(i)).count();
                assert_eq!(a.touches(b), either == whole.len(), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn bounds_at_keys_begin_and_end_at_the_next_string() {
        let between = |low, high| KeyRange::between(low, high).map(|range| (range.start, range.end));
        let (a, b) = (b"a".as_slice(), b"b".as_slice());
        assert_eq!(between(Bound::Excluded(a), Bound::Included(b)), Some((b"a\0".to_vec(), Some(b"b\0".to_vec()))));
        assert_eq!(between(Bound::Included(b), Bound::Excluded(b)), None);
        assert_eq!(between(Bound::Included(b), Bound::Included(b)), Some((b.to_vec(), Some(b"b\0".to_vec()))));
        assert_eq!(KeyRange::of_key(b).end, Some(b"b\0".to_vec()));
        let longest = [vec![b'a'; MAX_KEY_BYTES - 1], vec![0xff]].concat();
        assert_eq!(next_key(&longest), Some([vec![b'a'; MAX_KEY_BYTES - 2], vec![b'b']].concat()));
        assert_eq!(next_key(&vec![0xff; MAX_KEY_BYTES]), None);
        assert_eq!(KeyRange::between(Bound::Excluded(&vec![0xff; MAX_KEY_BYTES]), Bound::Unbounded), None);
    }
    #[test]
    fn a_successor_is_greater_than_every_string_that_begins_with_the_prefix() {
        assert_eq!(successor(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xff"), None);
    }
}

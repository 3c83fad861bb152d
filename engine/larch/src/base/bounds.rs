//! Converts ranges of keys, as callers write them, to the bounds that the engine uses. This module knows nothing
//! about rows.

use sst::KeyRange;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: `..`, `"a".."b"`, `"a"..="b"`, `"a"..`, `.."b"`, `..="b"`, or a pair of [`Bound`]s. A key can be
/// of any type that implements `AsRef<[u8]>`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// fruit.insert("apple", "red")?;
/// assert_eq!(fruit.range(..).count(), 1);
/// assert_eq!(fruit.range("a".."b").count(), 1);
/// assert_eq!(fruit.range(b"b".to_vec()..).count(), 0);
/// # Ok(())
/// # }
/// ```
pub trait IntoKeyRange {
    /// The low and the high bound.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl<R: IntoKeyRange + ?Sized> IntoKeyRange for &R {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).bounds()
    }
}

impl IntoKeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> IntoKeyRange for Range<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> IntoKeyRange for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()))
    }
}

impl<K: AsRef<[u8]>> IntoKeyRange for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> IntoKeyRange for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> IntoKeyRange for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> IntoKeyRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(AsRef::as_ref), self.1.as_ref().map(AsRef::as_ref))
    }
}

/// A lower and an upper bound that own their bytes.
pub type Owned = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A lower and an upper bound that borrow their bytes.
pub type Borrowed<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// A copy of the bounds of a range.
pub fn owned(range: &impl IntoKeyRange) -> Owned {
    let (low, high) = range.bounds();
    (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec))
}

/// The bounds of all keys that begin with `prefix`.
pub fn of_prefix(prefix: &[u8]) -> Owned {
    let high = sst::successor(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(prefix.to_vec()), high)
}

/// The keys of `range` as a [`KeyRange`], or `None` if no key can be in it.
pub fn keys(range: &impl IntoKeyRange) -> Option<KeyRange> {
    let (low, high) = range.bounds();
    KeyRange::between(low, high)
}

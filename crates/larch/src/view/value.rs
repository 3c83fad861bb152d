//! Keys, values and parts of values, as reads return them. This module does not know how they are found.

use crate::memtable::MemRow;
use os::sync::Arc;
use pages::cache::HeldPage;
use pages::{PageCache, PageRef};
use sst::LoadedValue;
use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

/// A key that owns its bytes.
pub type Key = Box<[u8]>;

/// The bytes of a value. The bytes of a short value are copied. A longer value refers to its bytes in a page of
/// the cache, or in the memory of rows that were not in files yet. This page or memory stays as long as the value
/// lives. But if values already keep a quarter of the cache, or flushed rows that take a quarter of the write
/// buffer, further long values are copied, too.
pub struct Value(ValueBytes);

enum ValueBytes {
    Short(u8, [u8; SHORT_BYTES]),
    Page(HeldPage, Range<usize>),
    Memory(MemRow, Range<usize>),
    Owned(Arc<[u8]>),
}

/// A value of at most this number of bytes is copied. A value that refers to a page changes three shared counters
/// when it is made, and again when it is dropped. To copy a few bytes is faster. With this number of bytes, a
/// [`Value`] takes two cache lines.
const SHORT_BYTES: usize = 126;

const _: () = assert!(size_of::<Value>() == 128, "the length of a short value counts on it");

impl Value {
    /// The whole value of a row.
    #[inline]
    pub(crate) fn from_memory_whole(row: &MemRow) -> Self {
        Self::from_memory(row, 0..row.value().len())
    }

    /// The bytes at `place` within the value of `row`.
    #[inline]
    pub(crate) fn from_memory(row: &MemRow, place: Range<usize>) -> Self {
        let bytes = &row.value()[place.clone()];
        match Self::short(bytes) {
            Some(short) => short,
            None if row.may_be_kept() => Self(ValueBytes::Memory(row.clone(), place)),
            None => Self::owned(bytes.into()),
        }
    }

    pub(crate) fn from_file(cache: &PageCache, value: LoadedValue) -> Self {
        match value {
            LoadedValue::Owned(bytes) => Self::owned(bytes),
            LoadedValue::InPage(page, range) => Self::from_page(cache, &page, range),
        }
    }

    /// A copy of `bytes`, if there are at most [`SHORT_BYTES`] of them.
    #[inline]
    fn short(bytes: &[u8]) -> Option<Self> {
        let mut copy = [0; SHORT_BYTES];
        copy.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(ValueBytes::Short(bytes.len() as u8, copy)))
    }

    /// The bytes at `place` of a page.
    #[inline]
    pub(crate) fn from_page(cache: &PageCache, page: &PageRef, place: Range<usize>) -> Self {
        if let Some(short) = Self::short(&page[place.clone()]) {
            return short;
        }
        match cache.hold(page) {
            Some(held) => Self(ValueBytes::Page(held, place)),
            None => Self::owned(page[place].into()),
        }
    }

    /// A copy of `bytes`.
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        Self::short(bytes).unwrap_or_else(|| Self::owned(bytes.into()))
    }

    fn owned(bytes: Arc<[u8]>) -> Self {
        Self(ValueBytes::Owned(bytes))
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            ValueBytes::Short(bytes, copy) => &copy[..usize::from(*bytes)],
            ValueBytes::Page(held, range) => &held[range.clone()],
            ValueBytes::Memory(row, range) => &row.value()[range.clone()],
            ValueBytes::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Value {
    fn borrow(&self) -> &[u8] {
        self
    }
}

/// A clone keeps the same page or the same memory as the original. If values already keep as much of the cache as
/// they may, a clone is a copy.
impl Clone for Value {
    fn clone(&self) -> Self {
        match &self.0 {
            ValueBytes::Short(bytes, copy) => Self(ValueBytes::Short(*bytes, *copy)),
            ValueBytes::Page(held, range) => match held.again() {
                Some(held) => Self(ValueBytes::Page(held, range.clone())),
                None => Self::owned(held[range.clone()].into()),
            },
            ValueBytes::Memory(row, range) => Self(ValueBytes::Memory(row.clone(), range.clone())),
            ValueBytes::Owned(bytes) => Self(ValueBytes::Owned(bytes.clone())),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Values are ordered by their bytes.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

/// A value has the same hash as its bytes. So a map with values as keys can be searched for bytes.
impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// A value is equal to any other type of bytes with the same content.
macro_rules! equal_to {
    ($($other:ty),*) => {
        $(impl PartialEq<$other> for Value {
            fn eq(&self, other: &$other) -> bool {
                let other: &[u8] = other.as_ref();
                **self == *other
            }
        })*
    };
}

equal_to!([u8], &[u8], str, &str, String, Vec<u8>, Box<[u8]>);

impl<const N: usize> PartialEq<[u8; N]> for Value {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Value {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.to_vec()
    }
}

impl From<Value> for Cow<'_, [u8]> {
    fn from(value: Value) -> Self {
        Cow::Owned(value.to_vec())
    }
}

impl<'v> From<&'v Value> for Cow<'v, [u8]> {
    fn from(value: &'v Value) -> Self {
        Cow::Borrowed(value)
    }
}

/// The bytes are not copied. The page or memory to which the value refers stays as long as the `Bytes` object
/// lives.
#[cfg(feature = "bytes")]
impl From<Value> for bytes::Bytes {
    fn from(value: Value) -> Self {
        Self::from_owner(value)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Parts of the value of a row, in the order in which the [`Selection`](crate::Selection) names their groups. One
/// or two parts need no memory allocation.
#[derive(Clone)]
pub struct Parts(Few);

#[derive(Clone)]
enum Few {
    None,
    One([Value; 1]),
    Two([Value; 2]),
    Many(Box<[Value]>),
}

impl Parts {
    pub(crate) fn of(parts: impl IntoIterator<Item = Value>) -> Self {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Self(Few::None) };
        let Some(second) = parts.next() else { return Self(Few::One([first])) };
        let Some(third) = parts.next() else { return Self(Few::Two([first, second])) };
        Self(Few::Many([first, second, third].into_iter().chain(parts).collect()))
    }

    /// The only part. The caller must have asked for exactly one part.
    pub(crate) fn into_only(self) -> Value {
        self.into_iter().next().expect("one part was asked for")
    }
}

impl Deref for Parts {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        match &self.0 {
            Few::None => &[],
            Few::One(parts) => parts,
            Few::Two(parts) => parts,
            Few::Many(parts) => parts,
        }
    }
}

impl IntoIterator for Parts {
    type Item = Value;
    type IntoIter = std::iter::Chain<
        std::iter::Flatten<std::array::IntoIter<Option<Value>, 2>>,
        std::iter::Flatten<std::option::IntoIter<Box<[Value]>>>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let (few, many) = match self.0 {
            Few::None => ([None, None], None),
            Few::One([part]) => ([Some(part), None], None),
            Few::Two(parts) => (parts.map(Some), None),
            Few::Many(parts) => ([None, None], Some(parts)),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::Database;
    use os::Machine;
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn a_value_is_used_as_its_bytes_are() {
        let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let long = [b'x'; 1000];
        table.insert("short", "red").expect("the disk works");
        table.insert("long", long).expect("the disk works");
        for is_flushed in [false, true] {
            if is_flushed {
                db.flush().expect("the disk works");
            }
            let get = |key: &str| table.get(key).expect("the disk works").expect("it is there");
            let (short, other, text) = (get("short"), get("long"), "red".to_owned());
            assert!(short == "red" && short == *"red" && short == text && short == *b"red" && short == b"red");
            assert!(short == b"red"[..] && short == b"red".to_vec() && short != other);
            assert!(short < other && other == long && other.clone() == other);
            assert!(HashSet::from([short.clone()]).contains(&b"red"[..]));
            assert!(BTreeSet::from([short.clone(), other.clone()]).contains(&long[..]));
            assert_eq!(Vec::from(other.clone()), long);
            assert_eq!(
                table.select([""; 0]).expect("of no group").get("short").expect("it works").map(|row| row.len()),
                Some(0)
            );
        }
    }

    #[test]
    fn clones_of_a_value_keep_its_bytes_when_the_table_is_gone() {
        let db =
            Database::builder("db").machine(Machine::simulated(1).0).cache_bytes(1 << 20).open().expect("it opens");
        let table = db.table("t").expect("the disk works");
        table.insert("k", [b'x'; 5000]).expect("the disk works");
        db.flush().expect("the disk works");
        let value = table.get("k").expect("the disk works").expect("it is there");
        // If all these clones referred to pages, they would keep far more than a quarter of the cache. So the
        // later clones are copies.
        let clones: Vec<_> = (0..1000).map(|_| value.clone()).collect();
        drop((value, table, db));
        assert!(clones.iter().all(|clone| *clone == [b'x'; 5000]));
    }
}

//! Keys, values and parts of values, as reads return them. This module does not know how they are found.

use crate::memtable::MemRow;
use os::sync::Arc;
use pages::cache::HeldPage;
use pages::{Page, PageCache};
use sst::LoadedValue;
use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

/// A key that owns its bytes. It becomes a `Vec`, a `Box` or `Bytes` without a copy.
#[derive(Clone, Default)]
pub struct Key(Box<[u8]>);

const _: () = assert!(size_of::<Key>() == size_of::<Box<[u8]>>(), "a key costs no more than its bytes");

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Box<[u8]>> for Key {
    fn from(bytes: Box<[u8]>) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for Key {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Key {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Key> for Box<[u8]> {
    fn from(key: Key) -> Self {
        key.0
    }
}

impl From<Key> for Vec<u8> {
    fn from(key: Key) -> Self {
        key.0.into_vec()
    }
}

/// The bytes are not copied.
#[cfg(feature = "bytes")]
impl From<Key> for bytes::Bytes {
    fn from(key: Key) -> Self {
        Self::from(key.0)
    }
}

/// The bytes of a value. Up to 126 bytes are copied. A longer value refers to a page of the cache or to the memory of
/// a memtable, and keeps that alive as long as it lives. But once values keep a quarter of the cache (of the least size
/// of an elastic one), or flushed rows that take a quarter of the write buffer, further long values are copied, too. A
/// value that merges have made for its reader keeps only its own bytes.
pub struct Value(ValueBytes);

enum ValueBytes {
    Short(u8, [u8; SHORT_BYTES]),
    Page(HeldPage, Range<usize>),
    Memory(MemRow, Range<usize>),
    Owned(Arc<[u8]>),
}

/// The longest value that is copied. A value that refers to a page changes three shared counters when it is made, and
/// again when it is dropped, so copying a few bytes is faster. With this limit, a [`Value`] takes two cache lines.
pub(super) const SHORT_BYTES: usize = 126;

const _: () = assert!(size_of::<Value>() == 128, "the length of a short value counts on it");

impl Value {
    /// The whole value of a row.
    #[inline]
    pub(crate) fn from_memory_whole(row: &MemRow) -> Self {
        Self::from_memory(row, 0..row.value().len())
    }

    /// The bytes at `place` of the value of `row`.
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
    pub(crate) fn from_page(cache: &PageCache, page: &impl Page, place: Range<usize>) -> Self {
        if let Some(short) = Self::short(&page[place.clone()]) {
            return short;
        }
        match page.keep().and_then(|page| cache.hold(page)) {
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

/// A clone refers to the same page or memory as the original. Once values keep as much of the cache as they may, a
/// clone of a value in a page is a copy.
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

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.to_vec()
    }
}

/// The bytes are not copied. The `Bytes` object keeps the page or memory of the value alive.
#[cfg(feature = "bytes")]
impl From<Value> for bytes::Bytes {
    fn from(value: Value) -> Self {
        Self::from_owner(value)
    }
}

/// A key is serialized as bytes.
#[cfg(feature = "serde")]
impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

/// Implements the traits that make keys and values usable as their bytes: they are shown, compared, ordered and
/// hashed by their bytes, and are equal to other byte types with the same content. So a map of them can be searched
/// with a `&[u8]`.
macro_rules! used_as_bytes {
    ($($owned:ty),*) => {
        $(
            impl AsRef<[u8]> for $owned {
                #[inline]
                fn as_ref(&self) -> &[u8] {
                    self
                }
            }

            impl Borrow<[u8]> for $owned {
                #[inline]
                fn borrow(&self) -> &[u8] {
                    self
                }
            }

            impl PartialEq for $owned {
                fn eq(&self, other: &Self) -> bool {
                    **self == **other
                }
            }

            impl Eq for $owned {}

            impl PartialOrd for $owned {
                fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                    Some(self.cmp(other))
                }
            }

            impl Ord for $owned {
                fn cmp(&self, other: &Self) -> Ordering {
                    (**self).cmp(&**other)
                }
            }

            impl Hash for $owned {
                fn hash<H: Hasher>(&self, state: &mut H) {
                    (**self).hash(state);
                }
            }

            impl fmt::Debug for $owned {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(&**self, f)
                }
            }

            equal_to!($owned: [u8], &[u8], str, &str, String, Vec<u8>, Box<[u8]>);

            impl<const N: usize> PartialEq<[u8; N]> for $owned {
                fn eq(&self, other: &[u8; N]) -> bool {
                    **self == *other
                }
            }

            impl<const N: usize> PartialEq<&[u8; N]> for $owned {
                fn eq(&self, other: &&[u8; N]) -> bool {
                    **self == **other
                }
            }

            impl From<$owned> for Cow<'_, [u8]> {
                fn from(owned: $owned) -> Self {
                    Cow::Owned(owned.into())
                }
            }

            impl<'b> From<&'b $owned> for Cow<'b, [u8]> {
                fn from(owned: &'b $owned) -> Self {
                    Cow::Borrowed(owned)
                }
            }
        )*
    };
}

macro_rules! equal_to {
    ($owned:ty: $($other:ty),*) => {
        $(impl PartialEq<$other> for $owned {
            fn eq(&self, other: &$other) -> bool {
                let other: &[u8] = other.as_ref();
                **self == *other
            }
        })*
    };
}

used_as_bytes!(Key, Value);

/// Parts of a row's value, in the order in which the [`Selection`](crate::Selection) names their groups. One or two
/// parts need no allocation.
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

    /// The only part. There must be exactly one.
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
    use super::Key;
    use crate::Database;
    use os::Machine;
    use std::borrow::Cow;
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn a_key_is_used_as_its_bytes_are() {
        let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        table.insert("blue", "1").expect("the disk works");
        table.insert("red", "2").expect("the disk works");
        let keys: Vec<Key> = table.iter().map(|row| row.expect("the disk works").0).collect();
        let [blue, red] = keys.try_into().expect("two rows were inserted");
        let (text, slice, boxed): (_, &[u8], Box<[u8]>) = ("red".to_owned(), b"red", Box::from(*b"red"));
        assert!(red == "red" && red == *"red" && red == text && red == *b"red" && red == b"red");
        assert!(red == *slice && red == slice && red == slice.to_vec() && red == boxed);
        assert!(blue < red && red.clone() == red && red.starts_with(b"r") && Key::default().is_empty());
        assert_eq!(format!("{red:?}"), format!("{:?}", b"red"));
        assert!(HashSet::from([red.clone()]).contains(&b"red"[..]));
        assert!(BTreeSet::from([red.clone(), blue.clone()]).contains(&b"blue"[..]));
        assert_eq!(Cow::from(&red), &b"red"[..]);
        assert_eq!(Cow::from(red.clone()), &b"red"[..]);
        assert_eq!(table.get(&red).expect("the disk works").expect("it is there"), "2");
        let bytes = red.as_ptr();
        let vec = Vec::from(red);
        assert_eq!((vec.as_ptr(), vec.as_slice()), (bytes, &b"red"[..]), "the bytes are not copied");
        assert_eq!(Key::from(vec), Key::from(&b"red"[..]));
        #[cfg(feature = "bytes")]
        {
            let bytes = blue.as_ptr();
            assert_eq!(bytes::Bytes::from(blue).as_ptr(), bytes, "the bytes are not copied");
        }
    }

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

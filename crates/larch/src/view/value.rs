//! Keys, values and parts of values as callers get them. It does not know how they were found.

use crate::memtable::MemRow;
use os::sync::Arc;
use pages::cache::HeldPage;
use pages::{PageCache, PageRef};
use sst::LoadedValue;
use std::fmt;
use std::ops::{Deref, Range};

/// A key, owned.
pub type Key = Box<[u8]>;

/// The bytes of a value. Those of a short value are copied. For a longer one a page of the cache, or the memory of rows
/// that were not in files yet, is kept while the value lives. If values keep a quarter of the cache already, or flushed
/// rows of a quarter of the write buffer, the value is a copy.
pub struct Value(ValueBytes);

enum ValueBytes {
    Short(u8, [u8; SHORT_BYTES]),
    Page(HeldPage, Range<usize>),
    Memory(MemRow, Range<usize>),
    Owned(Arc<[u8]>),
}

/// Bytes of a value that are copied. A value that keeps a page changes three shared counters, and again when it is
/// dropped, which takes longer than copying this number of bytes. With these a [`Value`] takes two lines of memory.
const SHORT_BYTES: usize = 126;

const _: () = assert!(size_of::<Value>() == 128, "the length of a short value counts on it");

impl Value {
    /// A row's value.
    #[inline]
    pub(crate) fn from_memory_whole(row: &MemRow) -> Self {
        Self::from_memory(row, 0..row.value().len())
    }

    /// The bytes at `place` of a row's value.
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

    /// A copy of `bytes`, if they are few.
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

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Value {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Parts of the value of a row, in the order in which the [`Selection`](crate::Selection) names their groups. One or
/// two parts need no allocation.
pub struct Parts(Few);

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

    /// The part of a row of which one part was asked for.
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

//! Keys and values as callers get them.

use crate::memtable::MemRow;
use os::sync::Arc;
use pages::PageCache;
use pages::cache::Held;
use sst::LoadedValue;
use std::fmt;
use std::ops::{Deref, Range};

/// A key, owned.
pub type Key = Box<[u8]>;

/// A value's bytes, usually not copied: a page of the cache stays pinned while the value lives, unless values pin a
/// quarter of the cache already; then it is a copy.
pub struct Value(Bytes);

enum Bytes {
    Page(Held, Range<usize>),
    Memory(MemRow),
    Owned(Arc<[u8]>),
}

impl Value {
    pub(crate) fn from_memory(row: MemRow) -> Self {
        Self(Bytes::Memory(row))
    }

    pub(crate) fn from_file(cache: &PageCache, value: LoadedValue) -> Self {
        match value {
            LoadedValue::Owned(bytes) => Self(Bytes::Owned(bytes)),
            LoadedValue::InPage(page, range) => match cache.hold(&page) {
                Some(held) => Self(Bytes::Page(held, range)),
                None => Self(Bytes::Owned(page[range].into())),
            },
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Page(held, range) => &held[range.clone()],
            Bytes::Memory(row) => row.value(),
            Bytes::Owned(bytes) => bytes,
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

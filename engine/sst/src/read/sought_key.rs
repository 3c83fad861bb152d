//! A key that is looked up. It keeps its hash for the look-up in the next file, and the address of a missing page
//! for the next run of the same step.

use crate::format::filter::hash_key;
use pages::{Address, PagedFile};
use std::cell::{Cell, OnceCell};

/// A key that is looked up in several files. Its hash is computed when the first filter is asked.
#[derive(Debug)]
pub struct SoughtKey<'k> {
    key: &'k [u8],
    hash: OnceCell<u64>,
    /// The id of the file and the address of the data page that was missing when the key was last looked up. After
    /// the fault, the look-up goes straight to this page and does not search the nodes again. An address pins no
    /// page.
    missing: Cell<Option<(u64, Address)>>,
}

impl<'k> SoughtKey<'k> {
    /// A key for which no filter was asked yet.
    #[inline]
    pub fn new(key: &'k [u8]) -> Self {
        Self { key, hash: OnceCell::new(), missing: Cell::new(None) }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &'k [u8] {
        self.key
    }

    /// The address of the key's data page in `file`, if that page was missing when the key was last looked up.
    #[inline]
    pub(super) fn missing_in(&self, file: &PagedFile) -> Option<Address> {
        self.missing.get().filter(|(id, _)| *id == file.id()).map(|(_, address)| address)
    }

    /// Notes that the key's data page in `file`, at `address`, is missing.
    #[cold]
    pub(super) fn set_missing(&self, file: &PagedFile, address: Address) {
        self.missing.set(Some((file.id(), address)));
    }

    /// Its hash, for filters.
    #[inline]
    pub fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| hash_key(self.key))
    }
}

//! Some column groups of a table as a snapshot or a transaction shows them. It only hands reads on.

use super::index::Index;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::indexes::read::RangeBy;
use crate::read::{PartCursor, PartRange, PartScan, Reader, Tried};
use crate::view::value::{Key, Parts};

/// A [`Selection`](crate::Selection) as a [`Readable`](crate::Readable) shows it, made by
/// [`Readable::select`](crate::Readable::select). Its functions do what those of the selection with the same names do.
#[derive(Clone, Debug)]
pub struct Selected<'r> {
    reader: Reader<'r>,
}

impl<'r> Selected<'r> {
    pub(super) fn new(reader: Reader<'r>) -> Self {
        Self { reader }
    }

    /// The parts of the row `key`, or `None` if there is no such row.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`](crate::Selection::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Parts>> {
        self.reader.get(key.as_ref())
    }

    /// As [`Selected::get`], but only with what is in memory.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`](crate::Selection::get).
    pub fn try_get(&self, key: impl AsRef<[u8]>) -> Result<Tried<Option<Parts>>> {
        self.reader.try_get(key.as_ref())
    }

    /// As [`Selected::get`], as a future.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`](crate::Selection::get).
    pub async fn get_async(&self, key: impl AsRef<[u8]>) -> Result<Option<Parts>> {
        self.reader.get_async(key.as_ref()).await
    }

    /// Whether there is a row `key`. No part of it is read.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`](crate::Selection::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader.contains_key(key.as_ref())
    }

    /// The parts of the rows `keys`, in the order of the keys, looked up together.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`](crate::Selection::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Parts>>> {
        self.reader.multi_get(&Vec::from_iter(keys))
    }

    /// As [`Selected::multi_get`], as a future.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`](crate::Selection::get).
    pub async fn multi_get_async<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Parts>>> {
        let keys = Vec::from_iter(keys);
        self.reader.multi_get_async(&keys).await
    }

    /// The rows with keys in `range`, in the order of the keys, from either end.
    pub fn range(&self, range: impl IntoKeyRange) -> PartRange {
        self.reader.range(bounds::owned(&range))
    }

    /// The rows that have this key in `index`, which is one of the table.
    ///
    /// # Errors
    ///
    /// As [`Index::get_by`].
    pub fn get_by(&self, index: &Index, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Parts)>> {
        index.get_in(&self.reader, index_key.as_ref())
    }

    /// The rows whose keys in `index` are in `range`, in the order of the index, from either end. See [`Index::range_by`].
    pub fn range_by(&self, index: &Index, range: impl IntoKeyRange) -> RangeBy<Parts> {
        index.range_in(&self.reader, &range)
    }

    /// As [`Selected::range`], for futures.
    pub fn scan_async(&self, range: impl IntoKeyRange) -> PartScan {
        self.range(range).into()
    }

    /// A cursor over all rows, see [`Table::cursor`](crate::Table::cursor).
    pub fn cursor(&self) -> PartCursor {
        self.cursor_in(..)
    }

    /// A cursor over the rows with keys in `range`, see [`Table::cursor_in`](crate::Table::cursor_in).
    pub fn cursor_in(&self, range: impl IntoKeyRange) -> PartCursor {
        self.reader.cursor(bounds::owned(&range))
    }
}

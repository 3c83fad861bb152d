//! A row that a read has found: where it lies, and how its parts are loaded. This module does not know how the row
//! was found.

use crate::base::error::{Error, Result};
use crate::base::table::TableInfo;
use crate::core::handle::DatabaseHandle;
use crate::core::snapshots::PinnedVersion;
use crate::view::found::{FoundRow, Spot};
use crate::view::merge::Loads;
use crate::view::own_writes::OwnRows;
use crate::view::part_list::PartList;
use crate::view::value::{Parts, Value};
use os::sync::Arc;
use pages::{PageRef, Session, Stop, retry};
use sst::{Row, StoredValue};
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// Loads the parts of a range's rows.
pub(super) struct RowLoader {
    pub handle: Arc<DatabaseHandle>,
    pub table: Arc<TableInfo>,
    pub pin: Arc<PinnedVersion>,
    /// The transaction's own rows.
    pub own: Option<OwnRows>,
    pub wanted: PartList,
    pub session: Session,
    /// The first error of the range. Once it is set, the range has failed.
    pub failed: OnceCell<Error>,
    /// Whether the caller loads parts that lie outside their pages after it got a row without them. A guess from its
    /// earlier calls, for readahead.
    pub loads: Cell<Loads>,
    /// Whether the last row has parts that lie outside their pages and that the caller has not loaded.
    pub offers_outside: Cell<bool>,
}

impl RowLoader {
    /// Keeps `error` if it is the first one, and returns the first error.
    pub fn fail(&self, error: impl Into<Error>) -> Error {
        self.failed.get_or_init(|| error.into()).clone()
    }

    /// As [`RowLoader::fail`], for an error about the file of the last row.
    fn fail_in(&self, error: pages::Error) -> Error {
        self.fail(self.handle.core().outdated(error.into(), self.pin.version()))
    }

    /// Notes that the caller loads a part that lies outside its page.
    fn note_load(&self) {
        self.offers_outside.set(false);
        self.loads.set(Loads::Parts);
    }
}

/// A row of a [`Range`](super::Range), borrowed until the next row is requested. Parts that lie outside their pages
/// are not loaded yet.
pub struct RowRef<'r> {
    pub(super) loader: &'r RowLoader,
    /// If the row is in a file: its wanted parts except the one in the main group, in group order.
    pub(super) beside_main: &'r [StoredValue],
    pub(super) key: &'r [u8],
    pub(super) spot: Spot<'r>,
}

impl RowRef<'_> {
    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// The number of parts of the row: the number of groups of a selection, or one in a range of whole values.
    #[inline]
    pub fn part_count(&self) -> usize {
        self.loader.wanted.len()
    }

    /// The length of part `i` in bytes, without loading it. Parts are counted from 0 in the order of the selection.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    #[inline]
    pub fn part_len(&self, i: usize) -> u64 {
        match &self.spot {
            Spot::InPage(..) => self.in_page(i).1.len() as u64,
            Spot::Copied(value) => self.loader.wanted.place(i, value).len() as u64,
            Spot::Found(FoundRow::Memory(row)) => self.loader.wanted.place(i, row.value()).len() as u64,
            Spot::Found(FoundRow::File(row, _)) => self.stored(i, row).len(),
        }
    }

    /// Part `i`, or `None` if it lies outside its page and has to be loaded.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    #[inline]
    pub fn inline_part(&self, i: usize) -> Option<&[u8]> {
        // Most rows of a scan are of this kind, so only this case is inlined.
        if let Spot::InPage(page, place) = &self.spot
            && self.loader.wanted.group(i) == 0
        {
            return Some(&page[place.clone()]);
        }
        self.inline_part_elsewhere(i)
    }

    #[inline(never)]
    fn inline_part_elsewhere(&self, i: usize) -> Option<&[u8]> {
        match &self.spot {
            Spot::Copied(value) => Some(&value[self.loader.wanted.place(i, value)]),
            Spot::Found(FoundRow::Memory(row)) => Some(&row.value()[self.loader.wanted.place(i, row.value())]),
            Spot::Found(FoundRow::File(row, _)) => self.stored(i, row).inline(),
            Spot::InPage(..) => self.loader.wanted.beside(self.loader.wanted.group(i), self.beside_main).inline(),
        }
    }

    /// Part `i`, which is read from disk if it lies outside its page. If this fails, the range has failed.
    ///
    /// # Errors
    ///
    /// [`Error::Page`] if the part cannot be read.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    pub fn part(&self, i: usize) -> Result<Value> {
        if let Spot::Found(FoundRow::File(row, _)) = &self.spot
            && self.stored(i, row).inline().is_none()
        {
            self.loader.note_load();
        }
        retry(&self.loader.session, || self.load_part(i)).map_err(|error| self.loader.fail_in(error))
    }

    /// All parts. Those that lie outside their pages are read together. If this fails, the range has failed.
    ///
    /// # Errors
    ///
    /// [`Error::Page`] if a part cannot be read.
    pub fn parts(&self) -> Result<Parts> {
        if self.loader.offers_outside.get() {
            self.loader.note_load();
        }
        retry(&self.loader.session, || self.load_all()).map_err(|error| self.loader.fail_in(error))
    }

    /// The index of the only part.
    #[inline]
    fn only(&self) -> usize {
        assert_eq!(self.part_count(), 1, "a row of several parts, or none, has no one value: ask for its parts");
        0
    }

    /// The length of the value in bytes, without loading it.
    ///
    /// # Panics
    ///
    /// Unless the selection has exactly one group. [`RowRef::inline_value`] and [`RowRef::value`] panic in the same
    /// case.
    #[inline]
    pub fn value_len(&self) -> u64 {
        self.part_len(self.only())
    }

    /// The value, or `None` if it lies outside its page and has to be loaded.
    #[inline]
    pub fn inline_value(&self) -> Option<&[u8]> {
        self.inline_part(self.only())
    }

    /// The value, which is read from disk if it lies outside the page of its row. If this fails, the range has
    /// failed.
    ///
    /// # Errors
    ///
    /// [`Error::Page`] if the value cannot be read.
    pub fn value(&self) -> Result<Value> {
        self.part(self.only())
    }

    /// Whether the row is in a memtable.
    #[inline]
    pub(crate) fn is_in_memtable(&self) -> bool {
        matches!(self.spot, Spot::Found(FoundRow::Memory(_)) | Spot::Copied(_))
    }

    /// Whether a wanted part lies outside its page.
    #[inline]
    pub(super) fn has_parts_outside(&self) -> bool {
        match &self.spot {
            Spot::Found(FoundRow::File(row, _)) => {
                (0..self.part_count()).any(|i| self.stored(i, row).inline().is_none())
            }
            Spot::Found(FoundRow::Memory(_)) | Spot::InPage(..) | Spot::Copied(_) => false,
        }
    }

    #[inline]
    fn stored<'s>(&'s self, i: usize, row: &'s Row) -> &'s StoredValue {
        self.loader.wanted.stored(i, row, self.beside_main)
    }

    /// The page of part `i` of a followed row, and where the part is in this page.
    #[inline]
    fn in_page(&self, i: usize) -> (&PageRef, Range<usize>) {
        match (&self.spot, self.loader.wanted.group(i)) {
            (Spot::InPage(page, place), 0) => (page, place.clone()),
            (Spot::InPage(..), group) => {
                let part = self.loader.wanted.beside(group, self.beside_main);
                part.in_page().expect("rows with parts outside their pages are not followed")
            }
            (Spot::Found(_) | Spot::Copied(_), _) => unreachable!("the caller has looked"),
        }
    }

    /// Part `i`. A step.
    #[inline]
    pub(super) fn load_part(&self, i: usize) -> Result<Value, Stop> {
        let RowLoader { session, wanted, .. } = self.loader;
        let cache = session.cache();
        match &self.spot {
            Spot::InPage(..) => {
                let (page, place) = self.in_page(i);
                Ok(Value::from_page(cache, page, place))
            }
            Spot::Copied(value) => Ok(Value::copied(&value[wanted.place(i, value)])),
            Spot::Found(FoundRow::Memory(row)) => Ok(Value::from_memory(row, wanted.place(i, row.value()))),
            Spot::Found(FoundRow::File(row, file)) => {
                Ok(Value::from_file(cache, self.stored(i, row).load(session, &file.sst.file)?))
            }
        }
    }

    /// All parts. Parts that lie outside their pages are read together. A step.
    pub(super) fn load_all(&self) -> Result<Parts, Stop> {
        let RowLoader { session, wanted, .. } = self.loader;
        match &self.spot {
            Spot::Found(FoundRow::Memory(row)) => Ok(wanted.of_memory(row)),
            Spot::Found(FoundRow::File(row, file)) => {
                wanted.load(session.cache(), |i| self.stored(i, row).load(session, &file.sst.file))
            }
            Spot::InPage(..) => Ok(Parts::of((0..wanted.len()).map(|i| {
                let (page, place) = self.in_page(i);
                Value::from_page(session.cache(), page, place)
            }))),
            Spot::Copied(value) => {
                Ok(Parts::of((0..wanted.len()).map(|i| Value::copied(&value[wanted.place(i, value)]))))
            }
        }
    }
}

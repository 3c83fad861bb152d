//! A table seen through some of its column groups. It knows which parts of rows a read gives; `read/` finds them.

use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::core::snapshots::PinnedVersion;
use crate::handle::index::Index;
use crate::handle::snapshot::Snapshot;
use crate::handle::table::Table;
use crate::indexes::read::RangeBy;
use crate::read::{PartCursor, PartRange, PartScan, Reader, Tried};
use crate::view::part_list::PartList;
use crate::view::precharge::Prefetched;
use crate::view::value::{Key, Parts};
use os::sync::Arc;
use sst::{Direction, Limits};

/// A table seen through some of its column groups, made by [`Table::select`]. Cloning is cheap.
///
/// A read gives the parts of a row in the order in which the groups were named, and reads no page of other groups. The
/// first group of the table lies with the keys; the parts in other groups are found after the key, all together. A
/// selection of no group reads keys only.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// let groups = ["name", "life", "portrait"].map(str::to_owned).to_vec();
/// let people = db.table_with("people", larch::TableOptions { groups, ..Default::default() })?;
/// people.insert_parts("ada", &["Ada Lovelace", "1815-1852", "a large picture"])?;
/// people.insert_parts("alan", &["Alan Turing", "1912-1954", "another one"])?;
///
/// let names = people.select(["name"])?;
/// let ada = names.get("ada")?.expect("she is there");
/// assert_eq!(ada[0][..], *b"Ada Lovelace");
///
/// // Two of the three groups, in this order; no picture is read.
/// for row in people.select(["life", "name"])?.range("a".."b") {
///     let (_, parts) = row?;
///     println!("{}: {}", parts[1].escape_ascii(), parts[0].escape_ascii());
/// }
///
/// let snapshot = db.snapshot();
/// people.remove("ada")?;
/// assert!(names.get("ada")?.is_none());
/// assert!(names.at(&snapshot)?.get("ada")?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    table: Table,
    wanted: PartList,
    /// Keeps the version of the snapshot. `None`: each read sees the newest version.
    pin: Option<Arc<PinnedVersion>>,
}

impl Table {
    /// The table seen through some of its column groups, in this order. Without groups, reads give keys only.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchGroup`] if the table does not have a group of this name, [`Error::GroupTwice`] if a group is
    /// named twice.
    pub fn select(&self, groups: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Selection> {
        let names = &self.identity().options.groups;
        let mut wanted = PartList::nothing(names.len());
        for group in groups {
            let group = group.as_ref();
            let number = names.iter().position(|name| name == group).ok_or_else(|| Error::NoSuchGroup {
                table: self.name().to_owned(),
                group: group.to_owned(),
                groups: names.clone(),
            })?;
            wanted = wanted
                .with(number)
                .ok_or_else(|| Error::GroupTwice { table: self.name().to_owned(), group: group.to_owned() })?;
        }
        Ok(Selection::new(self.clone(), wanted))
    }
}

impl Selection {
    pub(crate) fn new(table: Table, wanted: PartList) -> Self {
        Self { table, wanted, pin: None }
    }

    /// The same groups as `snapshot` shows them. The snapshot is kept as long as the result lives.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the snapshot is of another database than the table.
    pub fn at(&self, snapshot: &Snapshot) -> Result<Self> {
        let pin = snapshot.pin_of(&self.table)?.clone();
        Ok(Self { pin: Some(pin), ..self.clone() })
    }

    /// What keeps the version of the snapshot, if the selection is of one.
    pub(crate) fn pinned(&self) -> Option<&Arc<PinnedVersion>> {
        self.pin.as_ref()
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn wanted(&self) -> &PartList {
        &self.wanted
    }

    /// What reads it.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(self.table.inner(), self.pin.as_ref(), self.wanted)
    }

    /// The parts of the row `key`, or `None` if there is no such row. Parts that are in memory are not copied.
    ///
    /// # Errors
    ///
    /// As [`Table::get`], without [`Error::Grouped`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Parts>> {
        self.reader().get(key.as_ref())
    }

    /// As [`Selection::get`], but only with what is in memory, see [`Table::try_get`].
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn try_get(&self, key: impl AsRef<[u8]>) -> Result<Tried<Option<Parts>>> {
        self.reader().try_get(key.as_ref())
    }

    /// As [`Selection::get`], as a future, see [`Table::get_async`].
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub async fn get_async(&self, key: impl AsRef<[u8]>) -> Result<Option<Parts>> {
        self.reader().get_async(key.as_ref()).await
    }

    /// Whether there is a row `key`. No part of it is read.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader().contains_key(key.as_ref())
    }

    /// As [`Selection::contains_key`], but only with what is in memory, see [`Table::try_get`].
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn try_contains_key(&self, key: impl AsRef<[u8]>) -> Result<Tried<bool>> {
        self.reader().try_contains_key(key.as_ref())
    }

    /// As [`Selection::contains_key`], as a future, see [`Table::get_async`].
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub async fn contains_key_async(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader().contains_key_async(key.as_ref()).await
    }

    /// The parts of the rows `keys`, in the order of the keys, all as of one moment. The keys are looked up together,
    /// see [`Table::multi_get`].
    ///
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Parts>>> {
        self.reader().multi_get(&Vec::from_iter(keys))
    }

    /// As [`Selection::multi_get`], as a future, see [`Table::get_async`].
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn multi_get_async<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> impl Future<Output = Result<Vec<Option<Parts>>>> {
        let keys = Vec::from_iter(keys);
        async move { self.reader().multi_get_async(&keys).await }
    }

    /// Loads what reading `range` from its start will need, without other groups, see [`Table::prefetch`].
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn prefetch(&self, range: impl IntoKeyRange, limits: Limits) -> Result<Prefetched> {
        self.reader().prefetch(bounds::owned(&range), limits, Direction::Forward, self.wanted.set())
    }

    /// As [`Selection::prefetch`], for reading from the end of `range`.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn prefetch_back(&self, range: impl IntoKeyRange, limits: Limits) -> Result<Prefetched> {
        self.reader().prefetch(bounds::owned(&range), limits, Direction::Backward, self.wanted.set())
    }

    /// The rows with keys in `range`, as of now or of the snapshot, in the order of the keys, from either end. See
    /// [`Table::range`].
    pub fn range(&self, range: impl IntoKeyRange) -> PartRange {
        self.reader().range(bounds::owned(&range))
    }

    /// The rows that have this key in `index`, which is one of the table.
    ///
    /// # Errors
    ///
    /// As [`Index::get_by`].
    pub fn get_by(&self, index: &Index, index_key: impl AsRef<[u8]>) -> Result<Vec<(Key, Parts)>> {
        index.get_in(&self.reader(), index_key.as_ref())
    }

    /// The rows whose keys in `index` are in `range`, in the order of the index, from either end. See [`Index::range_by`].
    pub fn range_by(&self, index: &Index, range: impl IntoKeyRange) -> RangeBy<Parts> {
        index.range_in(&self.reader(), &range)
    }

    /// As [`Selection::range`], for futures, see [`Table::scan_async`].
    pub fn scan_async(&self, range: impl IntoKeyRange) -> PartScan {
        self.range(range).into()
    }

    /// The rows whose keys begin with `prefix`, see [`Table::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> PartRange {
        self.reader().range(bounds::of_prefix(prefix.as_ref()))
    }

    /// All rows.
    pub fn iter(&self) -> PartRange {
        self.range(..)
    }

    /// A cursor over all rows, as of now or of the snapshot, see [`Table::cursor`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let groups = ["name", "life"].map(str::to_owned).to_vec();
    /// let people = db.table_with("people", larch::TableOptions { groups, ..Default::default() })?;
    /// people.insert_parts("ada", &["Ada Lovelace", "1815-1852"])?;
    /// let mut cursor = people.select(["life", "name"])?.cursor();
    /// assert!(cursor.seek("a")?);
    /// assert_eq!(cursor.part(1), Some(&b"Ada Lovelace"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cursor(&self) -> PartCursor {
        self.cursor_in(..)
    }

    /// A cursor over the rows with keys in `range`, see [`Table::cursor_in`].
    pub fn cursor_in(&self, range: impl IntoKeyRange) -> PartCursor {
        self.reader().cursor(bounds::owned(&range))
    }

    /// The row with the least key, or `None` if there is no row.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn first_key_value(&self) -> Result<Option<(Key, Parts)>> {
        self.iter().next().transpose()
    }

    /// The row with the greatest key, or `None` if there is no row.
    ///
    /// # Errors
    ///
    /// As [`Selection::get`].
    pub fn last_key_value(&self) -> Result<Option<(Key, Parts)>> {
        self.iter().next_back().transpose()
    }
}

//! Creates, finds and drops the indexes of a [`Table`]. The work is done in `index_build`.

use super::index::Index;
use super::index_build as build;
use super::index_build::NewIndex;
use super::table::Table;
use crate::base::error::{Error, Result};
use crate::base::extractors::{BY_CLOSURE, ByClosure, IndexKeys};
use crate::base::table::IndexState;
use crate::base::watch::{GoOn, Progress, Watch};
use os::sync::Arc;

/// Options of a new index, see [`Table::create_index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexOptions {
    /// Whether the index forbids two rows with the same index key. The default is false.
    pub unique: bool,
}

impl Table {
    /// Creates the index `name`, and returns when it has the entries of all rows.
    ///
    /// `declaration` says how the keys of the index are made from a row. The engine stores it and passes it to the
    /// [extractors](crate::Builder::extractors) of the program, but does not interpret it. `watch` is told how many
    /// rows have entries so far, and decides whether the build goes on. If it ends the build, the index is dropped.
    ///
    /// Writes to the table go on during the call, but take longer: from its start, each write also reads the row
    /// that it replaces, and its commit updates the entries that change. A write that the index cannot accept is
    /// refused from then on, even if the build fails later. A table with an index cannot be cloned or split, and
    /// takes no imports.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use larch::Database;
    /// use larch::index::{IndexKeys, IndexOptions};
    ///
    /// /// Makes one key of the first letter of the value.
    /// struct Initial;
    ///
    /// impl IndexKeys for Initial {
    ///     fn groups(&self) -> &[usize] {
    ///         &[0]
    ///     }
    ///
    ///     fn index_keys<'r>(
    ///         &self,
    ///         _key: &'r [u8],
    ///         part: &dyn Fn(usize) -> Option<&'r [u8]>,
    ///         emit: &mut dyn FnMut(&[u8]),
    ///     ) -> Result<(), String> {
    ///         emit(part(0).and_then(|value| value.get(..1)).ok_or("the value is empty")?);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let extractors = |declaration: &[u8]| match declaration {
    ///     b"initial" => Ok(Box::new(Initial) as Box<dyn IndexKeys>),
    ///     _ => Err("it is not `initial`".to_owned()),
    /// };
    /// let db = Database::builder(&directory).extractors(extractors).open()?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let by_initial = fruit.create_index("by_initial", b"initial", &IndexOptions::default(), |_| {})?;
    /// fruit.insert("cherry", "rosy")?;
    /// fruit.insert("banana", "yellow")?;
    /// let rows = by_initial.get_by("r")?;
    /// assert_eq!(rows.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(), [&b"apple"[..], b"cherry"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// After an error, the table does not have the index: what was built so far is dropped. If the drop fails, too,
    /// for example because the disk is full, writes go on updating the index until it is dropped: by
    /// [`Table::drop_index`], when another index is created, or by the next open.
    ///
    /// * [`Error::IndexExists`] if the table has an index of this name; [`Error::BadIndexName`] if no index can
    ///   have this name; [`Error::TableDropped`] if the table was dropped; [`Error::NoExtractor`] if no extractor
    ///   is registered for the declaration.
    /// * [`Error::Duplicate`], [`Error::BadRow`] or [`Error::IndexKeyTooLong`] if the index cannot accept a row.
    /// * [`Error::BadOptions`] if the database was opened with [`compat`](crate::Builder::compat) for a release
    ///   without indexes; [`Error::Cancelled`] if `watch` ends the build.
    /// * All errors of [`Table::get`](crate::Reader::get) and [`Table::insert`].
    pub fn create_index<G: GoOn>(
        &self,
        name: &str,
        declaration: impl AsRef<[u8]>,
        options: &IndexOptions,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<Index> {
        let new = NewIndex { name, declaration: declaration.as_ref(), closure: None, is_unique: options.unique };
        let watch = Watch::new(build::WORK, watch);
        let entries = build::create(&self.inner().handle, self.identity(), &new, &watch)?;
        Ok(Index::new(self, entries))
    }

    /// Returns the index `name`, whose keys the closure `keys` makes from the key and the value of each row: it
    /// calls the function in its last argument with each index key. If the index does not exist, this call creates
    /// it like [`Table::create_index`], and returns when the index has the entries of all rows.
    ///
    /// The database cannot store the closure, only that there is one. So a program must call this after **every**
    /// open, before it writes to the table, always with a closure that makes the same keys. Until then, writes fail
    /// with [`Error::NoClosure`], but reads work. Once called, the index uses that closure until the database is
    /// closed. To change what the closure does, first drop the index. If several programs write to the table,
    /// [create](Table::create_index) the index with a declaration instead, and register
    /// [extractors](crate::Builder::extractors) for it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::open(&directory)?;
    /// let people = db.table("people")?;
    /// let by_city = people.index_by("by_city", |_name, city, emit| emit(city))?;
    /// people.insert("ada", "London")?;
    /// people.insert("emmy", "Erlangen")?;
    /// people.insert("mary", "London")?;
    /// let londoners = by_city.get_by("London")?;
    /// assert_eq!(londoners.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), [&b"ada"[..], b"mary"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::IndexExists`] if an index of this name has a declaration or is unique.
    /// * [`Error::Grouped`] if the values of the table are split into several column groups.
    /// * [`Error::IndexNotReady`] while another thread is creating the index; [`Error::TableDropped`] if the table
    ///   was dropped.
    /// * If this call creates the index, it also fails as [`Table::create_index`] does.
    pub fn index_by(
        &self,
        name: &str,
        keys: impl Fn(&[u8], &[u8], &mut dyn FnMut(&[u8])) + Send + Sync + 'static,
    ) -> Result<Index> {
        self.index_by_with(name, &IndexOptions::default(), keys)
    }

    /// Like [`Table::index_by`], but with `options`, for example for a unique index. Fails with
    /// [`Error::IndexExists`] if the index exists with other options.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::index_by`] does.
    pub fn index_by_with(
        &self,
        name: &str,
        options: &IndexOptions,
        keys: impl Fn(&[u8], &[u8], &mut dyn FnMut(&[u8])) + Send + Sync + 'static,
    ) -> Result<Index> {
        self.inner().check_whole()?;
        let (core, keys): (_, Arc<dyn IndexKeys>) = (self.core(), Arc::new(ByClosure(keys)));
        let Some(entries) = build::named(core, self.identity(), name) else {
            let new = NewIndex { name, declaration: BY_CLOSURE, closure: Some(&keys), is_unique: options.unique };
            let watch = Watch::new(build::WORK, |_| {});
            let entries = build::create(&self.inner().handle, self.identity(), &new, &watch)?;
            return Ok(Index::new(self, entries));
        };
        let found = entries.index.as_ref().expect("it is the table of an index");
        if found.declaration != BY_CLOSURE || found.is_unique != options.unique {
            return Err(Error::IndexExists { table: self.name().into(), index: name.into() });
        }
        core.indexes.register(self.id(), found.id, &keys);
        self.index(name)
    }

    /// The index `name`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchIndex`] if the table has no such index; [`Error::IndexNotReady`] if the index is still being
    /// built; [`Error::TableDropped`] if the table was dropped.
    pub fn index(&self, name: &str) -> Result<Index> {
        self.core().views.newest().files_of(self.identity())?;
        let names = || (self.name().into(), name.into());
        let Some(entries) = build::named(self.core(), self.identity(), name) else {
            let (table, index) = names();
            return Err(Error::NoSuchIndex { table, index });
        };
        let index = Index::new(self, entries);
        if index.info().state == IndexState::Building {
            let (table, index) = names();
            return Err(Error::IndexNotReady { table, index });
        }
        Ok(index)
    }

    /// The names of the indexes of the table, sorted. Indexes that are still being built are not listed.
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`] if the table was dropped after this handle was made.
    pub fn indexes(&self) -> Result<Vec<String>> {
        let view = self.core().views.newest();
        view.files_of(self.identity())?;
        let indexes = view.files.tables.indexes_of(self.id()).filter_map(|files| files.info.index.as_ref());
        let ready = indexes.filter(|index| index.state == IndexState::Ready);
        let mut names: Vec<String> = ready.map(|index| index.name.clone()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Drops the index `name`. Returns false if the table has no such index. Older snapshots cannot use the index
    /// any more, and reads by the index that have already begun fail with [`Error::TableDropped`].
    ///
    /// # Errors
    ///
    /// [`Error::Log`] if the manifest cannot be written; the index still exists then. If the database takes no
    /// writes, the call fails like [`Table::insert`].
    pub fn drop_index(&self, name: &str) -> Result<bool> {
        build::drop_index(self.core(), self.identity(), name)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

//! Creates, finds and drops the indexes of a table. This module turns arguments into calls, and does no work itself.

use super::index::Index;
use super::index_build as build;
use super::index_build::NewIndex;
use super::table::Table;
use crate::base::error::{Error, Result};
use crate::base::extractors::{BY_CLOSURE, ByClosure, IndexKeys};
use crate::base::table::IndexState;
use crate::base::watch::{GoOn, Progress, Watch};
use os::sync::Arc;

/// How an index is created, see [`Table::create_index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexOptions {
    /// Whether two rows may not have the same key in the index. Default false.
    pub unique: bool,
}

impl Table {
    /// Creates the index `name`, and returns when it has the entries of all rows. Writes go on meanwhile, but take
    /// longer. From the beginning, a write that the index cannot have is refused, even if the index never becomes
    /// ready.
    ///
    /// `declaration` says what the keys of the index are made of. The engine stores it and gives it to the
    /// [extractors](crate::Builder::extractors) of the program, but does not look at it itself. `watch` sees how
    /// many rows have entries, and says whether the build goes on. If it ends the build, the index is dropped.
    ///
    /// From now on a write to the table also reads the row that it replaces. It writes the entries that differ in
    /// the same commit. As long as the table has an index, it cannot be cloned or split, and takes no import.
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
    /// After an error the table has no such index: what was built is dropped. If that fails, too, as on a full disk,
    /// writes keep the index. It is then dropped by [`Table::drop_index`], when another index is created, or when
    /// the database is opened again.
    ///
    /// * [`Error::IndexExists`], [`Error::BadIndexName`]; [`Error::TableDropped`]. [`Error::NoExtractor`] if nothing
    ///   makes its keys.
    /// * [`Error::Duplicate`], [`Error::BadRow`] or [`Error::IndexKeyTooLong`] for a row that the index cannot have.
    /// * [`Error::BadOptions`] if the database was opened with [`compat`](crate::Builder::compat) for a release without
    ///   indexes.
    /// * The errors of [`Table::get`](crate::Reader::get) and [`Table::insert`].
    pub fn create_index<G: GoOn>(
        &self,
        name: &str,
        declaration: impl AsRef<[u8]>,
        options: &IndexOptions,
        mut watch: impl FnMut(Progress) -> G,
    ) -> Result<Index> {
        let new = NewIndex { name, declaration: declaration.as_ref(), closure: None, is_unique: options.unique };
        let mut goes_on = |progress| watch(progress).goes_on();
        let watch = Watch::new(build::WORK, &mut goes_on);
        let entries = build::create(&self.inner().handle, self.identity(), &new, &watch)?;
        Ok(Index::new(self, entries))
    }

    /// The index `name`, whose keys are made by `keys` from the key and the value of each row. `keys` gives each
    /// index key to its last argument. If the table has no index of this name, it is created, see
    /// [`Table::create_index`], and the entries of all rows are made before this returns.
    ///
    /// The database remembers that a closure makes the keys, but cannot remember the closure. So a program calls
    /// this after **every** open, before it writes to the table, with a closure that does the same. Until then
    /// writes fail with [`Error::NoClosure`], and reads go on. To change the closure, drop the index first. While
    /// the database is open, the closure that was given first counts. If other programs also write the index,
    /// [create](Table::create_index) it with a declaration, and register [extractors](crate::Builder::extractors)
    /// for this declaration.
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
    /// * [`Error::IndexExists`] if an index of this name has a declaration, or is unique.
    /// * [`Error::Grouped`] if the values of the table are split into several column groups.
    /// * [`Error::IndexNotReady`] while another thread creates it; [`Error::TableDropped`].
    /// * If it is created, the errors of [`Table::create_index`].
    pub fn index_by(
        &self,
        name: &str,
        keys: impl Fn(&[u8], &[u8], &mut dyn FnMut(&[u8])) + Send + Sync + 'static,
    ) -> Result<Index> {
        self.index_by_with(name, &IndexOptions::default(), keys)
    }

    /// As [`Table::index_by`], with `options`: an index may be unique. [`Error::IndexExists`] if the index was
    /// created with other options.
    ///
    /// # Errors
    ///
    /// As [`Table::index_by`].
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
            let mut goes_on = |_| true;
            let watch = Watch::new(build::WORK, &mut goes_on);
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
    /// [`Error::NoSuchIndex`] if no such index exists; [`Error::IndexNotReady`] while it is being built;
    /// [`Error::TableDropped`].
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

    /// The names of the indexes of the table, sorted. Indexes that are being built are left out.
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

    /// Drops the index `name`. Snapshots lose it, too. False if no such index exists. Reads by the index that are
    /// under way end with [`Error::TableDropped`].
    ///
    /// # Errors
    ///
    /// [`Error::Log`] if the manifest cannot be written; the index is there still. Otherwise the errors of
    /// [`Table::insert`] that say that the database takes no writes.
    pub fn drop_index(&self, name: &str) -> Result<bool> {
        build::drop_index(self.core(), self.identity(), name)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

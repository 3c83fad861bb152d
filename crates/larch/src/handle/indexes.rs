//! Creates, finds and drops the indexes of a table. It turns arguments into what does the work, and does none itself.

use super::index::Index;
use super::index_build as build;
use super::index_build::NewIndex;
use super::table::Table;
use crate::base::error::{Error, Result};
use crate::base::table::IndexState;
use crate::base::watch::{GoOn, Progress, Watch};

/// How an index is created, see [`Table::create_index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexOptions {
    /// Whether two rows may not have the same key in the index. Default false.
    pub unique: bool,
}

impl Table {
    /// Creates the index `name`, and returns when it has the entries of all rows. Writes go on meanwhile. They take
    /// longer, and a write that the index cannot have is refused from the beginning, also if the index does not become
    /// ready.
    ///
    /// What the keys of the index are made of is said by `declaration`. The engine stores it and gives it to the
    /// [extractors](crate::Builder::extractors) of the program; it does not look at it itself. `watch` sees how
    /// many rows have entries, and says whether to go on; an index whose building it ends is dropped.
    ///
    /// From now on a write to the table also reads the row that it replaces, and writes the entries that differ, in the
    /// same commit. The table cannot be cloned or split, and takes no import, as long as it has an index.
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
    /// writes keep the index until [`Table::drop_index`] drops it, or another index is created, or the database is
    /// opened again.
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
        let new = NewIndex { name, declaration: declaration.as_ref(), is_unique: options.unique };
        let mut goes_on = |progress| watch(progress).goes_on();
        let watch = Watch::new(build::WORK, &mut goes_on);
        let entries = build::create(&self.inner().handle, self.identity(), &new, &watch)?;
        Ok(Index::new(self, entries))
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

    /// The names of the indexes of the table, sorted, without those that are being built.
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

    /// Drops the index `name`, also for snapshots. False if no such index exists. Reads by the index that are under way
    /// end with [`Error::TableDropped`].
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

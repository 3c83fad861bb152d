//! Selections: readers of some column groups of a table. `read/` finds the parts.

use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::error::{Error, Result};
use crate::read::{Content, Reader};
use crate::view::part_list::PartList;
use crate::view::value::Parts;

/// A reader of some column groups of a table. [`Table::select`] returns one. Cloning it is cheap.
///
/// A read returns the parts of a row in the order in which the groups were named, and reads no pages of other
/// groups. The first group of the table is stored beside the keys. When the key is found, the pages of all other
/// selected groups are read at the same time. A selection without groups reads only keys.
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
pub type Selection = Reader<'static, Parts>;

impl Table {
    /// Selects these column groups, in this order. Without groups, reads return only keys.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchGroup`] if the table has no group of a given name; [`Error::GroupTwice`] if a group is named
    /// twice.
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
        Ok(Selection::keeping(self.inner().clone(), None, wanted))
    }
}

impl<V: Content> Reader<'static, V> {
    /// The same reader, but at `snapshot`. The rows that the snapshot shows are kept while the new reader exists.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the snapshot and the table belong to different databases.
    pub fn at(&self, snapshot: &Snapshot) -> Result<Self> {
        let pin = snapshot.pin_of(self)?.clone();
        Ok(Self::keeping(self.handle().clone(), Some(pin), *self.wanted()))
    }
}

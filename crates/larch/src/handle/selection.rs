//! A table of which only some column groups are read. This module knows which parts of a row a read returns. `read/`
//! finds these parts.

use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::error::{Error, Result};
use crate::read::{Content, Reader};
use crate::view::part_list::PartList;
use crate::view::value::Parts;

/// A table of which only some column groups are read. [`Table::select`] returns a selection. Cloning a selection
/// is cheap. It has all functions of a [`Reader`].
///
/// A read returns the parts of a row in the order in which the groups were named. It reads no pages of other
/// groups. The parts of the table's first group are stored beside the keys. When the key is found, the pages with
/// its parts in the other named groups are read at the same time. A selection without groups reads only keys.
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
    /// A selection of these column groups, in this order. Without groups, reads return only keys.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchGroup`] if the table does not have a group of this name; [`Error::GroupTwice`] if a group is
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
        Ok(Selection::keeping(self.inner().clone(), None, wanted))
    }
}

impl<V: Content> Reader<'static, V> {
    /// The same selection, but reads of it see the rows that `snapshot` shows. These rows are kept as long as the
    /// new selection exists.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the snapshot and the table belong to different databases.
    pub fn at(&self, snapshot: &Snapshot) -> Result<Self> {
        let pin = snapshot.pin_of(self)?.clone();
        Ok(Self::keeping(self.handle().clone(), Some(pin), *self.wanted()))
    }
}

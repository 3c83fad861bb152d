//! The tables of a file set, by id and by name, in persistent maps: copying them only changes a few reference
//! counts, copies share what is equal, and changing a table takes time logarithmic in the number of tables. This
//! module does not know edits.
//!
//! Invariant: `names`, `indexes` and `level0` describe exactly the tables in `tables`.

use super::table_files::TableFiles;
use crate::base::table::TableId;
use archery::ArcK;
use rpds::{RedBlackTreeMap, RedBlackTreeSet};
use std::ops::Index;

/// Tables by id.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    tables: RedBlackTreeMap<TableId, TableFiles, ArcK>,
    /// The tables that can be opened by name: all tables except indexes.
    names: RedBlackTreeMap<String, TableId, ArcK>,
    /// Pairs of a table and one of its indexes.
    indexes: RedBlackTreeSet<(TableId, TableId), ArcK>,
    /// The tables that have files in level 0, ordered by the number of these files.
    level0: RedBlackTreeSet<(usize, TableId), ArcK>,
}

impl Tables {
    /// The table `id`.
    pub fn get(&self, id: &TableId) -> Option<&TableFiles> {
        self.tables.get(id)
    }

    /// The table with this name.
    pub fn named(&self, name: &str) -> Option<&TableFiles> {
        self.tables.get(self.names.get(name)?)
    }

    /// Whether the table `id` exists.
    pub fn contains_key(&self, id: &TableId) -> bool {
        self.tables.contains_key(id)
    }

    /// All tables, by id.
    pub fn values(&self) -> impl Iterator<Item = &TableFiles> {
        self.tables.values()
    }

    /// All ids, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &TableId> {
        self.tables.keys()
    }

    /// The names of all tables except indexes, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The tables with the entries of the indexes of `table`, ordered by id.
    pub fn indexes_of(&self, table: TableId) -> impl Iterator<Item = &TableFiles> {
        let indexes = self.indexes.range((table, TableId(0))..=(table, TableId(u32::MAX)));
        indexes.filter_map(|(_, index)| self.tables.get(index))
    }

    /// The tables with the entries of all indexes.
    pub fn indexes(&self) -> impl Iterator<Item = &TableFiles> {
        self.indexes.iter().filter_map(|(_, index)| self.tables.get(index))
    }

    /// The greatest number of files that a table has in level 0.
    pub fn most_level0_files(&self) -> usize {
        self.level0.last().map_or(0, |(files, _)| *files)
    }

    /// Adds a table without files.
    pub fn insert(&mut self, table: TableFiles) {
        assert!(table.levels[0].is_empty(), "a table begins without files");
        match &table.info.index {
            None => self.names.insert_mut(table.info.name.clone(), table.info.id),
            Some(index) => self.indexes.insert_mut((index.table, index.id)),
        }
        self.tables.insert_mut(table.info.id, table);
    }

    /// Removes a table and returns it.
    pub fn remove(&mut self, id: &TableId) -> Option<TableFiles> {
        let table = self.tables.get(id)?.clone();
        self.tables.remove_mut(id);
        // Keep the name if edits have given it to another table before they drop this one.
        if self.names.get(&table.info.name) == Some(id) {
            self.names.remove_mut(&table.info.name);
        }
        if let Some(index) = &table.info.index {
            self.indexes.remove_mut(&(index.table, *id));
        }
        self.level0.remove_mut(&(table.levels[0].len(), *id));
        Some(table)
    }

    /// Changes a table, but not its name; `None` if the table does not exist.
    pub fn change<T>(&mut self, id: &TableId, change: impl FnOnce(&mut TableFiles) -> T) -> Option<T> {
        let table = self.tables.get_mut(id)?;
        let owner = |table: &TableFiles| table.info.index.as_ref().map(|index| index.table);
        let (before, owner_before) = (table.levels[0].len(), owner(table));
        let outcome = change(table);
        let (after, owner_after) = (table.levels[0].len(), owner(table));
        if before != after {
            self.level0.remove_mut(&(before, *id));
            if after > 0 {
                self.level0.insert_mut((after, *id));
            }
        }
        if let (Some(before), Some(after)) = (owner_before, owner_after)
            && before != after
        {
            self.indexes.remove_mut(&(before, *id));
            self.indexes.insert_mut((after, *id));
        }
        Some(outcome)
    }
}

impl Index<&TableId> for Tables {
    type Output = TableFiles;

    fn index(&self, id: &TableId) -> &TableFiles {
        self.get(id).expect("the caller knows the table")
    }
}

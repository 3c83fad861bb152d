//! Whether the ops of a commit include their changes of indexes. This file does not know the indexes.

use crate::base::conflict::Conflict;
use crate::base::table::TableInfo;
use crate::core::registry::Registry;
use os::sync::Arc;

/// Whether the ops of a commit include their changes of indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// They include no changes of indexes, so they are right only for tables without indexes.
    Not,
    /// They include the changes for the indexes of this [generation](Registry::generation).
    As(u64),
}

impl Indexed {
    /// Refuses ops on `tables` that do not include their changes of the present indexes. The caller holds the lock
    /// of the writer, under which indexes are created and dropped.
    ///
    /// # Errors
    ///
    /// [`Conflict::Indexes`].
    pub fn check(self, indexes: &Registry, tables: &[Arc<TableInfo>]) -> Result<(), Conflict> {
        let other = match self {
            Self::Not => tables.iter().find(|table| indexes.has(table.id)),
            Self::As(generation) if generation == indexes.generation() => None,
            Self::As(_) => tables.first(),
        };
        other.map_or(Ok(()), |table| Err(Conflict::Indexes { table: table.name.clone() }))
    }
}

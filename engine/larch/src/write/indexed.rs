//! Records whether the ops of a commit include the changes that they cause in indexes. This module does not know
//! the indexes.

use crate::base::conflict::Conflict;
use crate::base::table::TableInfo;
use crate::core::registry::Registry;
use os::sync::Arc;

/// Whether the ops of a commit include the changes that they cause in indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// The ops include no changes of indexes. They can be committed only to tables without indexes.
    Not,
    /// The ops include the changes for all indexes that existed at this [generation](Registry::generation).
    As(u64),
}

impl Indexed {
    /// Returns a conflict if ops on `tables` lack the changes for indexes that exist now. The caller must hold the
    /// writer's lock, under which indexes are created and dropped.
    ///
    /// # Errors
    ///
    /// [`Conflict::Indexes`] if changes are missing.
    pub fn check(self, indexes: &Registry, tables: &[Arc<TableInfo>]) -> Result<(), Conflict> {
        let other = match self {
            Self::Not => tables.iter().find(|table| indexes.has(table.id)),
            Self::As(generation) if generation == indexes.generation() => None,
            Self::As(_) => tables.first(),
        };
        other.map_or(Ok(()), |table| Err(Conflict::Indexes { table: table.name.clone() }))
    }
}

//! An op on a table may also cause changes in the indexes of the table. The type in this module says whether the
//! ops of a commit include these changes. This module does not know the indexes.

use crate::base::conflict::Conflict;
use crate::base::table::TableInfo;
use crate::core::registry::Registry;
use os::sync::Arc;

/// Says whether the ops of a commit include the changes that they cause in indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// The ops include no changes of indexes. Such ops can be committed only on tables without indexes.
    Not,
    /// The ops include the changes for all indexes that existed at this [generation](Registry::generation).
    As(u64),
}

impl Indexed {
    /// Returns a conflict if ops on `tables` do not include the changes for the indexes that exist now. The caller
    /// must hold the lock of the writer, because indexes are created and dropped under this lock.
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

//! The two kinds of databases that RocksDB opens: with transactions and without. What both do is done by [`on_db!`]. It
//! does not know how they are set.

use rocksdb::{ColumnFamilyDescriptor, DB, Error, OptimisticTransactionDB, Options};
use std::path::Path;

/// An open database.
pub enum Db {
    /// Without transactions.
    Plain(DB),
    /// Transactions lock nothing, and find conflicts at their commit. The database keeps flushed rows in memory for a
    /// while, to find conflicts with them.
    Optimistic(OptimisticTransactionDB),
}

impl Db {
    /// Opens the database in `place` with one column family.
    pub fn open(
        optimistic: bool,
        options: &Options,
        place: &Path,
        family: ColumnFamilyDescriptor,
    ) -> Result<Self, Error> {
        Ok(match optimistic {
            false => Self::Plain(DB::open_cf_descriptors(options, place, [family])?),
            true => Self::Optimistic(OptimisticTransactionDB::open_cf_descriptors(options, place, [family])?),
        })
    }
}

/// Does `$call` on the database `$db`, whichever kind it is: `on_db!(&self.db, db => db.flush())`.
macro_rules! on_db {
    ($db:expr, $name:ident => $call:expr) => {
        match $db {
            $crate::db::Db::Plain($name) => $call,
            $crate::db::Db::Optimistic($name) => $call,
        }
    };
}

pub(crate) use on_db;

//! A RocksDB database with or without transactions. The macro [`on_db!`] calls what both kinds have in common. This
//! module does not know the database's settings.

use rocksdb::{ColumnFamilyDescriptor, DB, Error, OptimisticTransactionDB, Options};
use std::path::Path;

/// An open database.
pub enum Db {
    /// Without transactions.
    Plain(DB),
    /// With optimistic transactions, which take no locks and detect conflicts at commit. For this check, the
    /// database keeps flushed rows in memory for a while.
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

/// Evaluates `$call` on the database in `$db`, whichever kind it is: `on_db!(&self.db, db => db.flush())`.
macro_rules! on_db {
    ($db:expr, $name:ident => $call:expr) => {
        match $db {
            $crate::rocksdb::db::Db::Plain($name) => $call,
            $crate::rocksdb::db::Db::Optimistic($name) => $call,
        }
    };
}

pub(crate) use on_db;

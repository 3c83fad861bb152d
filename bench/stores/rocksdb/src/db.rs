//! The two kinds of databases that RocksDB opens: with transactions and without. The macro [`on_db!`] does what
//! both kinds can do. This module does not know the databases' settings.

use rocksdb::{ColumnFamilyDescriptor, DB, Error, OptimisticTransactionDB, Options};
use std::path::Path;

/// An open database.
pub enum Db {
    /// Without transactions.
    Plain(DB),
    /// Transactions lock nothing. They find conflicts when they commit. To find conflicts with flushed rows, the
    /// database keeps these rows in memory for a while.
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
            $crate::db::Db::Plain($name) => $call,
            $crate::db::Db::Optimistic($name) => $call,
        }
    };
}

pub(crate) use on_db;

//! A consistent view of a database.

use super::Db;
use super::families::{Families, parts_of};
use crate::rocksdb::broken;
use ::tpcc::encoding::warehouse_key;
use ::tpcc::{ReadRows, Row, Table, TableRow};
use harness::Failure;
use rocksdb::{PrefixRange, ReadOptions, SnapshotWithThreadMode};

/// A snapshot of all tables.
pub struct Snapshot<'l> {
    families: Families<'l>,
    snapshot: SnapshotWithThreadMode<'l, Db>,
}

impl<'l> Snapshot<'l> {
    /// A snapshot of the database as it is now.
    pub fn new(db: &'l Db) -> Result<Self, Failure> {
        Ok(Self { families: Families::of(db)?, snapshot: db.snapshot() })
    }
}

impl ReadRows for Snapshot<'_> {
    fn read<R: TableRow>(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut reads = ReadOptions::default();
        // A full scan should not evict other blocks from the cache.
        reads.fill_cache(false);
        if warehouse != 0 {
            let mut prefix = Vec::new();
            warehouse_key(warehouse, &mut prefix);
            reads.set_iterate_range(PrefixRange(prefix));
        }
        let mut found = self.snapshot.raw_iterator_cf_opt(self.families.table(table), reads);
        found.seek_to_first();
        let mut row = R::default();
        while let Some((key, value)) = found.item() {
            row.decode(key, parts_of(table, value)?)?;
            each(row.as_row())?;
            found.next();
        }
        found.status().map_err(broken)
    }
}

//! One thread's transactions. Each reads at a snapshot, and its commit fails if another transaction has written one
//! of its keys since. RocksDB checks this by looking up, among the rows in memory, each key that the transaction
//! wrote or read by `get_for_update`.
//!
//! This check makes the five transactions serializable. A writing transaction also writes all rows that it reads and
//! that others may change: districts, stock, orders with their lines, and the customers that pay or get a delivery.
//! From other rows it reads only columns that never change: items, names, a warehouse's tax, a customer's discount.
//! The exception is a delivery that finds no order in a district: it reads the district, which each new order
//! writes, by `get_for_update`. So when a writing transaction commits, nothing that it has read has changed since
//! its snapshot. Transactions that only read see their snapshot, the state between two commits.

use super::families::{Families, Family, parts_of, value_of};
use super::{Db, RocksDb};
use crate::rocksdb::broken;
use ::tpcc::encoding::{Decode, Encoded, Parts, number_of};
use ::tpcc::in_turn::{self, Engine, reads_only};
use ::tpcc::ordered::{Index, Kept, Ordered, RowsOf};
use ::tpcc::{Form, Table};
use harness::{Clock, Failure, Flights};
use rocksdb::{
    DBRawIteratorWithThreadMode, OptimisticTransactionOptions, PrefixRange, ReadOptions, Transaction, WriteOptions,
};
use std::ops::Range;

/// A session on `rocksdb`.
pub fn session<'l>(rocksdb: &'l RocksDb, form: &Form, clock: Clock) -> Result<Box<dyn Flights + 'l>, Failure> {
    let mut options = OptimisticTransactionOptions::default();
    options.set_snapshot(true);
    let transactions = Transactions {
        db: &rocksdb.db,
        families: Families::of(&rocksdb.db)?,
        options,
        writes: rocksdb.writes(),
        buffers: Buffers::default(),
        kept: Kept::default(),
    };
    // A commit blocks, so a thread has only one transaction under way.
    Ok(in_turn::session(transactions, form, 1, clock))
}

struct Transactions<'l> {
    db: &'l Db,
    families: Families<'l>,
    options: OptimisticTransactionOptions,
    writes: WriteOptions,
    buffers: Buffers,
    kept: Kept,
}

/// Buffers for a session's transactions.
#[derive(Default)]
struct Buffers {
    /// Read options with the snapshot of the current transaction.
    reads: ReadOptions,
    /// The value of a row of two parts, or an entry of an index.
    joined: Vec<u8>,
}

impl<'l> Engine for Transactions<'l> {
    type Open<'e>
        = RowsOf<'e, Open<'e>>
    where
        Self: 'e;

    fn begin(&mut self, transaction: ::tpcc::Transaction) -> Result<RowsOf<'_, Open<'_>>, Failure> {
        let tx = self.db.transaction_opt(&self.writes, &self.options);
        // The snapshot is owned by the transaction and lives as long as it does.
        self.buffers.reads.set_snapshot(&tx.snapshot());
        let reads_only = reads_only(transaction);
        let open = Open { tx, reads_only, families: &self.families, buffers: &mut self.buffers };
        Ok(RowsOf::new(open, &mut self.kept))
    }

    fn commit(open: RowsOf<'_, Open<'_>>) -> Result<(), Failure> {
        open.store.commit()
    }
}

/// An open transaction.
struct Open<'e> {
    tx: Transaction<'e, Db>,
    reads_only: bool,
    families: &'e Families<'e>,
    buffers: &'e mut Buffers,
}

impl Open<'_> {
    /// An iterator over the rows within `bounds`, not positioned yet.
    fn within(
        &self,
        family: &Family<'_>,
        bounds: impl rocksdb::IterateBounds,
    ) -> DBRawIteratorWithThreadMode<'_, Transaction<'_, Db>> {
        let mut reads = ReadOptions::default();
        reads.set_snapshot(&self.tx.snapshot());
        reads.set_iterate_range(bounds);
        self.tx.raw_iterator_cf_opt(family, reads)
    }
}

impl Ordered for Open<'_> {
    type Committed = ();

    fn get<R: Decode>(&mut self, table: Table, parts: Parts, key: &[u8], row: &mut R) -> Result<bool, Failure> {
        let found = self.tx.get_pinned_cf_opt(self.families.table(table), key, &self.buffers.reads).map_err(broken)?;
        let Some(value) = found else { return Ok(false) };
        row.decode(key, parts_of(table, &value)?.take(parts.most()))?;
        Ok(true)
    }

    fn put(&mut self, table: Table, row: &Encoded) -> Result<(), Failure> {
        let value = value_of(row, &mut self.buffers.joined);
        self.tx.put_cf(self.families.table(table), row.key(), value).map_err(broken)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.tx.delete_cf(self.families.table(table), key).map_err(broken)
    }

    fn range(
        &mut self,
        table: Table,
        keys: Range<Vec<u8>>,
        most: u64,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut found = self.within(self.families.table(table), keys);
        found.seek_to_first();
        let mut left = most;
        while let Some((key, value)) = found.item() {
            each(key, value)?;
            left -= 1;
            if left == 0 {
                return Ok(());
            }
            found.next();
        }
        found.status().map_err(broken)
    }

    fn entries(
        &mut self,
        index: Index,
        prefix: Vec<u8>,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut entries = self.within(self.families.index(index), PrefixRange(prefix));
        entries.seek_to_first();
        while let Some(entry) = entries.key() {
            each(entry)?;
            entries.next();
        }
        entries.status().map_err(broken)
    }

    fn last_entry(&mut self, index: Index, prefix: Vec<u8>) -> Result<Option<u32>, Failure> {
        let mut entries = self.within(self.families.index(index), PrefixRange(prefix));
        entries.seek_to_last();
        let last = entries.key().map(number_of).transpose()?;
        entries.status().map_err(broken)?;
        Ok(last)
    }

    fn add_entry(&mut self, index: Index, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        let entry = &mut self.buffers.joined;
        entry.clear();
        fill(entry);
        self.tx.put_cf(self.families.index(index), entry, b"").map_err(broken)
    }

    fn depend_on(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        let (family, reads) = (self.families.table(table), &self.buffers.reads);
        self.tx.get_pinned_for_update_cf_opt(family, key, true, reads).map(drop).map_err(broken)
    }

    fn commit(self) -> Result<(), Failure> {
        // Even a commit without writes would sync the log.
        if self.reads_only { Ok(()) } else { self.tx.commit().map_err(broken) }
    }
}

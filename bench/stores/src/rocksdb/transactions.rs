//! Optimistic transactions of RocksDB, and the synced writes of one thread. A commit checks the keys that were
//! written or read by `get_for_update`, but not those read by `get`.
//!
//! RocksDB has no function that retries a transaction. So an increment is a loop here, which waits after a conflict
//! as Larch does.

use super::broken;
use harness::transactions::{MOST_ATTEMPTS, missing, number, wait_after};
use harness::{Checked, Commits, Ended, Failure, Transactions};
use rocksdb::{
    DBPinnableSlice, Error, ErrorKind, OptimisticTransactionDB, OptimisticTransactionOptions, ReadOptions, Transaction,
    WriteOptions,
};
use std::hash::{BuildHasher as _, RandomState};
use std::hint::black_box;
use std::thread;

/// One thread's transactions on `db`.
pub fn session<'s>(
    db: &'s OptimisticTransactionDB,
    writes: WriteOptions,
    checked: Checked,
) -> Box<dyn Transactions + 's> {
    let (reads, options) = (ReadOptions::default(), OptimisticTransactionOptions::default());
    Box::new(OfThread { db, reads, writes, options, checked, random: RandomState::new() })
}

struct OfThread<'s> {
    db: &'s OptimisticTransactionDB,
    reads: ReadOptions,
    writes: WriteOptions,
    options: OptimisticTransactionOptions,
    checked: Checked,
    /// Random keys of a hasher, so that the waits of two threads differ.
    random: RandomState,
}

impl<'s> OfThread<'s> {
    fn begin(&self) -> Transaction<'s, OptimisticTransactionDB> {
        self.db.transaction_opt(&self.writes, &self.options)
    }

    /// Reads a key in the transaction, by `get_for_update` if the commit must check reads, otherwise by `get`.
    fn get<'t>(
        &self,
        tx: &'t Transaction<'_, OptimisticTransactionDB>,
        key: &[u8],
    ) -> Result<Option<DBPinnableSlice<'t>>, Failure> {
        let found = match self.checked {
            Checked::Writes => tx.get_pinned_opt(key, &self.reads),
            Checked::ReadsAndWrites => tx.get_pinned_for_update_opt(key, true, &self.reads),
        };
        found.map_err(broken)
    }
}

impl Transactions for OfThread<'_> {
    fn apart(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let found = self.db.get_pinned_opt(key, &self.reads).map_err(broken)?.ok_or_else(missing)?;
        black_box(&found[..]);
        drop(found);
        self.db.put_opt(key, value, &self.writes).map_err(broken)
    }

    fn together(&mut self, key: &[u8], value: &[u8]) -> Result<Ended, Failure> {
        let tx = self.begin();
        let found = self.get(&tx, key)?.ok_or_else(missing)?;
        black_box(&found[..]);
        drop(found);
        tx.put(key, value).map_err(broken)?;
        ended(tx.commit())
    }

    /// Always reads by `get_for_update`, so that no increment is lost.
    fn increment(&mut self, key: &[u8]) -> Result<u64, Failure> {
        for attempt in 1..=MOST_ATTEMPTS {
            let tx = self.begin();
            let found = tx.get_pinned_for_update_opt(key, true, &self.reads).map_err(broken)?;
            let before = number(found.as_deref())?;
            drop(found);
            tx.put(key, (before + 1).to_le_bytes()).map_err(broken)?;
            if ended(tx.commit())? == Ended::Committed {
                return Ok(attempt);
            }
            let wait = wait_after(attempt, self.random.hash_one((attempt, before)));
            if !wait.is_zero() {
                thread::park_timeout(wait);
            }
        }
        let text = format!("an increment has met a conflict {MOST_ATTEMPTS} times");
        Err(Failure::request("too_many_conflicts", text))
    }

    fn count(&mut self, key: &[u8]) -> Result<u64, Failure> {
        number(self.db.get_pinned_opt(key, &self.reads).map_err(broken)?.as_deref())
    }
}

/// One thread's commits on `db`. When a call returns, its commit is as durable as `writes` says.
pub fn commits<'s>(db: &'s OptimisticTransactionDB, writes: WriteOptions) -> Box<dyn Commits + 's> {
    Box::new(OneByOne { db, writes })
}

struct OneByOne<'s> {
    db: &'s OptimisticTransactionDB,
    writes: WriteOptions,
}

impl Commits for OneByOne<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.db.put_opt(key, value, &self.writes).map_err(broken)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The outcome of a commit. With `TryAgain`, RocksDB cannot rule out a conflict, because some rows written since the
/// snapshot are no longer in memory.
fn ended(committed: Result<(), Error>) -> Result<Ended, Failure> {
    match committed {
        Ok(()) => Ok(Ended::Committed),
        Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => Ok(Ended::Conflict),
        Err(error) => Err(broken(error)),
    }
}

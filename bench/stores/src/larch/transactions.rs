//! Transactions and commits in flight on Larch, through its public API.

use super::broken;
use harness::transactions::{missing, number};
use harness::{Checked, Commits, Ended, Failure, Transactions};
use larch::transaction::{Isolation, TransactionOptions};
use larch::{Commit, Database, Error, Readable as _, Table};
use std::collections::VecDeque;
use std::hint::black_box;

/// One thread's transactions on `table`, which must not have column groups.
pub fn session<'s>(db: &'s Database, table: &'s Table, checked: Checked) -> Box<dyn Transactions + 's> {
    let isolation = match checked {
        Checked::Writes => Isolation::Snapshot,
        Checked::ReadsAndWrites => Isolation::Serializable,
    };
    let options = TransactionOptions { isolation, ..TransactionOptions::default() };
    Box::new(OfThread { db, table, options })
}

struct OfThread<'s> {
    db: &'s Database,
    table: &'s Table,
    options: TransactionOptions,
}

impl Transactions for OfThread<'_> {
    fn apart(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let found = self.table.get(key).map_err(broken)?.ok_or_else(missing)?;
        black_box(&found[..]);
        drop(found);
        self.table.insert(key, value).map_err(broken)
    }

    fn together(&mut self, key: &[u8], value: &[u8]) -> Result<Ended, Failure> {
        let mut tx = self.db.begin_with(&self.options).map_err(broken)?;
        let found = tx.get(self.table, key).map_err(broken)?.ok_or_else(missing)?;
        black_box(&found[..]);
        drop(found);
        tx.insert(self.table, key, value).map_err(broken)?;
        Ok(match tx.commit().map_err(broken)? {
            Ok(_) => Ended::Committed,
            Err(_) => Ended::Conflict,
        })
    }

    fn increment(&mut self, key: &[u8]) -> Result<u64, Failure> {
        let mut attempts = 0;
        let done = self.db.transact_with(&self.options, |tx| {
            attempts += 1;
            let before = number(tx.get(self.table, key)?.as_deref()).map_err(Broken::Value)?;
            tx.insert(self.table, key, (before + 1).to_le_bytes())?;
            Ok(())
        });
        match done {
            Ok(()) => Ok(attempts),
            Err(Broken::Engine(error)) => Err(broken(error)),
            Err(Broken::Value(failure)) => Err(failure),
        }
    }

    fn count(&mut self, key: &[u8]) -> Result<u64, Failure> {
        number(self.table.get(key).map_err(broken)?.as_deref())
    }
}

/// One thread's synced commits on `table`, up to `in_flight` at a time. The table must not have column groups.
pub fn commits<'s>(db: &'s Database, table: &'s Table, in_flight: usize) -> Box<dyn Commits + 's> {
    Box::new(InFlight { db, table, most: in_flight, open: VecDeque::with_capacity(in_flight) })
}

struct InFlight<'s> {
    db: &'s Database,
    table: &'s Table,
    most: usize,
    /// Submitted commits that were not waited for, oldest first.
    open: VecDeque<Commit>,
}

impl Commits for InFlight<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        if self.most == 0 {
            return self.table.insert(key, value).map_err(broken);
        }
        if self.open.len() == self.most {
            self.wait_for_oldest()?;
        }
        let mut batch = self.db.batch();
        batch.insert(self.table, key, value);
        self.open.push_back(batch.submit().map_err(broken)?);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        while !self.open.is_empty() {
            self.wait_for_oldest()?;
        }
        Ok(())
    }
}

impl InFlight<'_> {
    fn wait_for_oldest(&mut self) -> Result<(), Failure> {
        let Some(oldest) = self.open.pop_front() else { return Ok(()) };
        oldest.wait().map(drop).map_err(broken)
    }
}

/// Why an increment failed.
enum Broken {
    Engine(Error),
    Value(Failure),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

//! One thread's transactions. The call that starts a transaction also runs and commits it, so the next transaction
//! sees its writes; the answer is held back until the commit is durable. A thread of the database syncs the log in
//! the background, and one sync makes durable all transactions that committed before it began. Each sync costs two
//! thread wake-ups and an interrupt, so the session asks for one only when enough transactions wait for it or when
//! it has nothing else to do.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

use super::{Larch, Tables};
use crate::larch::broken;
use ::tpcc::encoding::{Decode, Encoded, Parts, number_of};
use ::tpcc::ordered::{Index, Kept, Ordered, RowsOf};
use ::tpcc::schema::Cents;
use ::tpcc::screen::Screen;
use ::tpcc::transactions::{Wish, Work, now};
use ::tpcc::{Drawing, Form, Table, Ticket};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use larch::{Commit, Durability, MergeOp, Readable as _, Selection, Transaction, Version};
use rows::prefix_range;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// A session on `larch`.
pub fn session<'l>(larch: &'l Larch, tables: Tables, form: &Form, clock: Clock) -> Box<dyn Flights + 'l> {
    Box::new(Transactions {
        larch,
        tables,
        drawing: Drawing::of(form),
        clock,
        answered: VecDeque::with_capacity(larch.depth),
        newest: None,
        unsynced: 0,
        sync: Arc::new(Sync { thread: std::thread::current(), state: Mutex::new(SyncState::Idle) }),
        work: Work::default(),
        kept: Kept::default(),
        screen: Screen::default(),
        spare: Vec::with_capacity(larch.depth),
        reply: Reply::new(),
    })
}

struct Transactions<'l> {
    larch: &'l Larch,
    tables: Tables,
    drawing: Drawing,
    clock: Clock,
    /// Transactions that have run but were not answered yet, in commit order.
    answered: VecDeque<Answered>,
    /// The newest commit for which no sync was requested. Older commits become durable no later than this one.
    newest: Option<Commit>,
    /// Commits for which no sync was requested.
    unsynced: usize,
    sync: Arc<Sync>,
    work: Work,
    kept: Kept,
    screen: Screen,
    /// Screens for reuse.
    spare: Vec<Screen>,
    reply: Reply,
}

/// A transaction that has run and waits to be answered.
struct Answered {
    slot: u32,
    sent: u64,
    served: u64,
    result: Result<Outcome, Failure>,
    /// The version that must be durable before the transaction is answered.
    version: Option<Version>,
    screen: Screen,
}

/// A session's background sync.
struct Sync {
    /// The thread of the session.
    thread: Thread,
    state: Mutex<SyncState>,
}

enum SyncState {
    /// No sync runs.
    Idle,
    /// A sync runs.
    Running,
    /// The last sync failed.
    Failed(Failure),
}

impl Sync {
    fn state(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a sync that makes `newest` durable. Returns `newest` instead if a sync is already running or has
    /// failed.
    fn begin(self: &Arc<Self>, newest: Commit) -> Option<Commit> {
        let mut state = self.state();
        if !matches!(*state, SyncState::Idle) {
            return Some(newest);
        }
        *state = SyncState::Running;
        drop(state);
        let sync = Arc::clone(self);
        newest.on_durable(move |outcome| {
            *sync.state() = match outcome {
                Ok(_) => SyncState::Idle,
                Err(error) => SyncState::Failed(broken(error)),
            };
            sync.thread.unpark();
        });
        None
    }
}

impl Transactions<'_> {
    /// Runs a transaction. Also returns the version that must be durable before the answer, if any.
    fn carry_out(&mut self, request: &Request<'_>) -> Result<(Outcome, Option<Version>), Failure> {
        let input = Ticket::of(request)?.draw(&self.drawing, now());
        let tx = self.larch.db.begin().map_err(broken)?;
        let mut rows = RowsOf::new(OfTransaction { tx, tables: &self.tables }, &mut self.kept);
        let wish = self.work.run(&mut rows, &input, &mut self.screen)?;
        if wish == Wish::RollBack {
            return Ok((wish.outcome(), None));
        }
        let commit = rows.store.commit()?;
        let waits = self.larch.durability == Durability::Synced && !commit.is_durable();
        let version = waits.then(|| commit.version());
        if waits {
            self.newest = Some(commit);
            self.unsynced += 1;
        }
        Ok((wish.outcome(), version))
    }

    /// Requests a sync if none is running and at least `least` commits wait for one.
    fn sync(&mut self, least: usize) {
        if self.unsynced >= least
            && let Some(newest) = self.newest.take()
        {
            self.newest = self.sync.begin(newest);
            if self.newest.is_none() {
                self.unsynced = 0;
            }
        }
    }

    /// Calls `served` with each answer that need not wait for a sync any more. Returns their number.
    fn serve(&mut self, served: &mut dyn FnMut(Served<'_>)) -> usize {
        let durable = self.larch.db.durable_version();
        let is_durable = |answered: &Answered| answered.version.is_none_or(|version| version <= durable);
        let (mut count, now) = (0, self.clock.nanos());
        // A read needs no sync, but may be queued behind a commit that does. So the whole queue is searched.
        let mut at = 0;
        while at < self.answered.len() {
            if !is_durable(&self.answered[at]) {
                at += 1;
                continue;
            }
            let Some(Answered { slot, sent, served: carried_out, result, version, screen }) = self.answered.remove(at)
            else {
                break;
            };
            screen.show(&mut self.reply);
            let at = if version.is_some() { now } else { carried_out };
            served(Served { slot, sent, served: at, result, reply: &self.reply });
            self.spare.push(screen);
            count += 1;
        }
        count
    }
}

impl Flights for Transactions<'_> {
    fn depth(&self) -> usize {
        self.larch.depth
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let sent = self.clock.nanos();
        let (result, version) = match self.carry_out(request) {
            Ok((outcome, version)) => (Ok(outcome), version),
            Err(failure) => (Err(failure), None),
        };
        self.sync(self.larch.depth / 4);
        let spare = self.spare.pop().unwrap_or_default();
        let screen = std::mem::replace(&mut self.screen, spare);
        self.answered.push_back(Answered { slot, sent, served: self.clock.nanos(), result, version, screen });
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        loop {
            let failed = match &*self.sync.state() {
                SyncState::Failed(failure) => Some(failure.clone()),
                SyncState::Idle | SyncState::Running => None,
            };
            if let Some(failure) = failed {
                return Err(failure);
            }
            if self.serve(served) > 0 {
                return Ok(());
            }
            self.sync(1);
            let left = match until {
                Some(until) => until.saturating_sub(self.clock.nanos()),
                None if self.answered.is_empty() => 0,
                None => u64::MAX,
            };
            if left == 0 {
                return Ok(());
            }
            std::thread::park_timeout(Duration::from_nanos(left));
        }
    }
}

/// A transaction of Larch, which is serializable by itself and maintains the indexes.
pub(super) struct OfTransaction<'t> {
    pub tx: Transaction,
    pub tables: &'t Tables,
}

impl OfTransaction<'_> {
    /// What reads these parts of a table whose rows are split. `None` for the other tables.
    fn selection(&self, table: Table, parts: Parts) -> Option<&Selection> {
        match (table, parts) {
            (Table::Customer, Parts::First) => Some(&self.tables.accounts),
            (Table::Customer, Parts::All) => Some(&self.tables.customers),
            (Table::Stock, Parts::First) => Some(&self.tables.quantities),
            (Table::Stock, Parts::All) => Some(&self.tables.stock),
            _ => None,
        }
    }

    fn index(&self, index: Index) -> &larch::Index {
        &self.tables.indexes[index as usize]
    }
}

impl Ordered for OfTransaction<'_> {
    type Committed = Commit;

    fn get<R: Decode>(&mut self, table: Table, parts: Parts, key: &[u8], row: &mut R) -> Result<bool, Failure> {
        match self.selection(table, parts) {
            Some(selection) => {
                let found = self.tx.select(selection).and_then(|selected| selected.get(key)).map_err(broken)?;
                let Some(parts) = found else { return Ok(false) };
                row.decode(key, parts.iter().map(|part| &part[..]))?;
            }
            None => {
                let Some(value) = self.tx.get(self.tables.of(table), key).map_err(broken)? else { return Ok(false) };
                row.decode(key, [&value[..]])?;
            }
        }
        Ok(true)
    }

    fn get_many<R: Decode>(
        &mut self,
        table: Table,
        parts: Parts,
        keys: &[Vec<u8>],
        rows: &mut [R],
        mut none: impl FnMut(&mut R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let rows = rows.iter_mut().zip(keys);
        match self.selection(table, parts) {
            Some(selection) => {
                let selected = self.tx.select(selection).map_err(broken)?;
                for ((row, key), found) in rows.zip(selected.multi_get(keys).map_err(broken)?) {
                    match found {
                        Some(parts) => row.decode(key, parts.iter().map(|part| &part[..]))?,
                        None => none(row)?,
                    }
                }
            }
            None => {
                let found = self.tx.multi_get(self.tables.of(table), keys).map_err(broken)?;
                for ((row, key), value) in rows.zip(found) {
                    match value {
                        Some(value) => row.decode(key, [&value[..]])?,
                        None => none(row)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, table: Table, row: &Encoded) -> Result<(), Failure> {
        let table = self.tables.of(table);
        match row.parts() {
            [value] => self.tx.insert(table, row.key(), value),
            parts => self.tx.insert_parts(table, row.key(), parts),
        }
        .map_err(broken)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.tx.remove(self.tables.of(table), key).map_err(broken)
    }

    fn range(
        &mut self,
        table: Table,
        keys: Range<Vec<u8>>,
        most: u64,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut range = self.tx.range(self.tables.of(table), keys).limit(most);
        while let Some(row) = range.next_row().map_err(broken)? {
            each(row.key(), row.value().map_err(broken)?.as_ref())?;
        }
        Ok(())
    }

    fn entries(
        &mut self,
        index: Index,
        prefix: Vec<u8>,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for entry in self.tx.entries(self.index(index), prefix_range(prefix)) {
            each(entry.map_err(broken)?.row_key())?;
        }
        Ok(())
    }

    fn last_entry(&mut self, index: Index, prefix: Vec<u8>) -> Result<Option<u32>, Failure> {
        let last = self.tx.entries(self.index(index), prefix_range(prefix)).next_back();
        last.transpose().map_err(broken)?.map(|entry| number_of(entry.row_key())).transpose()
    }

    fn keeps_year_apart(&self) -> bool {
        self.tables.sums.is_some()
    }

    fn add_to_year(&mut self, key: &[u8], amount: Cents) -> Result<(), Failure> {
        let sums = self.tables.sums.as_ref().expect("the store keeps these sums apart");
        self.tx.merge(sums, key, MergeOp::Add(amount)).map_err(broken)
    }

    fn commit(self) -> Result<Commit, Failure> {
        let committed = self.tx.submit().map_err(broken)?;
        committed.map_err(|conflict| Failure::again("conflict", conflict.to_string()))
    }
}

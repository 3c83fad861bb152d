//! One thread's transactions. The call that starts a transaction also runs and commits it, so the next transaction
//! sees its writes; the answer is held back until the commit is durable. A thread of the database syncs the log in
//! the background, and one sync makes durable all transactions that committed before it began. Each sync costs two
//! thread wake-ups and an interrupt, so the session asks for one only when enough transactions wait for it or when
//! it has nothing else to do.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

use super::{Larch, Tables};
use crate::broken;
use ::tpcc::encoding::{Decode, Scratch, district_key, name_key, number_of, numbered_key, stock_key};
use ::tpcc::oldest::Oldest;
use ::tpcc::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use ::tpcc::screen::Screen;
use ::tpcc::transactions::{Columns, DistrictId, Rows, Wish, Work, missing, now, wrong};
use ::tpcc::{Drawing, Form, Row, Text, Ticket};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use larch::{Commit, Durability, Readable as _, Transaction, Version};
use rows::{Decoder, prefix_range};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
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
        scratch: Scratch::default(),
        oldest: Oldest::default(),
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
    scratch: Scratch,
    oldest: Oldest,
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
        let mut rows = OfTransaction {
            tx: self.larch.db.begin().map_err(broken)?,
            tables: &self.tables,
            scratch: &mut self.scratch,
            oldest: &mut self.oldest,
        };
        let wish = self.work.run(&mut rows, &input, &mut self.screen)?;
        match wish {
            Wish::RollBack => Ok((wish.outcome(), None)),
            Wish::Commit => match rows.tx.submit().map_err(broken)? {
                Ok(commit) => {
                    let waits = self.larch.durability == Durability::Synced && !commit.is_durable();
                    let version = waits.then(|| commit.version());
                    if waits {
                        self.newest = Some(commit);
                        self.unsynced += 1;
                    }
                    Ok((wish.outcome(), version))
                }
                Err(conflict) => Err(Failure::again("conflict", conflict.to_string())),
            },
        }
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

/// The rows as one Larch transaction sees them.
struct OfTransaction<'t> {
    tx: Transaction,
    tables: &'t Tables,
    scratch: &'t mut Scratch,
    oldest: &'t mut Oldest,
}

impl OfTransaction<'_> {
    fn get<R: Decode>(&mut self, table: Table, row: &mut R, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        let key = self.scratch.key(fill);
        let value = self.tx.get(self.tables.of(table), key).map_err(broken)?.ok_or_else(|| missing(table))?;
        row.decode(key, [&value[..]])
    }

    fn put(&mut self, table: Table, row: Row<'_>, unique: u64) -> Result<(), Failure> {
        let encoded = &mut self.scratch.encoded;
        encoded.set(row, unique);
        let table = self.tables.of(table);
        match encoded.parts() {
            [value] => self.tx.insert(table, encoded.key(), value),
            parts => self.tx.insert_parts(table, encoded.key(), parts),
        }
        .map_err(broken)
    }
}

impl Rows for OfTransaction<'_> {
    fn warehouse(&mut self, warehouse: u32, row: &mut Warehouse) -> Result<(), Failure> {
        self.get(Table::Warehouse, row, |key| rows::Tuple::encode(&(warehouse,), key))
    }

    fn put_warehouse(&mut self, row: &Warehouse) -> Result<(), Failure> {
        self.put(Table::Warehouse, Row::Warehouse(row), 0)
    }

    fn district(&mut self, of: DistrictId, row: &mut District) -> Result<(), Failure> {
        self.get(Table::District, row, |key| district_key(of, key))
    }

    fn put_district(&mut self, row: &District) -> Result<(), Failure> {
        self.put(Table::District, Row::District(row), 0)
    }

    fn customer(&mut self, of: DistrictId, customer: u32, columns: Columns, row: &mut Customer) -> Result<(), Failure> {
        let selection = match columns {
            Columns::Account => &self.tables.accounts,
            Columns::All => &self.tables.customers,
        };
        let key = self.scratch.key(|key| numbered_key(of, customer, key));
        let parts = self.tx.select(selection).and_then(|selected| selected.get(key)).map_err(broken)?;
        let parts = parts.ok_or_else(|| missing(Table::Customer))?;
        row.decode(key, parts.iter().map(|part| &part[..]))
    }

    fn customers_by_name(&mut self, of: DistrictId, last: &Text<16>, customers: &mut Vec<u32>) -> Result<(), Failure> {
        customers.clear();
        let key = self.scratch.key(|key| name_key(of, last, key));
        for entry in self.tx.entries(&self.tables.customers_by_name, prefix_range(key.to_vec())) {
            customers.push(number_of(entry.map_err(broken)?.row_key())?);
        }
        Ok(())
    }

    fn put_customer(&mut self, row: &Customer) -> Result<(), Failure> {
        self.put(Table::Customer, Row::Customer(row), 0)
    }

    fn add_history(&mut self, row: &History, unique: u64) -> Result<(), Failure> {
        self.put(Table::History, Row::History(row), unique)
    }

    fn oldest_new_order(&mut self, of: DistrictId) -> Result<Option<u32>, Failure> {
        let bound = |order| {
            let mut key = Vec::new();
            numbered_key(of, order, &mut key);
            key
        };
        let orders = bound(self.oldest.least(of))..=bound(u32::MAX);
        let mut range = self.tx.range(self.tables.of(Table::NewOrder), orders).limit(1);
        let first = range.next_row().map_err(broken)?;
        let order = first.map(|row| number_of(row.key())).transpose()?;
        order.inspect(|order| self.oldest.note(of, *order));
        Ok(order)
    }

    fn add_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        self.put(Table::NewOrder, Row::NewOrder(row), 0)
    }

    fn remove_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        let of = DistrictId { warehouse: row.warehouse, district: row.district };
        let key = self.scratch.key(|key| numbered_key(of, row.order, key));
        self.tx.remove(self.tables.of(Table::NewOrder), key).map_err(broken)
    }

    fn order(&mut self, of: DistrictId, order: u32, row: &mut Order) -> Result<(), Failure> {
        self.get(Table::Order, row, |key| numbered_key(of, order, key))
    }

    fn newest_order(&mut self, of: DistrictId, customer: u32, row: &mut Order) -> Result<bool, Failure> {
        let key = self.scratch.key(|key| numbered_key(of, customer, key)).to_vec();
        let newest = self.tx.entries(&self.tables.orders_by_customer, prefix_range(key)).next_back();
        let Some(newest) = newest.transpose().map_err(broken)? else { return Ok(false) };
        let order = number_of(newest.row_key())?;
        self.order(of, order, row).map(|()| true)
    }

    fn put_order(&mut self, row: &Order) -> Result<(), Failure> {
        self.put(Table::Order, Row::Order(row), 0)
    }

    fn order_lines(
        &mut self,
        of: DistrictId,
        orders: RangeInclusive<u32>,
        lines: &mut Vec<OrderLine>,
    ) -> Result<(), Failure> {
        let bound = |order| {
            let mut key = Vec::new();
            numbered_key(of, order, &mut key);
            key
        };
        let range = bound(*orders.start())..bound(orders.end() + 1);
        let mut count = 0;
        let mut range = self.tx.range(self.tables.of(Table::OrderLine), range);
        while let Some(row) = range.next_row().map_err(broken)? {
            if lines.len() == count {
                lines.push(OrderLine::default());
            }
            lines[count].decode(row.key(), [row.value().map_err(broken)?.as_ref()])?;
            count += 1;
        }
        lines.truncate(count);
        Ok(())
    }

    fn add_order_line(&mut self, row: &OrderLine) -> Result<(), Failure> {
        self.put(Table::OrderLine, Row::OrderLine(row), 0)
    }

    fn put_delivered(&mut self, lines: &[OrderLine]) -> Result<(), Failure> {
        lines.iter().try_for_each(|line| self.put(Table::OrderLine, Row::OrderLine(line), 0))
    }

    fn items(&mut self, items: &[u32], rows: &mut Vec<Item>) -> Result<(), Failure> {
        let keys = self.scratch.keys(items.len(), |at, key| rows::Tuple::encode(&(items[at],), key));
        let values = self.tx.multi_get(self.tables.of(Table::Item), keys).map_err(broken)?;
        rows.resize_with(items.len(), Item::default);
        for ((row, key), value) in rows.iter_mut().zip(keys).zip(values) {
            match value {
                Some(value) => row.decode(key, [&value[..]])?,
                None => row.item = 0,
            }
        }
        Ok(())
    }

    fn stocks(&mut self, of: &[(u32, u32)], rows: &mut Vec<Stock>) -> Result<(), Failure> {
        let keys = self.scratch.keys(of.len(), |at, key| stock_key(of[at].0, of[at].1, key));
        let parts = self.tx.select(&self.tables.stock).and_then(|stock| stock.multi_get(keys)).map_err(broken)?;
        rows.resize_with(of.len(), Stock::default);
        for ((row, key), parts) in rows.iter_mut().zip(keys).zip(parts) {
            let parts = parts.ok_or_else(|| missing(Table::Stock))?;
            row.decode(key, parts.iter().map(|part| &part[..]))?;
        }
        Ok(())
    }

    fn put_stock(&mut self, row: &Stock) -> Result<(), Failure> {
        self.put(Table::Stock, Row::Stock(row), 0)
    }

    fn quantities(&mut self, warehouse: u32, items: &[u32], quantities: &mut Vec<i32>) -> Result<(), Failure> {
        let keys = self.scratch.keys(items.len(), |at, key| stock_key(warehouse, items[at], key));
        let selected = self.tx.select(&self.tables.quantities).map_err(broken)?;
        let parts = selected.multi_get(keys).map_err(broken)?;
        quantities.clear();
        for parts in parts {
            let parts = parts.ok_or_else(|| missing(Table::Stock))?;
            let mut quantity = Decoder::new(&parts[0]);
            let number = rows::DecodeField::decode(&mut quantity);
            quantities.push(number.map_err(|mistake| wrong(format!("a stock has no quantity: {mistake}")))?);
        }
        Ok(())
    }
}

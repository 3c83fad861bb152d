//! One thread's transactions, on a connection of its own. A writing transaction takes the writers' lock before
//! anything else, so transactions never conflict. A read-only transaction sees the last commit before its start.
//!
//! SQLite syncs its WAL at each commit. With `group`, several transactions of a session share one: each is a
//! savepoint in one SQLite transaction, and all are answered after its commit.

use super::Sqlite;
use super::columns::{Found, as_sql, insert, run_insert};
use crate::sqlite::broken;
use ::tpcc::in_turn::{self, Engine, reads_only};
use ::tpcc::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use ::tpcc::transactions::{self, DistrictId, Rows, missing};
use ::tpcc::{Form, Row, Text, Transaction};
use harness::{Clock, Failure, Flights};
use rusqlite::{CachedStatement, Connection, Params};
use std::ops::RangeInclusive;
use std::sync::MutexGuard;

/// Prepared statements that a connection keeps: enough for all statements of a session.
const PREPARED: usize = 64;

/// A session on `sqlite`.
pub fn session<'l>(sqlite: &'l Sqlite, form: &Form, clock: Clock) -> Result<Box<dyn Flights + 'l>, Failure> {
    let connection = sqlite.connect()?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    // A savepoint keeps the old content of pages, by default in a temporary file.
    connection.pragma_update(None, "temp_store", "memory").map_err(broken)?;
    let together = sqlite.group;
    Ok(in_turn::session(
        Transactions { sqlite, connection, inserts: Table::ALL.map(insert), turn: None },
        form,
        together,
        clock,
    ))
}

struct Transactions<'l> {
    sqlite: &'l Sqlite,
    connection: Connection,
    /// The statement that inserts a row, for each table.
    inserts: [String; 9],
    /// The writers' lock, held while a group of transactions is open.
    turn: Option<MutexGuard<'l, ()>>,
}

impl<'l> Engine for Transactions<'l> {
    type Open<'e>
        = Open<'e>
    where
        Self: 'e;

    fn begin(&mut self, transaction: Transaction) -> Result<Open<'_>, Failure> {
        let (connection, inserts) = (&self.connection, &self.inserts);
        if self.sqlite.group > 1 {
            if self.turn.is_none() {
                let turn = self.sqlite.turn();
                run(connection, "BEGIN IMMEDIATE")?;
                self.turn = Some(turn);
            } else if connection.is_autocommit() {
                let text = "SQLite has rolled back the transactions that were to share a commit";
                return Err(Failure::session("rolled_back", text));
            }
            run(connection, "SAVEPOINT one")?;
            return Ok(Open { connection, inserts, is_savepoint: true, is_over: false, _turn: None });
        }
        let turn = (!reads_only(transaction)).then(|| self.sqlite.turn());
        run(connection, if turn.is_some() { "BEGIN IMMEDIATE" } else { "BEGIN" })?;
        Ok(Open { connection, inserts, is_savepoint: false, is_over: false, _turn: turn })
    }

    fn commit(mut open: Open<'_>) -> Result<(), Failure> {
        run(open.connection, if open.is_savepoint { "RELEASE one" } else { "COMMIT" })?;
        open.is_over = true;
        Ok(())
    }

    fn make_durable(&mut self) -> Result<(), Failure> {
        let Some(_turn) = self.turn.take() else { return Ok(()) };
        let committed = run(&self.connection, "COMMIT");
        if committed.is_err() && !self.connection.is_autocommit() {
            // The failed commit's error is reported, which says more than one of this rollback.
            run(&self.connection, "ROLLBACK").ok();
        }
        committed
    }
}

/// Runs a statement without parameters.
fn run(connection: &Connection, sql: &str) -> Result<(), Failure> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.raw_execute()).map(drop).map_err(broken)
}

/// An open transaction.
struct Open<'e> {
    connection: &'e Connection,
    inserts: &'e [String; 9],
    /// Whether this transaction is a savepoint in a larger SQLite transaction.
    is_savepoint: bool,
    is_over: bool,
    /// The writers' lock. It outlives the transaction, because `drop` runs before fields are dropped.
    _turn: Option<MutexGuard<'e, ()>>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // After some errors, SQLite has already rolled back by itself.
        if self.is_over || self.connection.is_autocommit() {
            return;
        }
        // If the rollback fails, the next transaction cannot begin, and its error says why.
        match self.is_savepoint {
            // If the savepoint cannot be rolled back alone, rolls back the whole SQLite transaction, and with it all
            // transactions of the group.
            true => run(self.connection, "ROLLBACK TO one")
                .and_then(|()| run(self.connection, "RELEASE one"))
                .or_else(|_| run(self.connection, "ROLLBACK"))
                .ok(),
            false => run(self.connection, "ROLLBACK").ok(),
        };
    }
}

impl Open<'_> {
    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, Failure> {
        self.connection.prepare_cached(sql).map_err(broken)
    }

    /// Calls `read` with the columns of the only row. `None` if no row was found.
    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&mut Found<'_, '_>) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let mut statement = self.statement(sql)?;
        let mut rows = statement.query(params).map_err(broken)?;
        let row = rows.next().map_err(broken)?;
        row.map(|row| read(&mut Found::of(row))).transpose()
    }

    /// Calls `read` with the columns of each row.
    fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&mut Found<'_, '_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut statement = self.statement(sql)?;
        let mut rows = statement.query(params).map_err(broken)?;
        while let Some(row) = rows.next().map_err(broken)? {
            read(&mut Found::of(row))?;
        }
        Ok(())
    }

    /// Runs a statement that must change exactly one row.
    fn change(&self, table: Table, sql: &str, params: impl Params) -> Result<(), Failure> {
        match self.statement(sql)?.execute(params).map_err(broken)? {
            1 => Ok(()),
            _ => Err(missing(table)),
        }
    }

    fn insert(&self, table: Table, row: Row<'_>, number: u64) -> Result<(), Failure> {
        run_insert(&mut *self.statement(&self.inserts[table as usize])?, row, number)
    }
}

impl Rows for Open<'_> {
    fn warehouse(&mut self, warehouse: u32, row: &mut Warehouse) -> Result<(), Failure> {
        let found = self.one("SELECT * FROM warehouse WHERE w_id = ?", (warehouse,), |from| from.read(row))?;
        found.ok_or_else(|| missing(Table::Warehouse))
    }

    fn put_warehouse(&mut self, row: &Warehouse) -> Result<(), Failure> {
        let sql = "UPDATE warehouse SET w_ytd = ?2 WHERE w_id = ?1";
        self.change(Table::Warehouse, sql, (row.warehouse, row.year_to_date))
    }

    fn district(&mut self, of: DistrictId, row: &mut District) -> Result<(), Failure> {
        let sql = "SELECT * FROM district WHERE d_w_id = ? AND d_id = ?";
        let found = self.one(sql, (of.warehouse, of.district), |from| from.read(row))?;
        found.ok_or_else(|| missing(Table::District))
    }

    fn put_district(&mut self, row: &District) -> Result<(), Failure> {
        let sql = "UPDATE district SET d_ytd = ?3, d_next_o_id = ?4 WHERE d_w_id = ?1 AND d_id = ?2";
        self.change(Table::District, sql, (row.warehouse, row.district, row.year_to_date, row.next_order))
    }

    fn customer(
        &mut self,
        of: DistrictId,
        customer: u32,
        columns: transactions::Columns,
        row: &mut Customer,
    ) -> Result<(), Failure> {
        let key = (of.warehouse, of.district, customer);
        let found = match columns {
            transactions::Columns::Account => {
                let sql = "SELECT c_w_id, c_d_id, c_id, c_last, c_first, c_middle, c_credit, c_discount, c_balance, \
                           c_ytd_payment, c_payment_cnt, c_delivery_cnt FROM customer \
                           WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
                self.one(sql, key, |from| from.account(row))?
            }
            transactions::Columns::All => {
                let sql = "SELECT * FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
                self.one(sql, key, |from| from.read(row))?
            }
        };
        found.ok_or_else(|| missing(Table::Customer))
    }

    fn customers_by_name(&mut self, of: DistrictId, last: &Text<16>, customers: &mut Vec<u32>) -> Result<(), Failure> {
        customers.clear();
        let sql = "SELECT c_id FROM customer INDEXED BY customers_by_name \
                   WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first, c_id";
        self.each(sql, (of.warehouse, of.district, as_sql(last)), |from| {
            customers.push(from.take()?);
            Ok(())
        })
    }

    fn put_customer(&mut self, row: &Customer) -> Result<(), Failure> {
        let sql = "UPDATE customer SET c_balance = ?4, c_ytd_payment = ?5, c_payment_cnt = ?6, c_delivery_cnt = ?7, \
                   c_data = ?8 WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
        let key = (row.warehouse, row.district, row.customer);
        let paid = (row.balance, row.paid_in_year, row.payments);
        let data = as_sql(&row.data);
        self.change(Table::Customer, sql, (key.0, key.1, key.2, paid.0, paid.1, paid.2, row.deliveries, data))
    }

    fn add_history(&mut self, row: &History, unique: u64) -> Result<(), Failure> {
        self.insert(Table::History, Row::History(row), unique)
    }

    fn oldest_new_order(&mut self, of: DistrictId) -> Result<Option<u32>, Failure> {
        let sql = "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1";
        self.one(sql, (of.warehouse, of.district), |from| from.take())
    }

    fn add_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        self.insert(Table::NewOrder, Row::NewOrder(row), 0)
    }

    fn remove_new_order(&mut self, row: &NewOrder) -> Result<(), Failure> {
        let sql = "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
        self.change(Table::NewOrder, sql, (row.warehouse, row.district, row.order))
    }

    fn order(&mut self, of: DistrictId, order: u32, row: &mut Order) -> Result<(), Failure> {
        let sql = "SELECT * FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
        let found = self.one(sql, (of.warehouse, of.district, order), |from| from.read(row))?;
        found.ok_or_else(|| missing(Table::Order))
    }

    fn newest_order(&mut self, of: DistrictId, customer: u32, row: &mut Order) -> Result<bool, Failure> {
        let sql = "SELECT * FROM orders INDEXED BY orders_by_customer \
                   WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
        let found = self.one(sql, (of.warehouse, of.district, customer), |from| from.read(row))?;
        Ok(found.is_some())
    }

    fn put_order(&mut self, row: &Order) -> Result<(), Failure> {
        // An order without a carrier is new.
        let Some(carrier) = row.carrier else { return self.insert(Table::Order, Row::Order(row), 0) };
        let sql = "UPDATE orders SET o_carrier_id = ?4 WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3";
        self.change(Table::Order, sql, (row.warehouse, row.district, row.order, carrier))
    }

    fn order_lines(
        &mut self,
        of: DistrictId,
        orders: RangeInclusive<u32>,
        lines: &mut Vec<OrderLine>,
    ) -> Result<(), Failure> {
        let sql = "SELECT * FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id BETWEEN ? AND ? \
                   ORDER BY ol_o_id, ol_number";
        let mut count = 0;
        self.each(sql, (of.warehouse, of.district, *orders.start(), *orders.end()), |from| {
            if lines.len() == count {
                lines.push(OrderLine::default());
            }
            from.read(&mut lines[count])?;
            count += 1;
            Ok(())
        })?;
        lines.truncate(count);
        Ok(())
    }

    fn add_order_line(&mut self, row: &OrderLine) -> Result<(), Failure> {
        self.insert(Table::OrderLine, Row::OrderLine(row), 0)
    }

    fn put_delivered(&mut self, lines: &[OrderLine]) -> Result<(), Failure> {
        let Some(line) = lines.first() else { return Ok(()) };
        let sql = "UPDATE order_line SET ol_delivery_d = ?4 WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3";
        let key = (line.warehouse, line.district, line.order, line.delivered);
        match self.statement(sql)?.execute(key).map_err(broken)? {
            count if count == lines.len() => Ok(()),
            _ => Err(missing(Table::OrderLine)),
        }
    }

    fn items(&mut self, items: &[u32], rows: &mut Vec<Item>) -> Result<(), Failure> {
        rows.resize_with(items.len(), Item::default);
        for (item, row) in items.iter().zip(rows) {
            if self.one("SELECT * FROM item WHERE i_id = ?", (*item,), |from| from.read(row))?.is_none() {
                row.item = 0;
            }
        }
        Ok(())
    }

    fn stocks(&mut self, of: &[(u32, u32)], rows: &mut Vec<Stock>) -> Result<(), Failure> {
        rows.resize_with(of.len(), Stock::default);
        for (key, row) in of.iter().zip(rows) {
            let found = self.one("SELECT * FROM stock WHERE s_w_id = ? AND s_i_id = ?", *key, |from| from.read(row))?;
            found.ok_or_else(|| missing(Table::Stock))?;
        }
        Ok(())
    }

    fn put_stock(&mut self, row: &Stock) -> Result<(), Failure> {
        let sql = "UPDATE stock SET s_quantity = ?3, s_ytd = ?4, s_order_cnt = ?5, s_remote_cnt = ?6 \
                   WHERE s_w_id = ?1 AND s_i_id = ?2";
        let Stock { warehouse, item, quantity, sold, orders, remote_orders, .. } = *row;
        self.change(Table::Stock, sql, (warehouse, item, quantity, sold.cast_signed(), orders, remote_orders))
    }

    fn quantities(&mut self, warehouse: u32, items: &[u32], quantities: &mut Vec<i32>) -> Result<(), Failure> {
        quantities.clear();
        for item in items {
            let sql = "SELECT s_quantity FROM stock WHERE s_w_id = ? AND s_i_id = ?";
            let quantity = self.one(sql, (warehouse, *item), |from| from.take())?;
            quantities.push(quantity.ok_or_else(|| missing(Table::Stock))?);
        }
        Ok(())
    }
}

//! The nine tables in SQL: how they are created, how rows become statement parameters, and how results become rows.
//! Money is in cents, rates are in ten-thousandths, and times are in microseconds, so all numbers are integers.
//!
//! A table whose key has several columns is stored in key order (`WITHOUT ROWID`). SQLite decodes a row from its
//! beginning, so the columns that transactions read most come first. The key of a payment ends with a rising number:
//! a warehouse's payments are adjacent, new ones are appended, and the check can read them with one scan.

use super::super::broken;
use ::tpcc::schema::{Address, Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use ::tpcc::transactions::wrong;
use ::tpcc::{Row, Text};
use harness::Failure;
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Statement, ToSql};

/// The SQL that creates `table`.
pub fn create(table: Table) -> &'static str {
    match table {
        Table::Warehouse => {
            "CREATE TABLE warehouse (w_id INTEGER PRIMARY KEY, w_tax INTEGER, w_ytd INTEGER, w_name TEXT, \
             w_street_1 TEXT, w_street_2 TEXT, w_city TEXT, w_state TEXT, w_zip TEXT)"
        }
        Table::District => {
            "CREATE TABLE district (d_w_id INTEGER, d_id INTEGER, d_tax INTEGER, d_ytd INTEGER, d_next_o_id INTEGER, \
             d_name TEXT, d_street_1 TEXT, d_street_2 TEXT, d_city TEXT, d_state TEXT, d_zip TEXT, \
             PRIMARY KEY (d_w_id, d_id)) WITHOUT ROWID"
        }
        Table::Customer => {
            "CREATE TABLE customer (c_w_id INTEGER, c_d_id INTEGER, c_id INTEGER, c_last TEXT, c_first TEXT, \
             c_middle TEXT, c_credit INTEGER, c_discount INTEGER, c_balance INTEGER, c_ytd_payment INTEGER, \
             c_payment_cnt INTEGER, c_delivery_cnt INTEGER, c_street_1 TEXT, c_street_2 TEXT, c_city TEXT, c_state TEXT, \
             c_zip TEXT, c_phone TEXT, c_since INTEGER, c_credit_lim INTEGER, c_data TEXT, \
             PRIMARY KEY (c_w_id, c_d_id, c_id)) WITHOUT ROWID"
        }
        Table::History => {
            "CREATE TABLE history (h_w_id INTEGER, h_date INTEGER, h_number INTEGER, h_d_id INTEGER, h_c_w_id INTEGER, \
             h_c_d_id INTEGER, h_c_id INTEGER, h_amount INTEGER, h_data TEXT, \
             PRIMARY KEY (h_w_id, h_date, h_number)) WITHOUT ROWID"
        }
        Table::NewOrder => {
            "CREATE TABLE new_order (no_w_id INTEGER, no_d_id INTEGER, no_o_id INTEGER, \
             PRIMARY KEY (no_w_id, no_d_id, no_o_id)) WITHOUT ROWID"
        }
        Table::Order => {
            "CREATE TABLE orders (o_w_id INTEGER, o_d_id INTEGER, o_id INTEGER, o_c_id INTEGER, o_entry_d INTEGER, \
             o_carrier_id INTEGER, o_ol_cnt INTEGER, o_all_local INTEGER, PRIMARY KEY (o_w_id, o_d_id, o_id)) WITHOUT ROWID"
        }
        Table::OrderLine => {
            "CREATE TABLE order_line (ol_w_id INTEGER, ol_d_id INTEGER, ol_o_id INTEGER, ol_number INTEGER, \
             ol_i_id INTEGER, ol_supply_w_id INTEGER, ol_delivery_d INTEGER, ol_quantity INTEGER, ol_amount INTEGER, \
             ol_dist_info TEXT, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)) WITHOUT ROWID"
        }
        Table::Item => {
            "CREATE TABLE item (i_id INTEGER PRIMARY KEY, i_im_id INTEGER, i_price INTEGER, i_name TEXT, i_data TEXT)"
        }
        Table::Stock => {
            "CREATE TABLE stock (s_w_id INTEGER, s_i_id INTEGER, s_quantity INTEGER, s_ytd INTEGER, s_order_cnt INTEGER, \
             s_remote_cnt INTEGER, s_dist_01 TEXT, s_dist_02 TEXT, s_dist_03 TEXT, s_dist_04 TEXT, s_dist_05 TEXT, \
             s_dist_06 TEXT, s_dist_07 TEXT, s_dist_08 TEXT, s_dist_09 TEXT, s_dist_10 TEXT, s_data TEXT, \
             PRIMARY KEY (s_w_id, s_i_id)) WITHOUT ROWID"
        }
    }
}

/// The SQL that inserts a row, with a parameter for each column.
pub fn insert(table: Table) -> &'static str {
    match table {
        Table::Warehouse => "INSERT INTO warehouse VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        Table::District => "INSERT INTO district VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        Table::Customer => {
            "INSERT INTO customer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        }
        Table::History => "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        Table::NewOrder => "INSERT INTO new_order VALUES (?, ?, ?)",
        Table::Order => "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        Table::OrderLine => "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        Table::Item => "INSERT INTO item VALUES (?, ?, ?, ?, ?)",
        Table::Stock => "INSERT INTO stock VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    }
}

/// The SQL that selects all columns of a warehouse's rows, or of all items, in key order.
pub fn select_all(table: Table) -> &'static str {
    match table {
        Table::Warehouse => "SELECT * FROM warehouse WHERE w_id = ?",
        Table::District => "SELECT * FROM district WHERE d_w_id = ? ORDER BY d_id",
        Table::Customer => "SELECT * FROM customer WHERE c_w_id = ? ORDER BY c_d_id, c_id",
        Table::History => "SELECT * FROM history WHERE h_w_id = ? ORDER BY h_date, h_number",
        Table::NewOrder => "SELECT * FROM new_order WHERE no_w_id = ? ORDER BY no_d_id, no_o_id",
        Table::Order => "SELECT * FROM orders WHERE o_w_id = ? ORDER BY o_d_id, o_id",
        Table::OrderLine => "SELECT * FROM order_line WHERE ol_w_id = ? ORDER BY ol_d_id, ol_o_id, ol_number",
        Table::Item => "SELECT * FROM item ORDER BY i_id",
        Table::Stock => "SELECT * FROM stock WHERE s_w_id = ? ORDER BY s_i_id",
    }
}

/// Runs the statement from [`insert`] for `row`. `number` distinguishes payments of the same warehouse and time.
pub fn run_insert(statement: &mut Statement<'_>, row: Row<'_>, number: u64) -> Result<(), Failure> {
    let mut to = Parameters { statement, at: 0 };
    match row {
        Row::Warehouse(row) => {
            to.numbers([row.warehouse, row.tax])?;
            to.put(row.year_to_date)?;
            to.text(&row.name)?;
            to.address(&row.address)?;
        }
        Row::District(row) => {
            to.numbers([row.warehouse, row.district, row.tax])?;
            to.put(row.year_to_date)?;
            to.put(row.next_order)?;
            to.text(&row.name)?;
            to.address(&row.address)?;
        }
        Row::Customer(row) => {
            to.numbers([row.warehouse, row.district, row.customer])?;
            to.text(&row.last)?;
            to.text(&row.first)?;
            to.text(&row.middle)?;
            to.put(row.has_good_credit)?;
            to.put(row.discount)?;
            to.put(row.balance)?;
            to.put(row.paid_in_year)?;
            to.numbers([row.payments, row.deliveries])?;
            to.address(&row.address)?;
            to.text(&row.phone)?;
            to.put(row.since)?;
            to.put(row.credit_limit)?;
            to.text(&row.data)?;
        }
        Row::History(row) => {
            to.put(row.warehouse)?;
            to.put(row.date)?;
            to.put(number.cast_signed())?;
            to.numbers([row.district, row.customer_warehouse, row.customer_district, row.customer])?;
            to.put(row.amount)?;
            to.text(&row.data)?;
        }
        Row::NewOrder(row) => to.numbers([row.warehouse, row.district, row.order])?,
        Row::Order(row) => {
            to.numbers([row.warehouse, row.district, row.order, row.customer])?;
            to.put(row.entered)?;
            to.put(row.carrier)?;
            to.put(row.lines)?;
            to.put(row.is_all_local)?;
        }
        Row::OrderLine(row) => {
            to.numbers([row.warehouse, row.district, row.order, row.line, row.item, row.supplied_by])?;
            to.put(row.delivered)?;
            to.put(row.quantity)?;
            to.put(row.amount)?;
            to.text(&row.district_info)?;
        }
        Row::Item(row) => {
            to.numbers([row.item, row.image])?;
            to.put(row.price)?;
            to.text(&row.name)?;
            to.text(&row.data)?;
        }
        Row::Stock(row) => {
            to.numbers([row.warehouse, row.item])?;
            to.put(row.quantity)?;
            to.put(row.sold.cast_signed())?;
            to.numbers([row.orders, row.remote_orders])?;
            for info in &row.districts {
                to.text(info)?;
            }
            to.text(&row.data)?;
        }
    }
    statement.raw_execute().map(drop).map_err(broken)
}

/// Binds the parameters of a statement, one after the other.
struct Parameters<'p, 's> {
    statement: &'p mut Statement<'s>,
    at: usize,
}

impl Parameters<'_, '_> {
    fn put(&mut self, value: impl ToSql) -> Result<(), Failure> {
        self.at += 1;
        self.statement.raw_bind_parameter(self.at, value).map_err(broken)
    }

    fn numbers<const N: usize>(&mut self, numbers: [u32; N]) -> Result<(), Failure> {
        numbers.into_iter().try_for_each(|number| self.put(number))
    }

    fn text<const N: usize>(&mut self, text: &Text<N>) -> Result<(), Failure> {
        self.put(as_sql(text))
    }

    fn address(&mut self, address: &Address) -> Result<(), Failure> {
        self.text(&address.street_1)?;
        self.text(&address.street_2)?;
        self.text(&address.city)?;
        self.text(&address.state)?;
        self.text(&address.zip)
    }
}

/// A text as a parameter.
pub fn as_sql<const N: usize>(text: &Text<N>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
}

/// Reads the columns of a result row, one after the other.
pub struct Columns<'r, 's> {
    row: &'r rusqlite::Row<'s>,
    at: usize,
}

impl<'r, 's> Columns<'r, 's> {
    /// The columns of `row`.
    pub fn of(row: &'r rusqlite::Row<'s>) -> Self {
        Self { row, at: 0 }
    }

    /// Returns the value of the next column.
    pub fn take<T: FromSql>(&mut self) -> Result<T, Failure> {
        let value = self.row.get(self.at).map_err(|error| wrong(format!("a row is not one of TPC-C: {error}")))?;
        self.at += 1;
        Ok(value)
    }

    fn text<const N: usize>(&mut self, text: &mut Text<N>) -> Result<(), Failure> {
        let value = self.row.get_ref(self.at).map_err(broken)?;
        match value {
            ValueRef::Text(bytes) if bytes.len() <= N => text.set(bytes),
            _ => return Err(wrong("a row is not one of TPC-C: a text is longer than its column, or none")),
        }
        self.at += 1;
        Ok(())
    }

    fn address(&mut self, address: &mut Address) -> Result<(), Failure> {
        self.text(&mut address.street_1)?;
        self.text(&mut address.street_2)?;
        self.text(&mut address.city)?;
        self.text(&mut address.state)?;
        self.text(&mut address.zip)
    }

    /// Reads a customer's account, the first columns of the table.
    pub fn account(&mut self, row: &mut Customer) -> Result<(), Failure> {
        (row.warehouse, row.district, row.customer) = (self.take()?, self.take()?, self.take()?);
        self.text(&mut row.last)?;
        self.text(&mut row.first)?;
        self.text(&mut row.middle)?;
        (row.has_good_credit, row.discount, row.balance) = (self.take()?, self.take()?, self.take()?);
        (row.paid_in_year, row.payments, row.deliveries) = (self.take()?, self.take()?, self.take()?);
        Ok(())
    }
}

/// A row that can be read from the columns of its table.
pub trait Read: Default {
    /// Overwrites this row with these columns.
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure>;
}

impl Read for Warehouse {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.warehouse, self.tax, self.year_to_date) = (from.take()?, from.take()?, from.take()?);
        from.text(&mut self.name)?;
        from.address(&mut self.address)
    }
}

impl Read for District {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.warehouse, self.district) = (from.take()?, from.take()?);
        (self.tax, self.year_to_date, self.next_order) = (from.take()?, from.take()?, from.take()?);
        from.text(&mut self.name)?;
        from.address(&mut self.address)
    }
}

impl Read for Customer {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        from.account(self)?;
        from.address(&mut self.address)?;
        from.text(&mut self.phone)?;
        (self.since, self.credit_limit) = (from.take()?, from.take()?);
        from.text(&mut self.data)
    }
}

impl Read for History {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.warehouse, self.date) = (from.take()?, from.take()?);
        from.take::<i64>()?;
        (self.district, self.customer_warehouse) = (from.take()?, from.take()?);
        (self.customer_district, self.customer, self.amount) = (from.take()?, from.take()?, from.take()?);
        from.text(&mut self.data)
    }
}

impl Read for NewOrder {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.warehouse, self.district, self.order) = (from.take()?, from.take()?, from.take()?);
        Ok(())
    }
}

impl Read for Order {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.warehouse, self.district, self.order) = (from.take()?, from.take()?, from.take()?);
        (self.customer, self.entered, self.carrier) = (from.take()?, from.take()?, from.take()?);
        (self.lines, self.is_all_local) = (from.take()?, from.take()?);
        Ok(())
    }
}

impl Read for OrderLine {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.warehouse, self.district, self.order) = (from.take()?, from.take()?, from.take()?);
        (self.line, self.item, self.supplied_by) = (from.take()?, from.take()?, from.take()?);
        (self.delivered, self.quantity, self.amount) = (from.take()?, from.take()?, from.take()?);
        from.text(&mut self.district_info)
    }
}

impl Read for Item {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.item, self.image, self.price) = (from.take()?, from.take()?, from.take()?);
        from.text(&mut self.name)?;
        from.text(&mut self.data)
    }
}

impl Read for Stock {
    fn read(&mut self, from: &mut Columns<'_, '_>) -> Result<(), Failure> {
        (self.warehouse, self.item, self.quantity) = (from.take()?, from.take()?, from.take()?);
        self.sold = from.take::<i64>()?.cast_unsigned();
        (self.orders, self.remote_orders) = (from.take()?, from.take()?);
        for info in &mut self.districts {
            from.text(info)?;
        }
        from.text(&mut self.data)
    }
}

//! The nine tables in SQLite: how they are created, how rows become statement parameters, and how results become rows.
//! `tpcc::columns` has the columns. All numbers are integers.
//!
//! A table whose key has several columns is stored in key order (`WITHOUT ROWID`). The key of a payment ends with a
//! rising number: a warehouse's payments are adjacent, new ones are appended, and the check can read them with one scan.

use super::super::broken;
use ::tpcc::columns::{self, Columns, Kind, Sink, Source, Value, key_columns};
use ::tpcc::schema::{Customer, Table};
use ::tpcc::transactions::wrong;
use ::tpcc::{Row, Text};
use harness::Failure;
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Statement, ToSql};

/// The columns of the key. That of a payment is the warehouse, the time, and a number.
fn key(table: Table) -> usize {
    if table == Table::History { 3 } else { key_columns(table) }
}

/// The SQL that creates `table`.
pub fn create(table: Table) -> String {
    let columns = columns::columns(table);
    let name = table.name();
    let kind =
        |kind: &Kind| if matches!(kind, Kind::Text(_) | Kind::Sorted(_) | Kind::Exact(_)) { "TEXT" } else { "INTEGER" };
    let mut parts: Vec<String> = columns.iter().map(|(name, of)| format!("{name} {}", kind(of))).collect();
    match key(table) {
        1 => {
            parts[0].push_str(" PRIMARY KEY");
            format!("CREATE TABLE {name} ({})", parts.join(", "))
        }
        count => {
            let key = columns[..count].iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            format!("CREATE TABLE {name} ({}, PRIMARY KEY ({key})) WITHOUT ROWID", parts.join(", "))
        }
    }
}

/// The SQL that inserts a row, with a parameter for each column.
pub fn insert(table: Table) -> String {
    let parameters = vec!["?"; columns::columns(table).len()].join(", ");
    format!("INSERT INTO {} VALUES ({parameters})", table.name())
}

/// The SQL that selects all columns of a warehouse's rows, or of all items, in key order.
pub fn select_all(table: Table) -> String {
    let key: Vec<&str> = columns::columns(table)[..key(table)].iter().map(|(name, _)| *name).collect();
    let (name, order) = (table.name(), key.join(", "));
    match table {
        Table::Item => format!("SELECT * FROM {name} ORDER BY {order}"),
        _ => format!("SELECT * FROM {name} WHERE {} = ? ORDER BY {order}", key[0]),
    }
}

/// Runs the statement from [`insert`] for `row`. `number` distinguishes payments of the same warehouse and time.
pub fn run_insert(statement: &mut Statement<'_>, row: Row<'_>, number: u64) -> Result<(), Failure> {
    columns::put(row, number, &mut Parameters { statement, at: 0 })?;
    statement.raw_execute().map(drop).map_err(broken)
}

/// Binds the parameters of a statement, one after the other.
struct Parameters<'p, 's> {
    statement: &'p mut Statement<'s>,
    at: usize,
}

impl Parameters<'_, '_> {
    fn bind(&mut self, value: impl ToSql) -> Result<(), Failure> {
        self.statement.raw_bind_parameter(self.at, value).map_err(broken)
    }
}

impl Sink for Parameters<'_, '_> {
    type Error = Failure;

    #[inline]
    fn put(&mut self, value: Value<'_>) -> Result<(), Failure> {
        self.at += 1;
        match value {
            Value::Number(number) => self.bind(number),
            Value::Signed(number) => self.bind(number),
            Value::OptionalNumber(number) => self.bind(number),
            Value::Long(number) | Value::Time(number) => self.bind(number),
            Value::OptionalTime(number) => self.bind(number),
            Value::Text(text) => self.bind(ToSqlOutput::Borrowed(ValueRef::Text(text))),
            Value::Credit(flag) | Value::Flag(flag) => self.bind(flag),
            Value::Unique(number) => self.bind(number.cast_signed()),
        }
    }
}

/// A text as a parameter.
pub fn as_sql<const N: usize>(text: &Text<N>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
}

/// Reads the columns of a result row, one after the other.
pub struct Found<'r, 's> {
    row: &'r rusqlite::Row<'s>,
    at: usize,
}

impl<'r, 's> Found<'r, 's> {
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

    /// Overwrites `row` with these columns.
    pub fn read<R: Columns>(&mut self, row: &mut R) -> Result<(), Failure> {
        row.read(self)
    }

    /// Reads a customer's account, the first columns of the table.
    pub fn account(&mut self, row: &mut Customer) -> Result<(), Failure> {
        columns::read_account(row, self)
    }
}

impl Source for Found<'_, '_> {
    type Error = Failure;

    #[inline]
    fn optional(&mut self) -> Result<Option<i64>, Failure> {
        self.take()
    }

    #[inline]
    fn text(&mut self, take: impl FnOnce(&[u8]) -> Result<(), &'static str>) -> Result<(), Failure> {
        let value = self.row.get_ref(self.at).map_err(broken)?;
        self.at += 1;
        match value {
            ValueRef::Text(bytes) => take(bytes).map_err(|what| self.bad(what)),
            _ => Err(self.bad("no text where one is due")),
        }
    }

    fn skip_unique(&mut self) -> Result<(), Failure> {
        self.at += 1;
        Ok(())
    }

    fn bad(&self, what: &'static str) -> Failure {
        wrong(format!("a row is not one of TPC-C: {what}"))
    }
}

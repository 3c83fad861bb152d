//! The key-value driver's partitions on PostgreSQL. The primary key is (partition key, clustering key), and its
//! index finds the rows of a partition in order. Requests go out through `flights`.
//!
//! ```text
//!   values      (pk bigint, ck bigint, v bytea, PRIMARY KEY (pk, ck))
//!   counters    (pk bigint, ck bigint, c1 bigint, …, c5 bigint, PRIMARY KEY (pk, ck))
//! ```

use crate::postgres::address::{Address, in_environment};
use crate::postgres::connection::Connection;
use crate::postgres::dialect::{self, Dialect};
use crate::postgres::error::{Error, SqlState};
use crate::postgres::flights::{self, Requests, Shape};
use crate::postgres::statements::quoted;
use crate::postgres::store::{counts, engine, first_process, setting, used};
use crate::postgres::wire::Statement;
use ::kv::database::not_written;
use ::kv::{Content, Database, KvScheme, Setup};
use harness::{
    Clock, Counter, Failure, Opening, Order, PartitionRequest, PartitionRows, Request, Session, Setting, Store,
    StoreUse, Target,
};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

#[cfg(test)]
mod tests;

/// `postgres://…`.
pub const SCHEME: KvScheme = KvScheme {
    name: "postgres",
    networked: true,
    unused: &[
        ("keyspace", "the table lies in the schema that the user's search path begins with"),
        ("consistency-level", "a commit waits as the server's synchronous_commit says"),
        ("replication-factor", "copies are set up in the server"),
        ("client-compression", "messages of PostgreSQL are not compressed"),
        ("host-selection-policy", "the target names one server"),
        ("bypass-cache", "PostgreSQL has no reads around its cache"),
        ("page-size", "the rows of a scan come as one stream"),
        ("timeout", "the server does it: add statement_timeout to the target, in milliseconds"),
    ],
    open: |target, setup| open(&dialect::POSTGRES, target, setup),
};

/// `cockroach://…`.
pub const COCKROACH: KvScheme =
    KvScheme { name: "cockroach", open: |target, setup| open(&dialect::COCKROACH, target, setup), ..SCHEME };

/// `yugabyte://…`.
pub const YUGABYTE: KvScheme =
    KvScheme { name: "yugabyte", open: |target, setup| open(&dialect::YUGABYTE, target, setup), ..SCHEME };

/// An open database, with the table that the run uses.
struct Postgres {
    dialect: &'static Dialect,
    address: Address,
    statements: Statements,
    connections: usize,
    pipeline: usize,
    control: Mutex<Connection>,
    /// The server's counters when the store was opened.
    before: Vec<Counter>,
    /// Whether reads may share a transaction.
    groups: bool,
    /// The server's postmaster process, if it runs on this machine.
    server: Option<u32>,
}

fn open(dialect: &'static Dialect, target: &Target, setup: &Setup) -> Result<Box<dyn Database>, Failure> {
    let address = Address::of(target, dialect, in_environment)?;
    let mut control = Connection::open(&address)?;
    control.query("SET client_min_messages = warning")?;
    let statements = Statements::new(setup);
    if setup.opening != Opening::Existing {
        control.query(&statements.create())?;
    }
    control.query(&statements.probe()).map_err(|error| {
        if error.sqlstate() == Some(SqlState::UNDEFINED_TABLE) {
            return not_written(&setup.table, format_args!("{address:?}"));
        }
        let mut failure = Failure::from(error);
        failure.text =
            format!("table `{}` was made otherwise: name another one with -table; {}", setup.table, failure.text);
        failure
    })?;
    // Other servers lack some of these counters.
    let before = counts(&mut control).unwrap_or_default();
    let groups = setting(&mut control, "default_transaction_isolation")? != "serializable";
    // A target with more than one connection overrides `-connection-count`.
    let connections = match address.connections {
        1 => setup.connections_a_session().min(setup.requests_a_session()),
        more => more as usize,
    };
    let pipeline = setup.requests_a_session().div_ceil(connections).max(address.pipeline as usize);
    let server = first_process(&mut control, &address);
    let control = Mutex::new(control);
    Ok(Box::new(Postgres { dialect, address, statements, connections, pipeline, control, before, groups, server }))
}

impl Postgres {
    fn control(&self) -> MutexGuard<'_, Connection> {
        // If a thread panicked in the middle of a statement, the connection reports an error at its next use.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepared(&self) -> Result<Connection, Error> {
        let mut connection = Connection::open(&self.address)?;
        connection.prepare(self.statements.sql.iter().map(|(name, sql)| (name.as_str(), sql.as_str())))?;
        Ok(connection)
    }

    /// Looks up the least and the greatest partition key, so that a scan can be divided into parts.
    fn look_at_bounds(&self) -> Result<(), Failure> {
        let mut bounds = self.statements.bounds.write().unwrap_or_else(PoisonError::into_inner);
        if bounds.is_some() {
            return Ok(());
        }
        let rows = self.control().query(&format!("SELECT min(pk), max(pk) FROM {}", self.statements.table))?;
        let number = |column: usize| rows.first()?.get(column)?.as_ref()?.parse::<i64>().ok();
        *bounds = number(0).zip(number(1));
        Ok(())
    }
}

impl Database for Postgres {
    fn truncate(&self) -> Result<(), Failure> {
        self.control().query(&format!("TRUNCATE {}", self.statements.table))?;
        *self.statements.bounds.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn drop_table(&self) -> Result<(), Failure> {
        self.control().query(&format!("DROP TABLE {}", self.statements.table))?;
        Ok(())
    }
}

impl Store for Postgres {
    fn settings(&self) -> Vec<Setting> {
        let mut control = self.control();
        let engine = engine(self.dialect, &control);
        let mut show = |name: &str| setting(&mut control, name).unwrap_or_default();
        vec![
            engine,
            Setting::new(
                "durability",
                format!("fsync {}, synchronous_commit {}", show("fsync"), show("synchronous_commit")),
            ),
            Setting::new("cache", format!("{} (shared_buffers)", show("shared_buffers"))),
            Setting::new("isolation", show("default_transaction_isolation")),
            Setting::new(
                "client",
                format!(
                    "{} at {}, a thread: {} connections with {} requests each",
                    self.address.database, self.address.place, self.connections, self.pipeline
                ),
            ),
        ]
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        self.look_at_bounds()?;
        let connections = (0..self.connections).map(|_| self.prepared()).collect::<Result<_, _>>()?;
        let session = flights::Session::new(&self.statements, connections, self.pipeline, self.groups, clock)?;
        Ok(Session::Flights(Box::new(session)))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", self.statements.table);
        Ok(self.control().value(&sql)? == "f")
    }

    fn counters(&self) -> Vec<Counter> {
        let now = counts(&mut self.control()).unwrap_or_default();
        let since = |now: &Counter| {
            let before = self.before.iter().find(|before| before.name == now.name).map_or(0, |before| before.value);
            Counter::of(now.name, now.value.saturating_sub(before))
        };
        now.iter().map(since).collect()
    }

    /// What all processes of the server use, if it runs on this machine and we may see them.
    fn used(&self) -> StoreUse {
        used(self.server)
    }

    fn settle(&self) -> Result<(), Failure> {
        if self.dialect.has_vacuum {
            self.control().query(&format!("VACUUM (ANALYZE) {}", self.statements.table))?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// The prepared statements of a table. The name of each is its index in `sql`.
struct Statements {
    table: String,
    content: Content,
    sql: Vec<(String, String)>,
    prepared: Vec<Statement>,
    /// The least and the greatest partition key, once looked up.
    bounds: RwLock<Option<(i64, i64)>>,
}

/// Indexes of statements. Each way to read has three of them: one for each order of the rows.
const FROM: usize = 0;
const FIRST: usize = 3;
const BETWEEN: usize = 6;
const OF: usize = 9;
const SCAN: usize = 12;
/// A table of values has `INSERT` for one row and `INSERT_MANY` for several. A table of counters has `ADD` instead.
const INSERT: usize = 13;
const INSERT_MANY: usize = 14;
const ADD: usize = 13;

impl Statements {
    fn new(setup: &Setup) -> Self {
        let table = quoted(&setup.table);
        let given = match setup.content {
            Content::Values => "v",
            Content::Counters => "c1, c2, c3, c4, c5",
        };
        let orders = ["", " ORDER BY ck", " ORDER BY ck DESC"];
        let mut all: Vec<(String, u16)> = Vec::new();
        for (condition, limit, parameters) in [
            (" AND ck >= $2", " LIMIT $3", 3),
            ("", " LIMIT $2", 2),
            (" AND ck >= $2 AND ck < $3", "", 3),
            (" AND ck = ANY ($2::bigint[])", "", 2),
        ] {
            for order in orders {
                let sql = format!("SELECT ck, {given} FROM {table} WHERE pk = $1{condition}{order}{limit}");
                all.push((sql, parameters));
            }
        }
        all.push((format!("SELECT pk, ck, {given} FROM {table} WHERE pk BETWEEN $1 AND $2"), 2));
        match setup.content {
            Content::Values => {
                let replace = "ON CONFLICT (pk, ck) DO UPDATE SET v = EXCLUDED.v";
                all.push((format!("INSERT INTO {table} (pk, ck, v) VALUES ($1, $2, $3) {replace}"), 3));
                let rows = "SELECT $1::bigint, ck, v FROM unnest($2::bigint[], $3::bytea[]) AS given (ck, v)";
                all.push((format!("INSERT INTO {table} (pk, ck, v) {rows} {replace}"), 3));
            }
            Content::Counters => {
                let sums = (1..=5).map(|number| format!("c{number} = was.c{number} + EXCLUDED.c{number}"));
                let sums = sums.collect::<Vec<_>>().join(", ");
                all.push((
                    format!(
                        "INSERT INTO {table} AS was (pk, ck, {given}) VALUES ($1, $2, $3, $4, $5, $6, $7) \
                         ON CONFLICT (pk, ck) DO UPDATE SET {sums}"
                    ),
                    7,
                ));
            }
        }
        let prepared =
            all.iter().enumerate().map(|(number, (_, parameters))| Statement::new(&number.to_string(), *parameters));
        let prepared = prepared.collect();
        let sql = all.into_iter().enumerate().map(|(number, (sql, _))| (number.to_string(), sql)).collect();
        Self { table, content: setup.content, sql, prepared, bounds: RwLock::new(None) }
    }

    fn create(&self) -> String {
        let columns = match self.content {
            Content::Values => "v bytea".to_owned(),
            Content::Counters => (1..=5).map(|n| format!("c{n} bigint")).collect::<Vec<_>>().join(", "),
        };
        let table = &self.table;
        format!("CREATE TABLE IF NOT EXISTS {table} (pk bigint, ck bigint, {columns}, PRIMARY KEY (pk, ck))")
    }

    /// Returns a statement that fails unless the table exists and has these columns.
    fn probe(&self) -> String {
        let given = match self.content {
            Content::Values => "v",
            Content::Counters => "c1, c2, c3, c4, c5",
        };
        format!("SELECT pk, ck, {given} FROM {} LIMIT 0", self.table)
    }

    /// The first and the last partition key of a part.
    fn part(&self, part: u32, parts: u32) -> (i64, i64) {
        let bounds = *self.bounds.read().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = bounds.unwrap_or((0, 0));
        let width = i128::from(last) - i128::from(first) + 1;
        let begin = |part: u32| i128::from(first) + width * i128::from(part) / i128::from(parts);
        // The outermost parts extend to the least and greatest number, so they include partitions that were added
        // after the bounds were looked up.
        let from = if part == 0 { i64::MIN } else { begin(part) as i64 };
        let to = if part + 1 == parts { i64::MAX } else { (begin(part + 1) - 1) as i64 };
        (from, to)
    }
}

fn in_order(first: usize, order: Option<Order>) -> usize {
    first
        + match order {
            None => 0,
            Some(Order::Ascending) => 1,
            Some(Order::Descending) => 2,
        }
}

fn limited(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Requests for Statements {
    #[inline]
    fn shape<'r>(&self, request: &Request<'r>) -> Option<(Shape, &'r [u8])> {
        let Request::Partition(request) = request else { return None };
        match (request, self.content) {
            (PartitionRequest::Read { .. }, _) => Some((Shape::Partition, b"")),
            (PartitionRequest::Scan { .. }, _) => Some((Shape::Scanned, b"")),
            (PartitionRequest::Insert { .. }, Content::Values) | (PartitionRequest::Add { .. }, Content::Counters) => {
                Some((Shape::Added, b""))
            }
            (PartitionRequest::Insert { .. } | PartitionRequest::Add { .. }, _) => None,
        }
    }

    #[inline]
    fn put(&self, request: &Request<'_>, out: &mut Vec<u8>) {
        let Request::Partition(request) = request else { unreachable!("its shape is none") };
        match *request {
            PartitionRequest::Insert { pk, cks: [ck], values } => {
                let mut binding = self.prepared[INSERT].bind(out);
                binding.number(pk);
                binding.number(*ck);
                binding.bytes(values.get(0).expect("each row has a value"));
                binding.finish();
            }
            PartitionRequest::Insert { pk, cks, values } => {
                let mut binding = self.prepared[INSERT_MANY].bind(out);
                binding.number(pk);
                binding.numbers(cks);
                binding.byte_strings(values.iter());
                binding.finish();
            }
            PartitionRequest::Add { pk, ck, by } => {
                let mut binding = self.prepared[ADD].bind(out);
                binding.number(pk);
                binding.number(ck);
                by.into_iter().for_each(|by| binding.number(by));
                binding.finish();
            }
            PartitionRequest::Scan { part, parts } => {
                let (from, to) = self.part(part, parts);
                let mut binding = self.prepared[SCAN].bind(out);
                binding.number(from);
                binding.number(to);
                binding.finish();
            }
            PartitionRequest::Read { pk, rows, order } => match rows {
                PartitionRows::From { ck, limit } => {
                    let mut binding = self.prepared[in_order(FROM, order)].bind(out);
                    binding.number(pk);
                    binding.number(ck);
                    binding.number(limited(limit));
                    binding.finish();
                }
                PartitionRows::First { limit } => {
                    let mut binding = self.prepared[in_order(FIRST, order)].bind(out);
                    binding.number(pk);
                    binding.number(limited(limit));
                    binding.finish();
                }
                PartitionRows::Between { from, to } => {
                    let mut binding = self.prepared[in_order(BETWEEN, order)].bind(out);
                    binding.number(pk);
                    binding.number(from);
                    binding.number(to);
                    binding.finish();
                }
                PartitionRows::Of(cks) => {
                    let mut binding = self.prepared[in_order(OF, order)].bind(out);
                    binding.number(pk);
                    binding.numbers(cks);
                    binding.finish();
                }
            },
        }
    }
}

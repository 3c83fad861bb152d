//! The CQL of a table of partitions, whose rows hold a value or five counters.

use harness::Order;
use harness::partitions::COUNTERS;
use kv::{Content, Setup};
use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;

/// The text of the statements on a table.
#[derive(Clone, Debug)]
pub struct Statements {
    /// `keyspace.table`.
    table: String,
    content: Content,
}

impl Statements {
    /// The statements of this table.
    pub fn new(keyspace: &str, table: &str, content: Content) -> Self {
        Self { table: format!("{keyspace}.{table}"), content }
    }

    /// What the rows hold.
    pub fn content(&self) -> Content {
        self.content
    }

    /// CQL that creates the keyspace unless it exists.
    pub fn create_keyspace(keyspace: &str, replication: u32) -> String {
        format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', \
             'replication_factor': {replication}}}"
        )
    }

    /// CQL that creates the table unless it exists.
    pub fn create(&self, compressed: bool) -> String {
        let columns = match self.content {
            Content::Values => "v blob".to_owned(),
            Content::Counters => counters(|name| format!("{name} counter")),
        };
        let compression = if compressed { "'class': 'LZ4Compressor'" } else { "'enabled': false" };
        format!(
            "CREATE TABLE IF NOT EXISTS {} (pk bigint, ck bigint, {columns}, PRIMARY KEY (pk, ck)) \
             WITH compression = {{{compression}}}",
            self.table
        )
    }

    /// CQL that drops the table.
    pub fn remove(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.table)
    }

    /// CQL that removes all rows.
    pub fn truncate(&self) -> String {
        format!("TRUNCATE TABLE {}", self.table)
    }

    /// CQL that reads at most one row. Fails if the table does not exist or has other columns.
    pub fn probe(&self) -> String {
        format!("SELECT pk, ck, {} FROM {} LIMIT 1", self.selected(), self.table)
    }

    fn selected(&self) -> String {
        match self.content {
            Content::Values => "v".to_owned(),
            Content::Counters => counters(str::to_owned),
        }
    }

    fn write(&self) -> String {
        match self.content {
            Content::Values => format!("INSERT INTO {} (pk, ck, v) VALUES (?, ?, ?)", self.table),
            Content::Counters => {
                let sums = counters(|name| format!("{name} = {name} + ?"));
                format!("UPDATE {} SET {sums} WHERE pk = ? AND ck = ?", self.table)
            }
        }
    }

    fn read(&self, rows: &str, order: Option<Order>) -> String {
        let (mut condition, mut limit) = (rows, "");
        if let Some(before) = rows.strip_suffix(" LIMIT ?") {
            (condition, limit) = (before, " LIMIT ?");
        }
        let order = match order {
            None => "",
            Some(Order::Ascending) => " ORDER BY ck ASC",
            Some(Order::Descending) => " ORDER BY ck DESC",
        };
        format!("SELECT ck, {} FROM {} WHERE pk = ?{condition}{order}{limit}", self.selected(), self.table)
    }

    fn scan(&self) -> String {
        format!("SELECT pk, ck, {} FROM {} WHERE token(pk) >= ? AND token(pk) <= ?", self.selected(), self.table)
    }
}

/// Calls `make` with `c1`, `c2`, …, and joins the results with commas.
fn counters(make: impl Fn(&str) -> String) -> String {
    (1..=COUNTERS).map(|number| make(&format!("c{number}"))).collect::<Vec<_>>().join(", ")
}

/// The prepared statements of a session, with the parameters of reads.
pub(crate) struct Prepared {
    /// Inserts a row, or adds to its counters.
    pub write: PreparedStatement,
    /// `pk`, first `ck`, limit.
    pub from: Ordered,
    /// `pk`, limit.
    pub first: Ordered,
    /// `pk`, first `ck`, end of `ck` (exclusive).
    pub between: Ordered,
    /// `pk`, list of `ck`.
    pub of: Ordered,
    /// First and last token.
    pub scan: PreparedStatement,
}

/// A read statement for each order of rows.
pub(crate) struct Ordered {
    any: PreparedStatement,
    ascending: PreparedStatement,
    descending: PreparedStatement,
}

impl Ordered {
    /// The statement for this order.
    pub(crate) fn by(&self, order: Option<Order>) -> &PreparedStatement {
        match order {
            None => &self.any,
            Some(Order::Ascending) => &self.ascending,
            Some(Order::Descending) => &self.descending,
        }
    }
}

impl Prepared {
    /// Prepares all statements.
    pub(crate) async fn new(session: &Session, statements: &Statements, setup: &Setup) -> Result<Self, PrepareError> {
        // The protocol has only 31 bits for the page size.
        let page_rows = i32::try_from(setup.page_rows).unwrap_or(i32::MAX);
        let ordered = async |rows: &str| {
            let read = async |order| prepared(session, statements.read(rows, order), page_rows, true).await;
            Ok::<_, PrepareError>(Ordered {
                any: read(None).await?,
                ascending: read(Some(Order::Ascending)).await?,
                descending: read(Some(Order::Descending)).await?,
            })
        };
        Ok(Self {
            write: prepared(session, statements.write(), page_rows, statements.content == Content::Values).await?,
            from: ordered(" AND ck >= ? LIMIT ?").await?,
            first: ordered(" LIMIT ?").await?,
            between: ordered(" AND ck >= ? AND ck < ?").await?,
            of: ordered(" AND ck IN ?").await?,
            scan: prepared(session, statements.scan(), page_rows, true).await?,
        })
    }
}

async fn prepared(
    session: &Session,
    text: String,
    page_rows: i32,
    idempotent: bool,
) -> Result<PreparedStatement, PrepareError> {
    let mut prepared = session.prepare(Statement::new(text).with_page_size(page_rows)).await?;
    prepared.set_is_idempotent(idempotent);
    prepared.set_use_cached_result_metadata(true);
    Ok(prepared)
}

//! How the databases that speak PostgreSQL's protocol differ from PostgreSQL, where the difference matters to
//! TPC-C. The entries of CockroachDB and YugabyteDB were written from their manuals and were never run, because no
//! server of either was available.

use super::isolation::Isolation;

/// A kind of server.
#[derive(Debug)]
pub struct Dialect {
    /// Its name.
    pub name: &'static str,
    /// The port that is used if a target names no port.
    pub port: &'static str,
    /// Whether rows are stored in the order of their primary key. If they are, the key must exist before the rows
    /// are loaded. Otherwise the index of the key is made after the load, which is faster.
    pub has_keys_from_the_start: bool,
    /// The SQL that makes a column be compared byte by byte.
    pub bytes_collation: &'static str,
    /// Storage options for the two small tables whose rows change all the time.
    pub hot_storage: &'static str,
    /// The kind of index that finds payments by their warehouse.
    pub history_index: &'static str,
    /// Settings of sessions that carry out transactions.
    pub settings: &'static [(&'static str, &'static str)],
    /// How several sessions can read the state of the same moment.
    pub moment: Moment,
    /// The statement that makes deliveries of one warehouse wait for each other. Its parameter is the warehouse.
    delivery_lock: &'static str,
    /// The statement that lets one session at a time make functions, until its transaction ends.
    pub lock_for_functions: &'static str,
    /// Whether it has VACUUM and CHECKPOINT.
    pub has_vacuum: bool,
}

/// How several sessions can read the state of the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// One session exports its snapshot, and the other sessions import it.
    ExportedSnapshot,
    /// All sessions read the state that the database had at one given time.
    SystemTime,
    /// Sessions cannot see the same moment, so nothing else may run while the database is checked.
    None,
}

/// PostgreSQL.
pub static POSTGRES: Dialect = Dialect {
    name: "PostgreSQL",
    port: "5432",
    has_keys_from_the_start: false,
    bytes_collation: " COLLATE \"C\"",
    // A new version of a row fits on the row's own page, and so needs no new entry in the index.
    hot_storage: " WITH (fillfactor = 10)",
    history_index: "USING brin ",
    settings: &[
        // Statements are planned once.
        ("plan_cache_mode", "force_generic_plan"),
        // Each row is found by an index. A plan that reads whole tables seems cheap for small tables, but it would
        // make serializable transactions conflict with all other transactions.
        ("enable_seqscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        // A bitmap scan does not mark entries of the index as dead, so the next scan reads them again. A row that is
        // updated all the time has many dead entries.
        ("enable_bitmapscan", "off"),
        ("jit", "off"),
    ],
    moment: Moment::ExportedSnapshot,
    delivery_lock: "SELECT 1 FROM (SELECT pg_advisory_xact_lock($1::int4, 1414549571)) AS locked",
    lock_for_functions: "SELECT pg_advisory_xact_lock(1414549571); ",
    has_vacuum: true,
};

/// CockroachDB, whose strings are compared byte by byte.
pub static COCKROACH: Dialect =
    Dialect { name: "CockroachDB", port: "26257", moment: Moment::SystemTime, ..ROWS_BY_KEY };

/// YugabyteDB.
pub static YUGABYTE: Dialect = Dialect {
    name: "YugabyteDB",
    port: "5433",
    bytes_collation: " COLLATE \"C\"",
    moment: Moment::None,
    ..ROWS_BY_KEY
};

/// What CockroachDB and YugabyteDB have in common: the primary key of a row decides where the row is stored.
const ROWS_BY_KEY: Dialect = Dialect {
    name: "",
    port: "",
    has_keys_from_the_start: true,
    bytes_collation: "",
    hot_storage: "",
    history_index: "",
    settings: &[],
    moment: Moment::None,
    // Advisory locks do nothing in CockroachDB, and YugabyteDB has none before 2025.
    delivery_lock: "SELECT 1 FROM warehouse WHERE w_id = $1::int4 FOR UPDATE",
    lock_for_functions: "",
    has_vacuum: false,
};

impl Dialect {
    /// The statement that makes deliveries of a warehouse wait for each other. `None` if the isolation level needs
    /// no such wait. At read committed, without this statement, a delivery that waited for another delivery still
    /// sees the orders from before the wait. The delivery would then find no order, although a next order exists.
    pub fn delivery_lock(&self, isolation: Isolation) -> Option<&'static str> {
        (isolation == Isolation::ReadCommitted).then_some(self.delivery_lock)
    }
}

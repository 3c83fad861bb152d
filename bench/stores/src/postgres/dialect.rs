//! What the workloads do differently on each database that speaks PostgreSQL's protocol. The dialects of CockroachDB
//! and YugabyteDB were written from their manuals and were never run on a server of either, because none was available.
//! Tests run them on PostgreSQL.

/// A kind of server.
#[derive(Debug)]
pub struct Dialect {
    /// The name of the database.
    pub name: &'static str,
    /// The default port.
    pub port: &'static str,
    /// Whether tables get their primary key before the load, which is needed if rows are stored in key order.
    /// Otherwise the key's index is built after the load, which is faster.
    pub has_keys_from_the_start: bool,
    /// The SQL that makes a column compare byte by byte.
    pub bytes_collation: &'static str,
    /// Storage options for the two small tables whose rows are updated all the time.
    pub hot_storage: &'static str,
    /// The index method for payments by warehouse.
    pub history_index: &'static str,
    /// Settings of the sessions that run transactions.
    pub settings: &'static [(&'static str, &'static str)],
    /// How several sessions can share a snapshot.
    pub moment: Moment,
    /// The statement that serializes the deliveries of a warehouse, which is its parameter.
    pub delivery_lock: &'static str,
    /// The statement that lets one session at a time make functions, until its transaction ends.
    pub lock_for_functions: &'static str,
    /// Whether the database has VACUUM and CHECKPOINT.
    pub has_vacuum: bool,
}

/// How several sessions can share a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// One session exports its snapshot, and the other sessions import it.
    ExportedSnapshot,
    /// All sessions read as of the same system time.
    SystemTime,
    /// Sessions cannot share a snapshot, so nothing else may run while the database is checked.
    None,
}

/// PostgreSQL.
pub static POSTGRES: Dialect = Dialect {
    name: "PostgreSQL",
    port: "5432",
    has_keys_from_the_start: false,
    bytes_collation: " COLLATE \"C\"",
    // New row versions fit on the same page and so need no new index entry (HOT updates).
    hot_storage: " WITH (fillfactor = 10)",
    history_index: "USING brin ",
    settings: &[
        // Plan each statement once.
        ("plan_cache_mode", "force_generic_plan"),
        // Find rows by index. A sequential scan looks cheap on small tables, but makes serializable transactions
        // conflict with all others.
        ("enable_seqscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        // A bitmap scan does not mark index entries as dead, so later scans read them again, and frequently updated
        // rows have many.
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

/// The common part of CockroachDB and YugabyteDB, which store rows by primary key.
const ROWS_BY_KEY: Dialect = Dialect {
    name: "",
    port: "",
    has_keys_from_the_start: true,
    bytes_collation: "",
    hot_storage: "",
    history_index: "",
    settings: &[],
    moment: Moment::None,
    // CockroachDB's advisory locks do nothing, and YugabyteDB has none before 2025.
    delivery_lock: "SELECT 1 FROM warehouse WHERE w_id = $1::int4 FOR UPDATE",
    lock_for_functions: "",
    has_vacuum: false,
};

//! The SQL that creates the tables and indexes, notes what is loaded, and reads what was noted.
//!
//! Two tables of our own describe the database: `tpcc_about` records how it was made, and `tpcc_parts` which parts
//! are loaded. `tpcc_about` is created first and dropped last. Some servers do not create and drop tables
//! transactionally; if a crash leaves only some of them, `tpcc_about` shows that they are ours.

use super::columns::{self, BYTES_COLLATION};
use crate::postgres::dialect::Dialect;
use ::tpcc::{Form, Part, Table};

/// The name of the table that records how the database was made.
pub const ABOUT: &str = "tpcc_about";
/// The name of the table that lists the loaded parts.
pub const PARTS: &str = "tpcc_parts";

/// The names of all tables that we create. An existing table or index with one of them may be another program's.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    Table::ALL.map(Table::name).into_iter().chain([PARTS, ABOUT])
}

/// SQL that creates all tables.
pub fn create(dialect: &Dialect, form: &Form) -> String {
    let mut sql = format!(
        "BEGIN; CREATE TABLE {ABOUT} (warehouses int4 NOT NULL, seed int8 NOT NULL, loaded int8 NOT NULL); \
         INSERT INTO {ABOUT} VALUES ({}, {}, {}); \
         CREATE TABLE {PARTS} (part varchar(100) PRIMARY KEY); ",
        form.warehouses,
        form.seed.cast_signed(),
        form.loaded
    );
    for table in Table::ALL {
        let mut parts = columns::definitions(table);
        if let (true, Some(key)) = (dialect.has_keys_from_the_start, columns::key(table)) {
            parts.push(format!("PRIMARY KEY ({key})"));
        }
        let columns = parts.join(", ").replace(BYTES_COLLATION, dialect.bytes_collation);
        let storage = match table {
            Table::Warehouse | Table::District => dialect.hot_storage,
            _ => "",
        };
        sql += &format!("CREATE TABLE {} ({columns}){storage}; ", table.name());
    }
    sql + "COMMIT"
}

/// SQL that reads how the database was made.
pub fn form() -> String {
    format!("SELECT warehouses, seed, loaded FROM {ABOUT}")
}

/// SQL that returns whether the schema for new tables has a table or index called `name`: `t` or `f`.
pub fn is_there(name: &str) -> String {
    format!("SELECT to_regclass(quote_ident(current_schema()) || '.{name}') IS NOT NULL")
}

fn part_name(part: &Part) -> String {
    format!("{} {} {}", part.table.name(), part.warehouses.start(), part.warehouses.end())
}

/// SQL that notes that a part is loaded.
pub fn note_part(part: &Part) -> String {
    format!("INSERT INTO {PARTS} VALUES ('{}')", part_name(part))
}

/// SQL that returns whether a part is loaded: `t` or `f`.
pub fn is_loaded(part: &Part) -> String {
    format!("SELECT EXISTS (SELECT 1 FROM {PARTS} WHERE part = '{}')", part_name(part))
}

/// SQL that returns whether a table has a primary key: `t` or `f`.
pub fn has_key(table: Table) -> String {
    format!("SELECT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = '{}'::regclass AND indisprimary)", table.name())
}

/// SQL that gives a table its primary key.
pub fn make_key(table: Table, key: &str) -> String {
    format!("ALTER TABLE {} ADD PRIMARY KEY ({key})", table.name())
}

/// The names of all indexes except the primary keys.
pub const INDEXES: [&str; 3] = ["customers_by_name", "orders_by_customer", "payments_by_warehouse"];

/// SQL that creates the [`INDEXES`] that do not exist yet.
pub fn make_indexes(dialect: &Dialect) -> [String; 3] {
    let brin = dialect.history_index;
    [
        "CREATE INDEX IF NOT EXISTS customers_by_name ON customer (c_w_id, c_d_id, c_last, c_first, c_id)".to_owned(),
        "CREATE INDEX IF NOT EXISTS orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)".to_owned(),
        // Only the check reads payments by warehouse, never a transaction, so this index must be cheap to maintain.
        format!("CREATE INDEX IF NOT EXISTS payments_by_warehouse ON history {brin}(h_w_id)"),
    ]
}

/// SQL that selects the rows of a warehouse, its parameter, in key order. Payments are sorted by customer.
pub fn rows(table: Table) -> String {
    let (names, name) = (columns::names(table), table.name());
    let (warehouse, order) = match table {
        Table::Item => return format!("SELECT {names} FROM {name} WHERE $1::int4 = 0 ORDER BY i_id"),
        Table::History => ("h_w_id", "h_c_d_id, h_c_id".to_owned()),
        _ => (columns::first(table), columns::key(table).expect("only payments have no key")),
    };
    format!("SELECT {names} FROM {name} WHERE {warehouse} = $1 ORDER BY {order}")
}

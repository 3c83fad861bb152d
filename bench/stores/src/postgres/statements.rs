//! The SQL of a table and of the requests on it, simple enough for other databases that speak PostgreSQL's protocol.
//!
//! The table is that of YCSB's SQL binding: a varchar key and text fields. Fields are text and not bytes so that the
//! server does the same work as in published results; it therefore refuses values that are not UTF-8. Keys are in
//! byte order (collation "C"), which scans expect.

use crate::postgres::dialect::Dialect;
use crate::postgres::wire::Statement;
use harness::{Fields, Request, Table};

#[cfg(test)]
mod tests;

/// YCSB's name for the key column.
const KEY: &str = "ycsb_key";

/// The prepared statements of a table. The name of each is its index in `sql`.
pub struct Statements {
    sql: Vec<String>,
    prepared: Vec<Statement>,
    /// The quoted names of the fields.
    fields: Vec<String>,
    table: String,
}

impl Statements {
    /// The statements of `table`.
    pub fn new(table: &Table) -> Self {
        let name = quoted(&table.name);
        let fields: Vec<String> = table.fields.iter().map(|field| quoted(field)).collect();
        let columns = fields.join(", ");
        // What a statement selects: all fields, or one of them.
        let given: Vec<&str> = std::iter::once(columns.as_str()).chain(fields.iter().map(String::as_str)).collect();

        let mut all: Vec<(String, usize)> = Vec::new();
        for given in &given {
            all.push((format!("SELECT {given} FROM {name} WHERE {KEY} = $1"), 1));
        }
        // Each key is looked up separately, even if it is given twice. The LIMIT keeps the planner from using a
        // join.
        for given in &given {
            let lookup = format!("SELECT {given} FROM {name} WHERE {KEY} = wanted.key LIMIT 1");
            let keys = "unnest($1::text[]) AS wanted (key)";
            all.push((format!("SELECT wanted.key, found.* FROM {keys} CROSS JOIN LATERAL ({lookup}) AS found"), 1));
        }
        for given in &given {
            let sql = format!("SELECT {KEY}, {given} FROM {name} WHERE {KEY} >= $1 ORDER BY {KEY} LIMIT $2");
            all.push((sql, 2));
        }
        for field in &fields {
            all.push((format!("UPDATE {name} SET {field} = $2 WHERE {KEY} = $1"), 2));
        }
        let numbered = |join: &dyn Fn(usize, &String) -> String| {
            fields.iter().enumerate().map(|(index, field)| join(index + 2, field)).collect::<Vec<_>>().join(", ")
        };
        let values = numbered(&|number, _| format!("${number}"));
        all.push((format!("INSERT INTO {name} ({KEY}, {columns}) VALUES ($1, {values})"), 1 + fields.len()));
        let assignments = numbered(&|number, field| format!("{field} = ${number}"));
        all.push((format!("UPDATE {name} SET {assignments} WHERE {KEY} = $1"), 1 + fields.len()));
        all.push((format!("DELETE FROM {name} WHERE {KEY} = $1"), 1));

        let prepared = all.iter().enumerate().map(|(number, (_, parameters))| {
            let parameters = u16::try_from(*parameters).expect("a table has fewer fields than statements may have");
            Statement::new(&number.to_string(), parameters)
        });
        let prepared = prepared.collect();
        let sql = all.into_iter().map(|(sql, _)| sql).collect();
        Self { sql, prepared, fields, table: name }
    }

    /// Name and SQL of each statement, for preparing them.
    pub fn all(&self) -> impl Iterator<Item = (String, &str)> {
        self.sql.iter().enumerate().map(|(number, sql)| (number.to_string(), sql.as_str()))
    }

    /// SQL that creates the table unless it exists.
    pub(crate) fn create(&self, dialect: &Dialect) -> String {
        let fields = self.fields.iter().map(|field| format!("{field} text")).collect::<Vec<_>>().join(", ");
        let collation = dialect.bytes_collation;
        format!("CREATE TABLE IF NOT EXISTS {} ({KEY} varchar{collation} PRIMARY KEY, {fields})", self.table)
    }

    /// SQL that drops the table.
    pub fn remove(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.table)
    }

    /// SQL that fails unless the table exists and has these fields. It returns no row.
    pub fn probe(&self) -> String {
        format!("SELECT {KEY}, {} FROM {} LIMIT 0", self.fields.join(", "), self.table)
    }

    /// SQL that returns whether the table has rows: `t` or `f`.
    pub fn has_rows(&self) -> String {
        format!("SELECT EXISTS (SELECT 1 FROM {})", self.table)
    }

    /// The COPY statement that takes rows in the binary format.
    pub fn copy(&self) -> String {
        format!("COPY {} ({KEY}, {}) FROM STDIN (FORMAT binary)", self.table, self.fields.join(", "))
    }

    /// SQL that removes dead row versions and updates the planner's statistics.
    pub fn vacuum(&self) -> String {
        format!("VACUUM (ANALYZE) {}", self.table)
    }

    /// The table's quoted name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Appends the messages of `request` to `out`, without a Sync.
    #[inline]
    pub fn put(&self, request: &Request<'_>, out: &mut Vec<u8>) {
        let of_fields = 1 + self.fields.len();
        match *request {
            Request::Read { key, fields } => {
                let mut binding = self.prepared[self.given(fields)].bind(out);
                binding.bytes(key);
                binding.finish();
            }
            Request::ReadMany { keys, fields } => {
                let mut binding = self.prepared[of_fields + self.given(fields)].bind(out);
                binding.texts(keys.iter());
                binding.finish();
            }
            Request::Scan { start, rows, fields } => {
                let mut binding = self.prepared[2 * of_fields + self.given(fields)].bind(out);
                binding.bytes(start);
                binding.number(i64::try_from(rows).unwrap_or(i64::MAX));
                binding.finish();
            }
            Request::Update { key, field, value } => {
                assert!((field as usize) < self.fields.len(), "the table has this field");
                let mut binding = self.prepared[3 * of_fields + field as usize].bind(out);
                binding.bytes(key);
                binding.bytes(value);
                binding.finish();
            }
            Request::Insert { key, record } => {
                let mut binding = self.prepared[3 * of_fields + self.fields.len()].bind(out);
                binding.bytes(key);
                record.iter().for_each(|value| binding.bytes(value));
                binding.finish();
            }
            Request::Replace { key, record } => {
                let mut binding = self.prepared[3 * of_fields + self.fields.len() + 1].bind(out);
                binding.bytes(key);
                record.iter().for_each(|value| binding.bytes(value));
                binding.finish();
            }
            Request::Delete { key } => {
                let mut binding = self.prepared[3 * of_fields + self.fields.len() + 2].bind(out);
                binding.bytes(key);
                binding.finish();
            }
            Request::Partition(_) | Request::Transaction(_) => {
                unreachable!("a session of this table refuses it")
            }
        }
    }

    /// The index of a selection in the lists of statements: 0 for all fields, then one for each field.
    #[inline]
    fn given(&self, fields: Fields) -> usize {
        match fields {
            Fields::All => 0,
            Fields::One(field) => {
                assert!((field as usize) < self.fields.len(), "the table has this field");
                1 + field as usize
            }
        }
    }
}

/// Quotes a name for SQL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

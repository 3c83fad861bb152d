//! The row access benchmark on SQLite: one file with the same table and index as on PostgreSQL. Rows are keyed by
//! rowids, which SQLite assigns in insertion order.

use super::{BUSY, broken};
use ::row_access::batch::push_filler;
use ::row_access::database::JOBS_TABLE;
use ::row_access::{
    Access, Batch, Counted, Database, Job, Loader, Opening, Order, RowAccessScheme, Seen, Session, Statement, TableForm,
};
use harness::directory::bytes_text;
use harness::{Failure, Setting, Target};
use kit::time::Timestamp;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(test)]
mod tests;

/// `sqlite:FILE`.
pub const SCHEME: RowAccessScheme = RowAccessScheme { name: "sqlite", orders_by_sql: false, open };

/// Prepared statements that a connection keeps.
const PREPARED: usize = 16;

/// The settings of each connection.
struct Choices {
    path: PathBuf,
    opening: Opening,
    cache_bytes: u64,
    synced: bool,
}

impl Choices {
    fn connect(&self) -> Result<Connection, Failure> {
        let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let is_read = self.opening == Opening::ReadOnly;
        flags.set(OpenFlags::SQLITE_OPEN_READ_ONLY, is_read);
        flags.set(OpenFlags::SQLITE_OPEN_READ_WRITE, !is_read);
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, self.opening == Opening::OrCreate);
        let connection = Connection::open_with_flags(&self.path, flags).map_err(|error| self.cannot_open(error))?;
        connection.busy_timeout(BUSY).map_err(broken)?;
        let set = |name: &str, value: &str| connection.pragma_update(None, name, value).map_err(broken);
        if !is_read {
            set("journal_mode", "wal")?;
            set("synchronous", if self.synced { "full" } else { "normal" })?;
        }
        // A negative cache size is in KiB.
        set("cache_size", &format!("-{}", self.cache_bytes.div_ceil(1024)))?;
        connection.set_prepared_statement_cache_capacity(PREPARED);
        Ok(connection)
    }

    fn cannot_open(&self, error: rusqlite::Error) -> Failure {
        let failure = broken(error);
        let path = self.path.display();
        let advice = if self.path.exists() { "" } else { ": set it up first" };
        Failure { text: format!("{}, opening {path}{advice}", failure.text), ..failure }
    }
}

/// An open database.
struct Sqlite {
    connection: Mutex<Connection>,
    choices: Choices,
}

fn open(target: &Target, opening: Opening) -> Result<Box<dyn Database>, Failure> {
    let mut options = target.options()?;
    let cache_bytes = options.bytes("cache", 256 << 20)?;
    let synced = options.choice("durability", &[("buffered", false), ("synced", true)])?;
    options.finish()?;
    let path = Path::new(target.directory()?);
    if path.is_dir() {
        let text = format!("{} is a directory: row access on SQLite takes a file, sqlite:FILE", path.display());
        return Err(Failure::session("target", text));
    }
    let choices = Choices { path: path.to_owned(), opening, cache_bytes, synced };
    Ok(Box::new(Sqlite { connection: Mutex::new(choices.connect()?), choices }))
}

impl Sqlite {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic leaves no transaction open: dropping it rolls it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Database for Sqlite {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.choices.synced {
            false => "buffered: every commit in the log, with the system, synced at checkpoints (synchronous=NORMAL)",
            true => "synced: a commit returns once the log is synced (synchronous=FULL)",
        };
        vec![
            Setting::new("engine", format!("SQLite {}", rusqlite::version())),
            Setting::new("durability", durability),
            Setting::new("cache", format!("{} for each session", bytes_text(self.choices.cache_bytes))),
            Setting::new("reads", "through the system's page cache"),
        ]
    }

    fn create(&self, form: &TableForm, recreate: bool) -> Result<Vec<String>, Failure> {
        let connection = self.connection();
        let name = &form.name;
        let key = if form.index_as_pk { " PRIMARY KEY" } else { "" };
        let mut sql = String::new();
        if recreate {
            sql.push_str(&format!("DROP TABLE IF EXISTS {name};"));
        }
        sql.push_str(&format!("CREATE TABLE IF NOT EXISTS {name} (mykey INTEGER{key}, scratch INTEGER, filler TEXT);"));
        if !form.index_as_pk {
            sql.push_str(&format!("CREATE INDEX IF NOT EXISTS {} ON {name} (mykey);", form.index()));
        }
        connection.execute_batch(&sql).map_err(broken)?;
        let tablets = [("tab_tablets", form.tablets), ("ind_tablets", form.index_tablets)];
        let asked = tablets.into_iter().filter(|(_, tablets)| *tablets > 0);
        Ok(asked.map(|(name, _)| format!("{name} has no effect: SQLite has no tablets")).collect())
    }

    fn loader(&self, form: &TableForm, order: &Order) -> Result<Box<dyn Loader + '_>, Failure> {
        let connection = self.choices.connect()?;
        Ok(Box::new(Inserts { connection, form: form.clone(), order: order.clone() }))
    }

    fn settle(&self, table: &str) -> Result<(), Failure> {
        let connection = self.connection();
        connection.execute_batch(&format!("ANALYZE {table}")).map_err(broken)?;
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(broken)
    }

    fn session(&self, access: &Access) -> Result<Box<dyn Session + '_>, Failure> {
        Ok(Box::new(Accesses { connection: self.choices.connect()?, access: access.clone() }))
    }

    fn count(&self, table: &str) -> Result<Counted, Failure> {
        let sql = format!("SELECT count(*), max(scratch) FROM {table}");
        let counted = self.connection().query_row(&sql, [], |row| {
            Ok(Counted { rows: row.get::<_, i64>(0)?.unsigned_abs(), scratch: row.get(1)? })
        });
        counted.map_err(broken)
    }

    fn access_path(&self, access: &Access, statement: Statement, first: i64, last: i64) -> Result<String, Failure> {
        let connection = self.connection();
        let sql = format!("EXPLAIN QUERY PLAN {}", sql_of(access, statement));
        let mut statement = connection.prepare(&sql).map_err(broken)?;
        let lines = statement.query_map([first, last], |row| row.get::<_, String>(3)).map_err(broken)?;
        let mut text = String::from("QUERY PLAN\n");
        for line in lines {
            text.push_str(&format!("  {}\n", line.map_err(broken)?));
        }
        Ok(text)
    }

    fn page_reads(&self) -> Option<u64> {
        None
    }

    fn begin_job(&self, job: &Job) -> Result<i64, Failure> {
        let connection = self.connection();
        let columns = "job_id INTEGER PRIMARY KEY AUTOINCREMENT, start_time INTEGER, end_time INTEGER, num_batches INTEGER, \
                       num_rows INTEGER, pct_update INTEGER, max_scratch INTEGER, prepared INTEGER, index_only INTEGER, \
                       tab_rows INTEGER, batch_size INTEGER, table_name TEXT, table_rows INTEGER, table_scratch INTEGER, \
                       comments TEXT";
        connection.execute_batch(&format!("CREATE TABLE IF NOT EXISTS {JOBS_TABLE} ({columns})")).map_err(broken)?;
        let sql = format!(
            "INSERT INTO {JOBS_TABLE} (start_time, pct_update, prepared, index_only, tab_rows, batch_size, table_name, \
             table_rows, table_scratch, comments) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        );
        let values = params![
            job.start_time.0,
            job.pct_update,
            job.prepared,
            job.index_only,
            job.tab_rows,
            job.batch_size,
            job.table_name,
            job.table_rows,
            job.table_scratch,
            job.comments,
        ];
        connection.execute(&sql, values).map_err(broken)?;
        Ok(connection.last_insert_rowid())
    }

    fn end_job(&self, job: &Job) -> Result<(), Failure> {
        let sql = format!(
            "UPDATE {JOBS_TABLE} SET end_time = ?2, num_batches = ?3, num_rows = ?4, max_scratch = ?5 WHERE job_id = ?1"
        );
        let end = job.end_time.map(|end| end.0);
        let values = params![job.job_id, end, job.num_batches, job.num_rows, job.max_scratch];
        self.connection().execute(&sql, values).map(drop).map_err(broken)
    }

    fn jobs(&self, limit: u64) -> Result<Vec<Job>, Failure> {
        let connection = self.connection();
        if !connection.table_exists(None, JOBS_TABLE).map_err(broken)? {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT * FROM {JOBS_TABLE} ORDER BY job_id DESC LIMIT ?1");
        let mut statement = connection.prepare(&sql).map_err(broken)?;
        let rows = statement.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok(Job {
                job_id: row.get("job_id")?,
                start_time: Timestamp(row.get("start_time")?),
                end_time: row.get::<_, Option<i64>>("end_time")?.map(Timestamp),
                num_batches: row.get("num_batches")?,
                num_rows: row.get("num_rows")?,
                pct_update: row.get("pct_update")?,
                max_scratch: row.get("max_scratch")?,
                prepared: row.get("prepared")?,
                index_only: row.get("index_only")?,
                tab_rows: row.get("tab_rows")?,
                batch_size: row.get("batch_size")?,
                table_name: row.get("table_name")?,
                table_rows: row.get("table_rows")?,
                table_scratch: row.get("table_scratch")?,
                comments: row.get("comments")?,
            })
        });
        rows.map_err(broken)?.collect::<Result<_, _>>().map_err(broken)
    }

    fn clean(&self, prefix: &str, with_jobs: bool) -> Result<Vec<String>, Failure> {
        let connection = self.connection();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name GLOB ?1 OR (?2 AND name = ?3))";
        let mut statement = connection.prepare(sql).map_err(broken)?;
        let pattern = format!("{prefix}[0-9][0-9][0-9][0-9]");
        let names = statement.query_map(params![pattern, with_jobs, JOBS_TABLE], |row| row.get::<_, String>(0));
        let names: Vec<String> = names.map_err(broken)?.collect::<Result<_, _>>().map_err(broken)?;
        drop(statement);
        for name in &names {
            connection.execute_batch(&format!("DROP TABLE {name}")).map_err(broken)?;
        }
        Ok(names)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let connection = self.connection.into_inner().unwrap_or_else(PoisonError::into_inner);
        connection.close().map_err(|(_, error)| broken(error))
    }
}

/// The SQL of a session's statement. `?1` is the first key and `?2` the last.
fn sql_of(access: &Access, statement: Statement) -> String {
    let Access { table, index_only, .. } = access;
    let range = "mykey BETWEEN ?1 AND ?2";
    match (statement, index_only) {
        (Statement::Read, false) => format!("SELECT count(*), max(scratch) FROM {table} WHERE {range}"),
        // `max` alone would be one lookup in the index, without reading the keys of the range; `count` makes it read
        // them.
        (Statement::Read, true) => format!("SELECT count(*), max(mykey) FROM {table} WHERE {range}"),
        (Statement::Update, false) => {
            format!("UPDATE {table} SET scratch = scratch + 1 WHERE {range} RETURNING scratch")
        }
        (Statement::Update, true) => format!("UPDATE {table} SET mykey = mykey WHERE {range} RETURNING mykey"),
    }
}

/// Inserts batches.
struct Inserts {
    connection: Connection,
    form: TableForm,
    order: Order,
}

impl Loader for Inserts {
    fn insert(&mut self, batch: &Batch) -> Result<(), Failure> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
        let sql = format!("INSERT INTO {} (mykey, scratch, filler) VALUES (?1, ?2, ?3)", self.form.name);
        let mut statement = transaction.prepare_cached(&sql).map_err(broken)?;
        for row in batch.rows(&self.order)? {
            let mut filler = Vec::with_capacity(self.form.filler as usize);
            push_filler(row.mykey, self.form.filler as usize, &mut filler);
            let filler = String::from_utf8(filler).expect("digits are text");
            statement.execute(params![row.mykey, row.scratch, filler]).map_err(broken)?;
        }
        drop(statement);
        transaction.commit().map_err(broken)
    }
}

/// Accesses rows.
struct Accesses {
    connection: Connection,
    access: Access,
}

impl Session for Accesses {
    fn access(&mut self, statement: Statement, first: i64, last: i64) -> Result<Seen, Failure> {
        let sql = sql_of(&self.access, statement);
        if !self.access.prepared {
            self.connection.flush_prepared_statement_cache();
        }
        let mut prepared = self.connection.prepare_cached(&sql).map_err(broken)?;
        let mut rows = prepared.query([first, last]).map_err(broken)?;
        let mut seen = Seen::default();
        while let Some(row) = rows.next().map_err(broken)? {
            match statement {
                Statement::Read => {
                    let rows: i64 = row.get(0).map_err(broken)?;
                    seen = Seen { rows: rows.unsigned_abs(), max: row.get(1).map_err(broken)? };
                }
                Statement::Update => {
                    seen.rows += 1;
                    seen.max = seen.max.max(row.get(0).map_err(broken)?);
                }
            }
        }
        Ok(seen)
    }
}

//! SQLite as a store of the benchmarks, through the crate `rusqlite`: one table of keys and values, one connection
//! for each session, prepared statements, and WAL mode.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

mod row_access;
#[cfg(test)]
mod tests;
mod tpcc;

pub use row_access::SCHEME as ROW_ACCESS;
pub use tpcc::SCHEME as TPCC;

use harness::directory::bytes_text;
use harness::key_value::encoded;
use harness::{
    Clock, Counter, Directory, Failure, Gather, KeyValue, Opening, Records, Rows, Scheme, Session, Setting, Store,
    StoreUse, Strings, Table, Target, WriteMany,
};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// `sqlite:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "sqlite",
    form: "sqlite:DIR",
    about: "SQLite, embedded",
    options: &[
        ("cache", "page cache of each session in bytes: 256MiB"),
        ("mmap", "how much of the file is read through a map, in bytes: 0"),
        ("durability", "buffered: log written, not synced; synced: every commit"),
        ("compression", "none"),
        ("page", "bytes of a page, 512 to 64KiB: 4KiB, or 16KiB where rows have several fields"),
        ("batch", "rows in a transaction of a load: 1000"),
    ],
    networked: false,
    open,
};

const FILE: &str = "rows.sqlite";

/// Rows in each transaction of a bulk load: enough that commits cost next to nothing.
const BULK_ROWS: u64 = 100_000;

/// How long a writer waits for another one before it fails.
const BUSY: Duration = Duration::from_secs(60);

const GET: &str = "SELECT value FROM rows WHERE key = ?1";
const SCAN: &str = "SELECT key, value FROM rows WHERE key >= ?1 ORDER BY key LIMIT ?2";
const PUT: &str = "INSERT INTO rows VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const DELETE: &str = "DELETE FROM rows WHERE key = ?1";

/// The settings of each connection.
#[derive(Clone)]
struct Choices {
    path: PathBuf,
    create: bool,
    cache_bytes: u64,
    mmap_bytes: u64,
    page_bytes: u64,
    synced: bool,
}

/// Checkpoints the WAL into the database file and truncates it.
fn empty_log(connection: &Connection) -> Result<(), Failure> {
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    match busy.map_err(broken)? {
        false => Ok(()),
        true => Err(Failure::again("busy", "SQLite: the log cannot be emptied while it is being read")),
    }
}

impl Choices {
    /// The sizes of the database file and its WAL.
    fn file_counters(&self) -> Vec<Counter> {
        let bytes = |ending: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push(ending);
            std::fs::metadata(path).map_or(0, |file| file.len())
        };
        vec![Counter::now("file bytes", bytes("")), Counter::now("log file bytes", bytes("-wal"))]
    }

    fn connect(&self) -> Result<Connection, Failure> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, self.create);
        let connection = Connection::open_with_flags(&self.path, flags).map_err(broken)?;
        connection.busy_timeout(BUSY).map_err(broken)?;
        let set = |name: &str, value: &str| connection.pragma_update(None, name, value).map_err(broken);
        // Only takes effect on a new file.
        set("page_size", &self.page_bytes.to_string())?;
        set("journal_mode", "wal")?;
        set("synchronous", if self.synced { "full" } else { "normal" })?;
        // A negative cache size is in KiB.
        set("cache_size", &format!("-{}", self.cache_bytes.div_ceil(1024)))?;
        set("mmap_size", &self.mmap_bytes.to_string())?;
        connection.set_prepared_statement_cache_capacity(16);
        Ok(connection)
    }
}

/// An open database.
struct Sqlite {
    // Before the directory, so that the connection is closed before the directory is unlocked.
    connection: Mutex<Connection>,
    choices: Choices,
    fields: usize,
    batch_rows: u64,
    _directory: Directory,
}

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let cache_bytes = options.bytes("cache", 256 << 20)?;
    let mmap_bytes = options.bytes("mmap", 0)?;
    let synced = options.choice("durability", &[("buffered", false), ("synced", true)])?;
    options.choice("compression", &[("none", ())])?;
    // SQLite moves the rest of a row that is longer than a quarter of a page to an overflow page. With pages of 4
    // KiB, rows of a thousand bytes would take four times the space and five times as long to read.
    let usual_page_bytes = if table.fields.len() > 1 { 16 << 10 } else { 4 << 10 };
    let page_bytes = options.bytes("page", usual_page_bytes)?;
    if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
        return Err(options.bad("page", &bytes_text(page_bytes), "a power of two within 512 and 64KiB"));
    }
    let batch_rows = options.number("batch", 1000)?.max(1);
    options.finish()?;

    let directory = Directory::open(target, table, opening, &[("page", bytes_text(page_bytes))])?;
    let path = directory.data().join(FILE);
    let create = opening != Opening::Existing;
    let choices = Choices { path, create, cache_bytes, mmap_bytes, page_bytes, synced };
    let in_directory = |Failure { kind, text, harm }: Failure| Failure {
        kind,
        text: format!("{text}, opening {}", choices.path.display()),
        harm,
    };
    let connection = choices.connect().map_err(in_directory)?;
    if create {
        let made = connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS rows (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
        );
        made.map_err(broken).map_err(in_directory)?;
    }
    let store = Sqlite {
        connection: Mutex::new(connection),
        choices: choices.clone(),
        fields: table.fields.len(),
        batch_rows,
        _directory: directory,
    };
    let journal = store.pragma("journal_mode");
    if journal != "wal" {
        let text =
            format!("SQLite: the file system of {} allows no write-ahead log: {journal}", choices.path.display());
        return Err(Failure::session("sqlite", text));
    }
    Ok(Box::new(store))
}

impl Sqlite {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic leaves no transaction open: a guard rolls it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pairs(&self) -> Result<Pairs, Failure> {
        Ok(Pairs { connection: self.choices.connect()? })
    }

    /// The actual value of a pragma.
    fn pragma(&self, name: &str) -> String {
        let value = self.connection().pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        match value {
            Ok(rusqlite::types::Value::Integer(number)) => number.to_string(),
            Ok(rusqlite::types::Value::Text(text)) => text,
            other => format!("unknown: {other:?}"),
        }
    }

    fn pragma_bytes(&self, name: &str) -> String {
        let value = self.pragma(name);
        value.parse().map_or(value, bytes_text)
    }
}

impl Store for Sqlite {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.choices.synced {
            false => "buffered: every commit in the log, with the system, synced at checkpoints (synchronous=NORMAL)",
            true => "synced: a commit returns once the log is synced (synchronous=FULL)",
        };
        let cache = match self.pragma("cache_size").parse::<i64>() {
            Ok(pages @ 0..) => format!("{pages} pages for each session"),
            Ok(kib) => format!("{} for each session", bytes_text(kib.unsigned_abs() * 1024)),
            Err(_) => "unknown".to_owned(),
        };
        vec![
            Setting::new("engine", format!("SQLite {}", rusqlite::version())),
            Setting::new("durability", durability),
            Setting::new("cache", cache),
            Setting::new("compression", "none"),
            Setting::new("page", self.pragma_bytes("page_size")),
            Setting::new("mmap", self.pragma_bytes("mmap_size")),
            Setting::new("reads", "through the system's page cache"),
            Setting::new("journal", self.pragma("journal_mode")),
            Setting::new("table", "key BLOB PRIMARY KEY, value BLOB, WITHOUT ROWID"),
            Setting::new("load", format!("{} rows a transaction", self.batch_rows)),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Records::new(self.pairs()?, self.fields))))
    }

    fn loader(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Gather::new(self.pairs()?, self.batch_rows))))
    }

    /// Loads the rows in large transactions.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let mut count = 0;
        let mut more = rows.next_row(&mut key, &mut record);
        let mut pairs = self.pairs()?;
        while more {
            pairs.transaction(|pairs| {
                while more {
                    pairs.put(&key, encoded(&record, &mut value))?;
                    count += 1;
                    more = rows.next_row(&mut key, &mut record);
                    if count % BULK_ROWS == 0 {
                        break;
                    }
                }
                Ok(())
            })?;
        }
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        let some = self.connection().query_row("SELECT EXISTS (SELECT 1 FROM rows)", [], |row| row.get::<_, bool>(0));
        Ok(!some.map_err(broken)?)
    }

    fn counters(&self) -> Vec<Counter> {
        self.choices.file_counters()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    /// Checkpoints the WAL.
    fn settle(&self) -> Result<(), Failure> {
        empty_log(&self.connection())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let Self { connection, _directory, .. } = *self;
        let connection = connection.into_inner().unwrap_or_else(PoisonError::into_inner);
        connection.close().map_err(|(_, error)| broken(error))
    }
}

struct Pairs {
    connection: Connection,
}

impl Pairs {
    /// Runs `work` in a write transaction.
    fn transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        self.run("BEGIN IMMEDIATE")?;
        let done = work(self).and_then(|done| self.run("COMMIT").map(|()| done));
        if done.is_err() && !self.connection.is_autocommit() {
            self.run("ROLLBACK")?;
        }
        done
    }

    fn run(&self, statement: &str) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(statement).map_err(broken)?;
        statement.execute([]).map(drop).map_err(broken)
    }
}

impl KeyValue for Pairs {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let mut statement = self.connection.prepare_cached(GET).map_err(broken)?;
        let mut rows = statement.query([key]).map_err(broken)?;
        match rows.next().map_err(broken)? {
            Some(row) => found(blob(row, 0)?),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        // One transaction, so that all reads see the same state.
        self.run("BEGIN")?;
        let mut done = Ok(());
        for (number, key) in keys.iter().enumerate() {
            done = self.get(key, |value| found(number, value)).map(drop);
            if done.is_err() {
                break;
            }
        }
        self.run("COMMIT")?;
        done
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(SCAN).map_err(broken)?;
        let limit = i64::try_from(rows).unwrap_or(i64::MAX);
        let mut rows = statement.query((start, limit)).map_err(broken)?;
        while let Some(row) = rows.next().map_err(broken)? {
            if !each(blob(row, 0)?, blob(row, 1)?) {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(PUT).map_err(broken)?;
        statement.execute((key, value)).map(drop).map_err(broken)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        let mut statement = self.connection.prepare_cached(DELETE).map_err(broken)?;
        let rows = statement.execute([key]).map_err(broken)?;
        Ok(rows > 0)
    }

    fn update(
        &mut self,
        key: &[u8],
        scratch: &mut Vec<u8>,
        mut change: impl FnMut(&[u8], &mut Vec<u8>),
    ) -> Result<bool, Failure> {
        scratch.clear();
        self.transaction(|pairs| {
            let found = pairs.get(key, |value| change(value, scratch))?;
            if found {
                pairs.put(key, scratch)?;
            }
            Ok(found)
        })
    }
}

impl WriteMany for Pairs {
    fn write(&mut self, keys: &Strings, values: &Strings) -> Result<(), Failure> {
        self.transaction(|pairs| {
            for (key, value) in keys.iter().zip(values.iter()) {
                pairs.put(key, value)?;
            }
            Ok(())
        })
    }
}

fn blob<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> Result<&'r [u8], Failure> {
    let value = row.get_ref(column).map_err(broken)?;
    value.as_blob().map_err(|_| Failure::session("corrupt", "SQLite: a key or value of the table is no blob"))
}

#[cold]
fn broken(error: Error) -> Failure {
    let text = format!("SQLite: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::again("busy", text),
        Some(ErrorCode::DiskFull) => Failure::session("disk_full", text),
        Some(ErrorCode::ReadOnly) => Failure::session("read_only", text),
        Some(ErrorCode::PermissionDenied) => Failure::session("not_allowed", text),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Failure::session("corrupt", text),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => Failure::session("io", text),
        Some(ErrorCode::TooBig) => Failure::request("too_long", text),
        _ => Failure::session("sqlite", text),
    }
}

//! TPC-C on SQLite: one file with the nine tables and with indexes that find customers by name and orders by
//! customer. Two more tables, `tpcc` and `tpcc_parts`, record how the database was made and which parts are loaded.

mod columns;
mod load;
mod session;
#[cfg(test)]
mod tests;
mod view;

use super::{Choices, broken, empty_log};
use ::tpcc::database::{no_index, not_made};
use ::tpcc::{Form, Loader, Part, Setup, Table, TpccScheme, View};
use harness::directory::bytes_text;
use harness::{Clock, Counter, Failure, Opening, Session, Setting, Store, StoreUse, Target};
use rusqlite::{Connection, OptionalExtension as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `sqlite:FILE`.
pub const SCHEME: TpccScheme = TpccScheme { name: "sqlite", open, simulate: None };

/// The indexes: the name, and the table with the columns.
const INDEXES: [(&str, &str); 2] = [
    ("customers_by_name", "customer (c_w_id, c_d_id, c_last, c_first)"),
    ("orders_by_customer", "orders (o_w_id, o_d_id, o_c_id)"),
];

/// The tables that record how the database was made.
const ABOUT: [&str; 2] = ["tpcc", "tpcc_parts"];

/// An open database.
struct Sqlite {
    connection: Mutex<Connection>,
    choices: Choices,
    /// The size at which a commit checkpoints the WAL.
    log_bytes: u64,
    /// Transactions of a session that share a commit.
    group: usize,
    /// The writers' lock: only the thread that holds it may write. SQLite allows one writer at a time; without this
    /// lock, a waiting thread would poll with sleeps.
    writer: Mutex<()>,
}

fn open(target: &Target, setup: &Setup) -> Result<Box<dyn ::tpcc::Database>, Failure> {
    let mut options = target.options()?;
    let cache_bytes = options.bytes("cache", 256 << 20)?;
    let mmap_bytes = options.bytes("mmap", 0)?;
    let log_bytes = options.bytes("log", 64 << 20)?;
    let synced = options.choice("durability", &[("synced", true), ("buffered", false)])?;
    let page_bytes = options.bytes("page", 4 << 10)?;
    if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
        return Err(options.bad("page", &bytes_text(page_bytes), "a power of two within 512 and 64KiB"));
    }
    let group = options.number("group", 1)?.clamp(1, 65536) as usize;
    options.finish()?;
    let path = Path::new(target.directory()?);
    if path.is_dir() {
        let text = format!("{} is a directory: TPC-C on SQLite takes a file, sqlite:FILE", path.display());
        return Err(Failure::session("target", text));
    }
    let create = setup.opening != Opening::Existing;
    if !create && !path.exists() {
        let text = format!("there is no database in {}: make it with init", path.display());
        return Err(Failure::session("no_store", text));
    }
    let choices = Choices { path: path.to_owned(), create, cache_bytes, mmap_bytes, page_bytes, synced };
    let connection = choices
        .connect()
        .map_err(|failure| Failure { text: format!("{}, opening {}", failure.text, path.display()), ..failure })?;
    let sqlite = Sqlite { connection: Mutex::new(connection), choices, log_bytes, group, writer: Mutex::new(()) };
    Ok(Box::new(sqlite))
}

impl Sqlite {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic leaves no transaction open: dropping it rolls it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens another connection.
    fn connect(&self) -> Result<Connection, Failure> {
        let connection = self.choices.connect()?;
        let page_bytes: u64 = pragma(&connection, "page_size")?.unsigned_abs();
        let pages = self.log_bytes.div_ceil(page_bytes.max(1));
        connection.pragma_update(None, "wal_autocheckpoint", pages.to_string()).map_err(broken)?;
        Ok(connection)
    }

    /// Takes the writers' lock.
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in a transaction, under the writers' lock.
    fn transaction<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        let _turn = self.turn();
        let mut connection = self.connection();
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(broken)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(broken)?;
        Ok(done)
    }
}

/// The actual value of a numeric pragma.
fn pragma(connection: &Connection, name: &str) -> Result<i64, Failure> {
    connection.pragma_query_value(None, name, |row| row.get(0)).map_err(broken)
}

/// Whether a table or an index called `name` exists.
fn has(connection: &Connection, name: &str) -> Result<bool, Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)";
    connection.query_row(sql, (name,), |row| row.get(0)).map_err(broken)
}

/// The form that the database was made with, if it has one.
fn form_of(connection: &Connection) -> Result<Option<Form>, Failure> {
    for table in ABOUT {
        if !has(connection, table)? {
            return Ok(None);
        }
    }
    let form = connection.query_row("SELECT warehouses, seed, loaded FROM tpcc", [], |row| {
        Ok(Form { warehouses: row.get(0)?, seed: row.get::<_, i64>(1)?.cast_unsigned(), loaded: row.get(2)? })
    });
    form.optional().map_err(broken)
}

impl Store for Sqlite {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.choices.synced {
            false => "buffered: every commit in the log, with the system, synced at checkpoints (synchronous=NORMAL)",
            true => "synced: a commit returns once the log is synced (synchronous=FULL)",
        };
        let number = |name: &str| {
            let value = pragma(&self.connection(), name);
            value.map_or_else(|failure| failure.text, |number| bytes_text(number.unsigned_abs()))
        };
        let group = match self.group {
            1 => "each transaction is a commit".to_owned(),
            group => format!("up to {group} transactions of a session share a commit"),
        };
        vec![
            Setting::new("engine", format!("SQLite {}", rusqlite::version())),
            Setting::new("isolation", "serializable"),
            Setting::new("durability", durability),
            Setting::new("group commit", group),
            Setting::new("cache", format!("{} for each session", bytes_text(self.choices.cache_bytes))),
            Setting::new("page", number("page_size")),
            Setting::new("mmap", number("mmap_size")),
            Setting::new("log", format!("a checkpoint each {}", bytes_text(self.log_bytes))),
            Setting::new("reads", "through the system's page cache"),
            Setting::new("tables", "columns of SQL, WITHOUT ROWID"),
        ]
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let connection = self.connection();
        let form = form_of(&connection)?.ok_or_else(not_made)?;
        for (name, _) in INDEXES {
            if !has(&connection, name)? {
                return Err(no_index(name));
            }
        }
        drop(connection);
        Ok(Session::Flights(session::session(self, &form, clock)?))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(form_of(&self.connection())?.is_none())
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
        let connection = self.connection.into_inner().unwrap_or_else(PoisonError::into_inner);
        connection.close().map_err(|(_, error)| broken(error))
    }
}

impl ::tpcc::Database for Sqlite {
    /// One transaction, so that a crash leaves all or nothing.
    fn create(&self, form: &Form) -> Result<(), Failure> {
        self.transaction(|connection| {
            for name in Table::ALL.map(Table::name).into_iter().chain(ABOUT) {
                if has(connection, name)? {
                    let text = format!("there is a table {name} that is not of TPC-C: name a new file");
                    return Err(Failure::session("other_tables", text));
                }
            }
            for table in Table::ALL {
                connection.execute_batch(&columns::create(table)).map_err(broken)?;
            }
            let about = "CREATE TABLE tpcc (warehouses INTEGER, seed INTEGER, loaded INTEGER); \
                         CREATE TABLE tpcc_parts (name TEXT, first INTEGER, last INTEGER, \
                         PRIMARY KEY (name, first, last)) WITHOUT ROWID";
            connection.execute_batch(about).map_err(broken)?;
            let values = (form.warehouses, form.seed.cast_signed(), form.loaded);
            connection.execute("INSERT INTO tpcc VALUES (?, ?, ?)", values).map(drop).map_err(broken)
        })
    }

    fn form(&self) -> Result<Option<Form>, Failure> {
        form_of(&self.connection())
    }

    fn part_loader(&self, part: &Part) -> Result<Box<dyn Loader + '_>, Failure> {
        Ok(Box::new(load::PartLoader::new(self, part)?))
    }

    fn is_loaded(&self, part: &Part) -> Result<bool, Failure> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tpcc_parts WHERE name = ? AND first = ? AND last = ?)";
        let key = (part.table.name(), *part.warehouses.start(), *part.warehouses.end());
        self.connection().query_row(sql, key, |row| row.get(0)).map_err(broken)
    }

    fn make_indexes(&self) -> Result<(), Failure> {
        for (name, of) in INDEXES {
            let sql = format!("CREATE INDEX IF NOT EXISTS {name} ON {of}");
            self.transaction(|connection| connection.execute_batch(&sql).map_err(broken))?;
        }
        Ok(())
    }

    fn view(&self) -> Result<Box<dyn View + '_>, Failure> {
        Ok(Box::new(view::Readers::new(self)?))
    }

    /// One transaction, so that a crash leaves all or nothing.
    fn clean(&self) -> Result<(), Failure> {
        self.transaction(|connection| {
            // Without a form, any tables with these names are not ours.
            form_of(connection)?.ok_or_else(not_made)?;
            for name in Table::ALL.map(Table::name).into_iter().chain(ABOUT) {
                connection.execute_batch(&format!("DROP TABLE {name}")).map_err(broken)?;
            }
            Ok(())
        })
    }
}

//! A table in a PostgreSQL database as a [`Store`].

use crate::postgres::address::{Address, Place, in_environment};
use crate::postgres::connection::Connection;
use crate::postgres::dialect::{self, Dialect};
use crate::postgres::error::{Error, SqlState};
use crate::postgres::flights;
use crate::postgres::loader::{self, Loader};
use crate::postgres::statements::Statements;
use harness::{Clock, Counter, Failure, Opening, Rows, Scheme, Session, Setting, Store, StoreUse, Table, Target};
use std::sync::{Mutex, MutexGuard};

#[cfg(test)]
mod tests;

/// `postgres://…`.
pub const SCHEME: Scheme = Scheme {
    name: "postgres",
    form: "postgres://user:password@host:port/database",
    about: "PostgreSQL; its server is Debian's package postgresql",
    options: &[
        ("host", "host, or directory of the server's Unix socket [PGHOST, /var/run/postgresql or localhost]"),
        ("port", "its port [PGPORT or 5432]; likewise user, password, dbname"),
        ("connections", "connections of each thread [1]"),
        (
            "pipeline",
            "requests under way on each connection at most; reads that go out together share a transaction [1]",
        ),
        ("connect_timeout", "seconds to wait for a server that does not answer [10]"),
        ("sslmode", "TLS: disable, allow, prefer, require, verify-ca, verify-full [PGSSLMODE or prefer]"),
        (
            "sslrootcert",
            "who is trusted: a file of certificates, or system [PGSSLROOTCERT, ~/.postgresql/root.crt or system]",
        ),
        ("channel_binding", "ties the proof of a password to the TLS: disable, prefer, require [prefer]"),
        ("NAME", "a setting of the server for our sessions: synchronous_commit, default_transaction_isolation, …"),
    ],
    networked: true,
    open: |target, table, opening| open(&dialect::POSTGRES, target, table, opening),
};

/// `cockroach://…`.
pub const COCKROACH: Scheme = Scheme {
    name: "cockroach",
    form: "cockroach://user:password@host:port/database",
    about: "CockroachDB, by PostgreSQL's protocol",
    options: &[("…", "those of postgres")],
    open: |target, table, opening| open(&dialect::COCKROACH, target, table, opening),
    ..SCHEME
};

/// `yugabyte://…`.
pub const YUGABYTE: Scheme = Scheme {
    name: "yugabyte",
    form: "yugabyte://user:password@host:port/database",
    about: "YugabyteDB, by PostgreSQL's protocol",
    options: &[("…", "those of postgres")],
    open: |target, table, opening| open(&dialect::YUGABYTE, target, table, opening),
    ..SCHEME
};

fn open(
    dialect: &'static Dialect,
    target: &Target,
    table: &Table,
    opening: Opening,
) -> Result<Box<dyn Store>, Failure> {
    let address = Address::of(target, dialect, in_environment)?;
    Ok(Box::new(Postgres::open_as(dialect, address, table, opening)?))
}

/// A table in a PostgreSQL database.
pub struct Postgres {
    dialect: &'static Dialect,
    address: Address,
    statements: Statements,
    /// The connection for everything that is not measured.
    control: Mutex<Connection>,
    settings: Vec<Setting>,
    /// The server's counters when the store was opened.
    before: Vec<Counter>,
    /// Whether reads may share a transaction. Not under serializable isolation, where the commit could fail after
    /// reads were answered.
    groups: bool,
    /// The server's postmaster process, if it runs on this machine.
    server: Option<u32>,
}

/// The benchmark's names for the server's counters of a database.
const DATABASE_COUNTERS: [(&str, &str); 9] = [
    ("page reads", "blks_read"),
    ("cache hits", "blks_hit"),
    ("commits", "xact_commit"),
    ("rollbacks", "xact_rollback"),
    ("rows fetched", "tup_fetched"),
    ("rows inserted", "tup_inserted"),
    ("rows updated", "tup_updated"),
    ("rows deleted", "tup_deleted"),
    ("deadlocks", "deadlocks"),
];

impl Postgres {
    /// Opens the table.
    ///
    /// # Errors
    ///
    /// Returns an error if the server, database or table does not exist, or if the user lacks the rights that
    /// `opening` needs.
    pub fn open(address: Address, table: &Table, opening: Opening) -> Result<Self, Failure> {
        Self::open_as(&dialect::POSTGRES, address, table, opening)
    }

    /// Opens the table in a database that speaks `dialect`.
    fn open_as(dialect: &'static Dialect, address: Address, table: &Table, opening: Opening) -> Result<Self, Failure> {
        let statements = Statements::new(table);
        let mut control = Connection::open(&address)?;
        match opening {
            Opening::Existing => {}
            Opening::OrCreate => drop(control.query(&statements.create(dialect))?),
            Opening::Recreate => {
                control.query(&statements.remove())?;
                control.query(&statements.create(dialect))?;
            }
        }
        control.query(&statements.probe()).map_err(|error| no_table(&address, table, error))?;
        let isolation = setting(&mut control, "default_transaction_isolation")?;
        let mut settings = settings(&mut control, &address, &statements, &isolation)?;
        settings[0] = engine(dialect, &control);
        // Other servers lack some of these counters.
        let before = counts(&mut control).unwrap_or_default();
        let groups = isolation != "serializable";
        let server = first_process(&mut control, &address);
        Ok(Self { dialect, address, statements, control: Mutex::new(control), settings, before, groups, server })
    }

    fn control(&self) -> MutexGuard<'_, Connection> {
        // If a thread panicked in the middle of a statement, the connection reports an error at its next use.
        self.control.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A session with the address's number of connections.
    pub(crate) fn flights(&self, clock: Clock) -> Result<flights::Session<'_>, Failure> {
        let connections = (0..self.address.connections).map(|_| self.prepared()).collect::<Result<_, _>>()?;
        let pipeline = self.address.pipeline as usize;
        flights::Session::new(&self.statements, connections, pipeline, self.groups, clock)
    }

    fn prepared(&self) -> Result<Connection, Error> {
        let mut connection = Connection::open(&self.address)?;
        let statements: Vec<(String, &str)> = self.statements.all().collect();
        connection.prepare(statements.iter().map(|(name, sql)| (name.as_str(), *sql)))?;
        Ok(connection)
    }
}

impl Store for Postgres {
    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Flights(Box::new(self.flights(clock)?)))
    }

    /// A loader always has one connection: a COPY need not wait for answers.
    fn loader(&self, _: Clock) -> Result<Session<'_>, Failure> {
        let connection = Connection::open(&self.address)?;
        Ok(Session::Blocking(Box::new(Loader::new(connection, &self.statements))))
    }

    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let mut connection = Connection::open(&self.address)?;
        Ok(Some(loader::copy_all(&mut connection, &self.statements, rows)?))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.control().value(&self.statements.has_rows())? == "f")
    }

    /// The server's statistics. A server process reports its work there at most once a second, and when its session
    /// ends.
    fn counters(&self) -> Vec<Counter> {
        let mut control = self.control();
        let now = counts(&mut control).unwrap_or_default();
        let mut counters: Vec<Counter> = now
            .iter()
            .map(|now| {
                let before = self.before.iter().find(|before| before.name == now.name).map_or(0, |before| before.value);
                Counter::of(now.name, now.value.saturating_sub(before))
            })
            .collect();
        let size = format!("SELECT pg_total_relation_size('{}')", self.statements.table().replace('\'', "''"));
        if let Some(bytes) = control.value(&size).ok().and_then(|bytes| bytes.parse().ok()) {
            counters.push(Counter::now("bytes on disk", bytes));
        }
        counters
    }

    /// What all processes of the server use, if it runs on this machine and we may see them.
    fn used(&self) -> StoreUse {
        used(self.server)
    }

    /// Vacuums and analyzes the table, then makes a checkpoint if the user may do that.
    fn settle(&self) -> Result<(), Failure> {
        if !self.dialect.has_vacuum {
            return Ok(());
        }
        let mut control = self.control();
        control.query(&self.statements.vacuum())?;
        match control.query("CHECKPOINT") {
            Ok(_) => Ok(()),
            Err(error) if error.sqlstate() == Some(SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// The postmaster, which starts all other processes of the server, if the server runs on this machine.
pub(crate) fn first_process(control: &mut Connection, address: &Address) -> Option<u32> {
    let here = match &address.place {
        Place::Unix { .. } => true,
        Place::Tcp { host, .. } => {
            host == "localhost" || host.parse().is_ok_and(|number: std::net::IpAddr| number.is_loopback())
        }
    };
    let ours = here.then(|| control.value("SELECT pg_backend_pid()").ok()?.parse().ok()).flatten()?;
    // A loopback address may lead into a container or a tunnel, whose process ids mean nothing on this machine.
    harness::cost::processes::parent_of(ours, "postgres")
}

/// What the server has used, given its postmaster.
pub(crate) fn used(server: Option<u32>) -> StoreUse {
    server.and_then(harness::cost::processes::used_below).map_or(StoreUse::Unknown, StoreUse::Server)
}

/// The failure for a table that is missing or has other columns.
fn no_table(address: &Address, table: &Table, error: Error) -> Failure {
    let advice = match error.sqlstate() {
        Some(SqlState::UNDEFINED_TABLE) => "load it first",
        Some(SqlState::UNDEFINED_COLUMN) => "it was made with other fields: load it anew with --recreate",
        _ => return error.into(),
    };
    let mut failure = Failure::from(error);
    failure.text = format!("table `{}` of {address:?}: {advice}; {}", table.name, failure.text);
    failure
}

/// The value of a setting in our sessions. Empty if the server does not know it.
pub(crate) fn setting(control: &mut Connection, name: &str) -> Result<String, Error> {
    let rows = control.query(&format!("SELECT current_setting('{name}', true)"))?;
    Ok(rows.into_iter().flatten().next().flatten().unwrap_or_default())
}

fn settings(
    control: &mut Connection,
    address: &Address,
    statements: &Statements,
    isolation: &str,
) -> Result<Vec<Setting>, Error> {
    let mut settings = server_settings(control, isolation)?;
    settings.push(Setting::new("key order", key_order(control, statements)?));
    let (connections, pipeline) = (address.connections, address.pipeline);
    settings.push(Setting::new(
        "client",
        format!(
            "{} at {}, a thread: {connections} connections with {pipeline} requests each",
            address.database, address.place
        ),
    ));
    Ok(settings)
}

/// The engine and its version.
pub(crate) fn engine(dialect: &Dialect, control: &Connection) -> Setting {
    let version = control.parameter("server_version").unwrap_or("of unknown version");
    Setting::new("engine", format!("{} {version}", dialect.name))
}

/// The settings that do not depend on the table. The engine comes first.
pub(crate) fn server_settings(control: &mut Connection, isolation: &str) -> Result<Vec<Setting>, Error> {
    let mut get = |name: &str| setting(control, name);
    let (fsync, commit) = (get("fsync")?, get("synchronous_commit")?);
    let durability = match (fsync.as_str(), commit.as_str()) {
        ("off", _) => "buffered: log written, never synced".to_owned(),
        (_, "off") => "buffered: log written and synced some time after the commit".to_owned(),
        _ => format!("synced: every commit, with {}", get("wal_sync_method")?),
    };
    let durability = format!(
        "{durability} (fsync {fsync}, synchronous_commit {commit}, full_page_writes {})",
        get("full_page_writes")?
    );
    let compression = get("default_toast_compression")?;
    let mut settings = vec![
        Setting::new("durability", durability),
        Setting::new("cache", format!("{} (shared_buffers)", get("shared_buffers")?)),
        Setting::new(
            "compression",
            format!("{compression} for values of rows over 2 kB, {} for the log", get("wal_compression")?),
        ),
        Setting::new("page size", format!("{} bytes", get("block_size")?)),
        Setting::new("isolation", isolation),
        Setting::new(
            "checkpoints",
            format!("max_wal_size {}, checkpoint_timeout {}", get("max_wal_size")?, get("checkpoint_timeout")?),
        ),
        Setting::new("background", format!("autovacuum {}, jit {}", get("autovacuum")?, get("jit")?)),
    ];
    let engine = format!("PostgreSQL {}", control.parameter("server_version").unwrap_or("of unknown version"));
    settings.insert(0, Setting::new("engine", engine));
    settings.push(Setting::new("encryption", control.encryption()));
    Ok(settings)
}

/// The collation of the key column, which differs from ours if another program made the table.
fn key_order(control: &mut Connection, statements: &Statements) -> Result<String, Error> {
    let sql = format!(
        "SELECT CASE collname WHEN 'default' THEN 'of the database: ' || \
         (SELECT datcollate FROM pg_database WHERE datname = current_database()) \
         WHEN 'C' THEN 'bytes' ELSE collname END \
         FROM pg_attribute JOIN pg_collation ON pg_collation.oid = attcollation \
         WHERE attrelid = '{}'::regclass AND attname = 'ycsb_key'",
        statements.table().replace('\'', "''")
    );
    let rows = control.query(&sql)?;
    Ok(rows.into_iter().flatten().next().flatten().unwrap_or_else(|| "unknown".to_owned()))
}

/// The counters of the database since their last reset, and of the WAL if the server counts it.
pub(crate) fn counts(control: &mut Connection) -> Result<Vec<Counter>, Error> {
    let columns = DATABASE_COUNTERS.map(|(_, column)| column).join(", ");
    let sql = format!("SELECT {columns} FROM pg_stat_database WHERE datname = current_database()");
    let row = control.query(&sql)?.into_iter().next().unwrap_or_default();
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut counters: Vec<Counter> =
        DATABASE_COUNTERS.iter().zip(&row).map(|((name, _), text)| Counter::of(name, number(text))).collect();
    // `pg_stat_wal` exists since version 14.
    if let Ok(rows) = control.query("SELECT wal_bytes FROM pg_stat_wal") {
        counters.extend(rows.iter().flatten().map(|text| Counter::of("log bytes written", number(text))));
    }
    // The bytes of the files of tables and indexes: as version 18 counts them, as 16 and 17 do, and as older ones do.
    let of_files = [
        "SELECT sum(write_bytes)::bigint FROM pg_stat_io WHERE object <> 'wal'",
        "SELECT sum(coalesce(writes, 0) * op_bytes)::bigint FROM pg_stat_io",
        "SELECT (buffers_checkpoint + buffers_clean + buffers_backend) * current_setting('block_size')::bigint \
         FROM pg_stat_bgwriter",
    ];
    if let Some(rows) = of_files.iter().find_map(|sql| control.query(sql).ok()) {
        counters.extend(rows.iter().flatten().map(|text| Counter::of("bytes written", number(text))));
    }
    Ok(counters)
}

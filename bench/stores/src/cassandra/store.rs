//! A table of a Cassandra cluster as a [`Database`] of the key-value driver.

use crate::cassandra::address::{Address, OPTIONS, Where, name};
use crate::cassandra::connection::{Access, Connection, consistency, consistency_name};
use crate::cassandra::flights;
use crate::cassandra::server::Server;
use crate::cassandra::statements::Statements;
use harness::{Clock, Counter, Failure, Opening, Session, Setting, Store, StoreUse, Target};
use kv::{Database, KvScheme, Setup};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Lists this store with the others. It cannot run workloads without partitions, so opening it through this scheme
/// returns an error that says so.
pub const SCHEME: harness::Scheme = harness::Scheme {
    name: "cassandra",
    form: "cassandra://host:port/keyspace",
    about: "Cassandra, for `kv`; cassandra:start, cassandra:DIR: a server of our own",
    options: OPTIONS,
    networked: true,
    open: |target, _, _| {
        let text = format!(
            "target `{}`: rows of Cassandra lie in partitions, which only `larch bench kv` has",
            target.shown()
        );
        Err(Failure::session("target", text))
    },
};

/// The scheme of the targets `cassandra://…`, `cassandra:start` and `cassandra:DIR`.
pub const PARTITIONS: KvScheme = KvScheme {
    name: "cassandra",
    networked: true,
    unused: &[("bypass-cache", "Cassandra knows no `BYPASS CACHE`")],
    open: |target, setup| Ok(Box::new(Cassandra::open(target, setup)?)),
};

/// `settle` polls for running compactions: the pause between two looks, and the most looks, half an hour in total.
const SETTLE_PAUSE: Duration = Duration::from_millis(100);
const SETTLE_LOOKS: u32 = 18_000;

/// An open table.
pub struct Cassandra {
    statements: Statements,
    access: Access,
    setup: Setup,
    settings: Vec<Setting>,
    /// The connection for everything that is not measured.
    control: Mutex<Connection>,
    /// The last field: it ends after all connections to it.
    server: Option<Server>,
}

impl Cassandra {
    /// Connects to the cluster that `target` names, or starts a server. Unless an existing table is wanted, creates
    /// the keyspace and the table of `setup` if they are missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the target is wrong, if the server cannot be reached or started, or if the table has
    /// other columns.
    pub fn open(target: &Target, setup: &Setup) -> Result<Self, Failure> {
        let Address { server, keyspace, compressed } = Address::of(target)?;
        let access = access(target, setup, keyspace)?;
        match server {
            Where::Nodes { nodes, login } => Self::connect(Access { nodes, login, ..access }, setup, compressed, None),
            Where::Ours(options) => {
                let server =
                    Server::start(&options).map_err(|error| Failure::session("no_server", error.to_string()))?;
                let nodes = vec![server.address().to_string()];
                Self::connect(Access { nodes, ..access }, setup, compressed, Some(server))
            }
        }
    }

    fn connect(access: Access, setup: &Setup, compressed: bool, server: Option<Server>) -> Result<Self, Failure> {
        let table =
            name(&setup.table).map_err(|why| Failure::session("target", format!("`{}`: {why}", setup.table)))?;
        let statements = Statements::new(&access.keyspace, &table, setup.content);
        // Creating and dropping tables takes longer than the timeout of requests.
        let patient = Setup { timeout: Duration::from_secs(120), connections: 1, threads: 1, ..setup.clone() };
        let control = Connection::open(&access, &patient)?;
        if setup.opening != Opening::Existing {
            control
                .run(&Statements::create_keyspace(&access.keyspace, setup.server.replication_factor.unwrap_or(1)))?;
            control.run(&statements.create(compressed))?;
        }
        control.run(&statements.probe()).map_err(|mut failure| {
            failure.text = format!(
                "table `{}` of keyspace `{}` is not one of this driver: {failure}",
                setup.table, access.keyspace
            );
            failure
        })?;
        let settings = settings(&control, &access, setup, server.as_ref());
        Ok(Self { statements, access, setup: setup.clone(), settings, control: Mutex::new(control), server })
    }

    fn control(&self) -> MutexGuard<'_, Connection> {
        // A panicking thread gives up only its own statement, so the connection stays usable.
        self.control.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The server that was started for this store, if any.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }
}

/// How to reach the cluster, without its nodes, which the caller fills in.
fn access(target: &Target, setup: &Setup, keyspace: Option<String>) -> Result<Access, Failure> {
    let bad = |why: String| Failure::session("target", why);
    let asked = name(&setup.keyspace).map_err(|why| bad(format!("keyspace `{}`: {why}", setup.keyspace)))?;
    let keyspace = match keyspace {
        Some(of_target) if asked != Setup::default().keyspace && asked != of_target => {
            return Err(bad(format!(
                "target `{}` names another keyspace than `{asked}`: leave one out",
                target.shown()
            )));
        }
        Some(of_target) => of_target,
        None => asked,
    };
    let token_aware = match setup.server.host_selection_policy.as_deref() {
        None | Some("token-aware") => true,
        Some("round-robin") => false,
        Some(other) => {
            return Err(bad(format!(
                "the driver of Cassandra has no policy `{other}`: write token-aware or round-robin"
            )));
        }
    };
    Ok(Access {
        nodes: Vec::new(),
        login: None,
        keyspace,
        consistency: consistency(setup.server.consistency_level.as_deref().unwrap_or("quorum"))?,
        compressed: setup.server.client_compression.unwrap_or(true),
        token_aware,
    })
}

fn settings(control: &Connection, access: &Access, setup: &Setup, server: Option<&Server>) -> Vec<Setting> {
    let of_server = |name: &str| {
        // ScyllaDB and old versions of Cassandra lack `system_views.settings`.
        control.text(&format!("SELECT value FROM system_views.settings WHERE name = '{name}'"))
    };
    let version =
        control.text("SELECT release_version FROM system.local").unwrap_or_else(|| "of unknown version".to_owned());
    let durability = match of_server("commitlog_sync").as_deref() {
        Some("periodic") => {
            let period = of_server("commitlog_sync_period").unwrap_or_else(|| "some time".to_owned());
            format!("buffered: commit log written, synced every {period}")
        }
        Some(how @ ("batch" | "group")) => format!("synced: every write, by commitlog_sync {how}"),
        _ => "as the server has it".to_owned(),
    };
    let keyspace = &access.keyspace;
    let of_keyspace = control
        .run(&format!("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{keyspace}'"))
        .ok()
        .and_then(|rows| rows.into_rows_result().ok())
        .and_then(|rows| rows.maybe_first_row::<(std::collections::BTreeMap<String, String>,)>().ok()?)
        .map(|(replication,)| replication);
    let copies = of_keyspace.and_then(|mut replication| replication.remove("replication_factor"));
    let copies = copies.unwrap_or_else(|| "an unknown number".to_owned());
    let of_table = |what: &str| {
        let table = setup.table.to_ascii_lowercase();
        let from = format!("FROM system_schema.tables WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'");
        let rows = control.run(&format!("SELECT {what} {from}")).ok()?.into_rows_result().ok()?;
        Some(rows.maybe_first_row::<(std::collections::BTreeMap<String, String>,)>().ok()??.0)
    };
    let compression = of_table("compression").map_or_else(
        || "unknown".to_owned(),
        |options| match options.get("class") {
            Some(class) => class.rsplit('.').next().unwrap_or(class).trim_end_matches("Compressor").to_lowercase(),
            None => "none".to_owned(),
        },
    );
    let memory = match server {
        Some(server) => format!("heap {} MiB, and the system's", server.heap_mib()),
        None => "as the server has it".to_owned(),
    };
    let where_it_is = match server {
        Some(_) => "a server of our own on the loopback".to_owned(),
        None => access.nodes.join(", "),
    };
    vec![
        Setting::new("engine", format!("Cassandra {version}")),
        Setting::new("durability", durability),
        Setting::new("cache", memory),
        Setting::new("compression", compression),
        Setting::new("copies", format!("{copies}, consistency level {}", consistency_name(access.consistency))),
        Setting::new(
            "client",
            format!(
                "driver scylla at {where_it_is}, keyspace {keyspace}, a thread: {} connections; messages {}, pages of {} rows, \
                 {}",
                setup.connections_a_session(),
                if access.compressed { "compressed by lz4" } else { "not compressed" },
                setup.page_rows,
                if access.token_aware { "a node that has the partition" } else { "nodes in turn" },
            ),
        ),
    ]
}

impl Store for Cassandra {
    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let connection = Connection::open(&self.access, &self.setup)?;
        Ok(Session::Flights(Box::new(flights::Session::new(connection, &self.statements, &self.setup, clock)?)))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        let rows = self.control().run(&self.statements.probe())?.into_rows_result();
        Ok(rows.map_err(crate::cassandra::error::answer)?.rows_num() == 0)
    }

    fn counters(&self) -> Vec<Counter> {
        let mut counters = Vec::new();
        // The table's size is in whole mebibytes and covers flushed rows only. ScyllaDB and old versions of
        // Cassandra lack `system_views.disk_usage`.
        let keyspace = &self.access.keyspace;
        let table = self.setup.table.to_ascii_lowercase();
        let from = format!("system_views.disk_usage WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'");
        let rows = self.control().run(&format!("SELECT mebibytes FROM {from}")).ok();
        let row = rows.and_then(|rows| rows.into_rows_result().ok());
        if let Some((mebibytes,)) = row.and_then(|row| row.maybe_first_row::<(i64,)>().ok().flatten()) {
            counters.push(Counter::now("bytes on disk", (mebibytes as u64) << 20));
        }
        counters
    }

    /// What our own server has used. Unknown for other servers, which may run anywhere.
    fn used(&self) -> StoreUse {
        self.server.as_ref().map_or(StoreUse::Unknown, Server::used)
    }

    /// Waits until no compaction is running. It does not flush memtables, which only Cassandra's own tools can do.
    fn settle(&self) -> Result<(), Failure> {
        let control = self.control();
        for _ in 0..SETTLE_LOOKS {
            // ScyllaDB and old versions of Cassandra lack `system_views.sstable_tasks`.
            let Ok(tasks) = control.run("SELECT task_id FROM system_views.sstable_tasks") else { return Ok(()) };
            if tasks.into_rows_result().map_err(crate::cassandra::error::answer)?.rows_num() == 0 {
                return Ok(());
            }
            // The server does not announce the end of a compaction.
            control.runtime.block_on(async { tokio::time::sleep(SETTLE_PAUSE).await });
        }
        let minutes = (SETTLE_PAUSE * SETTLE_LOOKS).as_secs() / 60;
        Err(Failure::session("settle", format!("the server still compacts after {minutes} minutes: look at its log")))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Database for Cassandra {
    fn truncate(&self) -> Result<(), Failure> {
        self.control().run(&self.statements.truncate()).map(|_| ())
    }

    fn drop_table(&self) -> Result<(), Failure> {
        self.control().run(&self.statements.remove()).map(|_| ())
    }
}

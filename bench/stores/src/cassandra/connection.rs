//! A session of the driver with an executor of its own, which runs on the thread that waits for the session.

use crate::cassandra::error;
use harness::Failure;
use kv::Setup;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::client::{Compression, PoolSize};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::statement::Consistency;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// A session and its executor. The driver's background tasks run only while a thread waits for the session.
pub(crate) struct Connection {
    // Dropped before the executor.
    pub(crate) session: Session,
    pub(crate) runtime: Runtime,
}

/// How to reach the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// `host:port`.
    pub(crate) nodes: Vec<String>,
    /// User and password, if they are given.
    pub(crate) login: Option<(String, String)>,
    pub(crate) keyspace: String,
    pub(crate) consistency: Consistency,
    /// Whether messages are compressed.
    pub(crate) compressed: bool,
    /// Whether requests go directly to a node that has the partition.
    pub(crate) token_aware: bool,
}

/// The names of the consistency levels, as in scylla-bench.
const CONSISTENCY: [(&str, Consistency); 9] = [
    ("any", Consistency::Any),
    ("one", Consistency::One),
    ("two", Consistency::Two),
    ("three", Consistency::Three),
    ("quorum", Consistency::Quorum),
    ("all", Consistency::All),
    ("local_quorum", Consistency::LocalQuorum),
    ("each_quorum", Consistency::EachQuorum),
    ("local_one", Consistency::LocalOne),
];

/// Parses a consistency level.
pub(crate) fn consistency(name: &str) -> Result<Consistency, Failure> {
    let plain = name.to_ascii_lowercase().replace(['-', ' '], "_");
    let known = CONSISTENCY.iter().find(|(known, _)| *known == plain || known.replace('_', "") == plain);
    known.map(|(_, level)| *level).ok_or_else(|| {
        let names = CONSISTENCY.map(|(name, _)| name).join(", ");
        Failure::session("target", format!("there is no consistency level `{name}`: write one of {names}"))
    })
}

/// The name of a consistency level.
pub(crate) fn consistency_name(level: Consistency) -> &'static str {
    CONSISTENCY.iter().find(|(_, known)| *known == level).map_or("unknown", |(name, _)| name)
}

impl Connection {
    /// Connects to some of the nodes.
    pub(crate) fn open(access: &Access, setup: &Setup) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::session("io", format!("cannot make an executor: {error}")))?;
        // The driver does not retry: the harness's clients do, and count their retries.
        let profile = ExecutionProfile::builder()
            .consistency(access.consistency)
            .request_timeout(Some(setup.timeout))
            .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
            .load_balancing_policy(DefaultPolicy::builder().token_aware(access.token_aware).build())
            .build();
        let connections = NonZeroUsize::new(setup.connections_a_session()).expect("it is at least 1");
        let mut builder = SessionBuilder::new()
            .known_nodes(&access.nodes)
            .pool_size(PoolSize::PerHost(connections))
            .compression(access.compressed.then_some(Compression::Lz4))
            .default_execution_profile_handle(profile.into_handle())
            .keyspaces_to_fetch([&access.keyspace]);
        if let Some((user, password)) = &access.login {
            builder = builder.user(user, password);
        }
        let session = runtime.block_on(builder.build()).map_err(|error| {
            Failure::session("connection", format!("cannot connect to {}: {error}", access.nodes.join(", ")))
        })?;
        Ok(Self { session, runtime })
    }

    /// Runs a CQL statement.
    pub(crate) fn run(&self, cql: &str) -> Result<QueryResult, Failure> {
        let failed = |error| {
            let mut failure = error::request(&error);
            failure.text = format!("`{cql}`: {}", failure.text);
            failure
        };
        self.runtime.block_on(self.session.query_unpaged(cql, ())).map_err(failed)
    }

    /// The first value of the first row, as text. `None` if no row was found, or if this server version lacks the
    /// table.
    pub(crate) fn text(&self, cql: &str) -> Option<String> {
        let rows = self.run(cql).ok()?.into_rows_result().ok()?;
        rows.maybe_first_row::<(Option<String>,)>().ok()??.0
    }
}

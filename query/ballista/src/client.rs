//! A session whose queries the executors of a scheduler answer. This process reads only the columns of a table, and
//! no rows.

use crate::codec::LogicalCodec;
use crate::databases::{Databases, MOVED_ON};
use crate::failure::sent;
use crate::table::PlacedTable;
use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use datafusion::common::exec_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use larch_datafusion::{Elsewhere, Provide};
use os::sync::Arc;
use std::time::Duration;

/// If an executor from which the client reads rows sends nothing for this time, the client sends a keep-alive ping,
/// and if no answer comes for the same time, takes the executor for lost. So it notices a loss after twice this
/// time.
const ALIVE: Duration = Duration::from_secs(10);

/// Parts of Ballista's messages when an executor is lost: the scheduler has ended the query, or another executor or
/// the client cannot fetch rows.
const LOST: [&str; 4] = [
    "failed: Cancelled",
    "has failed 1 times, most recent failure reason",
    "FetchFailed(",
    "Error connecting to Ballista scheduler or executor",
];

/// The executors of a scheduler, for queries about one database.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// `HOST:PORT`.
    scheduler: String,
    /// The directory or URL at which the scheduler and its executors find the database.
    database: String,
}

impl Cluster {
    /// The executors of the scheduler at `HOST:PORT`, which find the database at `database`, a directory or a URL.
    pub fn new(scheduler: &str, database: &str) -> Self {
        Self { scheduler: scheduler.to_owned(), database: database.to_owned() }
    }
}

impl Elsewhere for Cluster {
    fn provide(&self) -> Provide {
        let database = self.database.clone();
        Arc::new(move |table| Arc::new(PlacedTable::new(&database, table)))
    }

    fn session(&self, here: SessionState) -> Result<SessionState> {
        // The client only sends plans and opens no databases.
        let databases = Databases::new(Arc::new(|place| exec_err!("{place} is not read by the process that asks")));
        let config = here.config().clone().with_ballista_logical_extension_codec(LogicalCodec::new(&databases));
        // By keep-alive pings, the client notices if an executor stops while it sends rows.
        let config = config.with_ballista_override_create_grpc_client_endpoint(Arc::new(|endpoint| {
            let alive = endpoint.http2_keep_alive_interval(ALIVE).keep_alive_timeout(ALIVE);
            Ok(alive.keep_alive_while_idle(true).connect_timeout(ALIVE))
        }));
        let here = SessionStateBuilder::new_from_existing(here).with_config(config).build();
        here.upgrade_for_ballista(format!("http://{}", self.scheduler))
    }

    fn have_moved_on(&self, error: &DataFusionError) -> bool {
        sent(error).is_some_and(|words| words.contains(MOVED_ON))
    }

    fn have_lost_one(&self, error: &DataFusionError) -> bool {
        let words = error.to_string();
        LOST.iter().any(|lost| words.contains(lost))
    }

    fn words_of(&self, error: &DataFusionError) -> Option<String> {
        sent(error)
    }
}

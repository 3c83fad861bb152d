//! How a workload is run: the number of clients, when their operations begin, and during which time their operations
//! are counted. This module runs nothing.

mod nanos;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most clients that a run can have. A client has a few hundred bytes of state, so all of them need a few
/// hundred megabytes.
pub const MOST_CLIENTS: usize = 1_000_000;

/// The most threads that a run can have. Each thread has a few megabytes of counters of its own, which are added up
/// once an interval.
pub const MOST_THREADS: usize = 1024;

/// How a workload is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The number of clients: 1 to [`MOST_CLIENTS`], or 1 to [`MOST_THREADS`] where the store's calls wait.
    pub clients: usize,
    /// The number of threads for all clients, if a session can have many requests under way: 1 to [`MOST_THREADS`].
    /// Otherwise, each client has a thread.
    pub workers: usize,
    /// When operations begin.
    pub pace: Pace,
    /// The time over which the clients start, one after the other.
    #[serde(rename = "ramp_nanos", with = "nanos")]
    pub ramp: Duration,
    /// How long the clients work after the ramp before their operations are counted.
    #[serde(rename = "warmup_nanos", with = "nanos")]
    pub warmup: Duration,
    /// How long the window lasts.
    pub length: Length,
    /// An upper limit on the length of the window, after which the run ends as if it were done.
    #[serde(rename = "limit_nanos", with = "nanos::optional", default)]
    pub limit: Option<Duration>,
    /// The length of an interval. The run is shown and kept interval by interval.
    #[serde(rename = "interval_nanos", with = "nanos")]
    pub interval: Duration,
    /// How long a thread may delay clients whose time has come, so that one wake-up serves many clients. The thread
    /// sleeps until the run's clock reaches a multiple of this time, and then serves all clients whose time has
    /// come. The delay counts as waiting. If it is zero, a thread wakes up as exactly as it can.
    #[serde(rename = "slack_nanos", with = "nanos", default)]
    pub slack: Duration,
    /// Whether sessions come from [`Store::loader`](crate::Store::loader). The time in which they write their last
    /// gathered rows is then part of the window.
    pub loading: bool,
}

impl Default for Plan {
    /// One client that does all its operations, with no wait between them.
    fn default() -> Self {
        Self {
            clients: 1,
            workers: 1,
            pace: Pace::Closed,
            ramp: Duration::ZERO,
            warmup: Duration::ZERO,
            length: Length::All,
            limit: None,
            interval: Duration::from_secs(1),
            slack: Duration::ZERO,
            loading: false,
        }
    }
}

/// When operations begin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// A client begins each operation when its previous operation is over.
    Closed,
    /// Operations begin on a schedule, whether the store is ready or not. All clients together begin the given
    /// number of operations per second.
    Open {
        /// Operations per second.
        per_second: f64,
    },
}

/// How long the window of a run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// For this time.
    #[serde(rename = "nanos", with = "nanos")]
    Time(Duration),
    /// The window lasts until the clients together have done the given number of operations in it.
    Operations(u64),
    /// Until no client has an operation left.
    All,
}

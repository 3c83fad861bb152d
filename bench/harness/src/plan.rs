//! How a workload is run: by how many clients, when their operations begin, and how long they count. It runs nothing.

mod nanos;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Clients that a run has at most. A client is some hundred bytes of state, so that these are some hundred megabytes.
pub const MOST_CLIENTS: usize = 1_000_000;

/// Threads that a run has at most. Each counts in some megabytes of its own, which are added up once an interval.
pub const MOST_THREADS: usize = 1024;

/// How a workload is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The number of clients: 1 to [`MOST_CLIENTS`], or [`MOST_THREADS`] where the store's calls wait.
    pub clients: usize,
    /// Threads for them all where a session has many requests under way: 1 to [`MOST_THREADS`]. Where it has not, each
    /// client has a thread.
    pub workers: usize,
    /// When operations begin.
    pub pace: Pace,
    /// The clients begin one after the other in this time.
    #[serde(rename = "ramp_nanos", with = "nanos")]
    pub ramp: Duration,
    /// How long they then work before what they do counts.
    #[serde(rename = "warmup_nanos", with = "nanos")]
    pub warmup: Duration,
    /// How long it counts.
    pub length: Length,
    /// The window is at most this long; then the run ends as if it were done.
    #[serde(rename = "limit_nanos", with = "nanos::optional", default)]
    pub limit: Option<Duration>,
    /// The pieces that the run is shown and kept in.
    #[serde(rename = "interval_nanos", with = "nanos")]
    pub interval: Duration,
    /// How long a thread may let a client wait whose time has come, so that it wakes up once for many. It sleeps until
    /// a multiple of this on the run's clock, and serves all whose time has come by then. This counts as waiting. If it
    /// is zero, a thread wakes up as exactly as it can.
    #[serde(rename = "slack_nanos", with = "nanos", default)]
    pub slack: Duration,
    /// Whether the sessions are those of [`Store::loader`](crate::Store::loader). What they gathered is written within
    /// the window.
    pub loading: bool,
}

impl Default for Plan {
    /// One client that does all it has, at once.
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
    /// Each when the one before it is over.
    Closed,
    /// On a schedule, this number a second of all clients together, whether the store is ready for it or not.
    Open {
        /// Operations a second.
        per_second: f64,
    },
}

/// How long a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// So long.
    #[serde(rename = "nanos", with = "nanos")]
    Time(Duration),
    /// Until the clients together have done this number of operations of the window.
    Operations(u64),
    /// Until no client has one left.
    All,
}

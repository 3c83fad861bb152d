//! How a store is driven and measured. This crate knows no workload and no engine: a workload makes [`Client`]s, and
//! an engine is a [`Store`].
//!
//! ```text
//!   Workload ──makes──> Client ──Request──> Session of a Store
//!                          ^                     │
//!                          └── Reply, Outcome ───┘    times into histograms
//! ```
//!
//! The code that runs for each operation takes no lock, touches no counter that another thread writes, and allocates
//! nothing.

pub mod client;
pub mod clock;
pub mod conformance;
pub mod cost;
pub mod directory;
pub mod failure;
pub mod gather;
pub mod key_value;
pub mod listen;
pub mod measured;
pub mod noop;
pub mod noop_cost;
pub mod partitions;
pub mod password;
pub mod plan;
pub mod prometheus;
pub mod reply;
pub mod report;
pub mod request;
pub mod run;
pub mod share;
pub mod store;
pub mod strings;
pub mod target;
pub mod times;
pub mod transactions;
pub mod version;

pub use client::{Client, Extra, Kind, Next, Since, Wait, Workload};
pub use clock::Clock;
pub use cost::Cost;
pub use directory::Directory;
pub use failure::{Failure, Harm};
pub use gather::{Gather, WriteMany};
pub use key_value::{KeyValue, Records};
pub use listen::listen;
pub use measured::{Change, Counted, Interval, Measure, Measured, Noted};
pub use noop_cost::noop_nanos;
pub use partitions::{Order, PartitionRequest, PartitionRows};
pub use password::without_password;
pub use plan::{Length, MOST_CLIENTS, MOST_THREADS, Pace, Plan};
pub use prometheus::Prometheus;
pub use reply::Reply;
pub use report::Million;
pub use request::{Fields, Request, Table};
pub use run::{RunError, run, run_from};
pub use share::{Part, Share};
pub use store::{Blocking, Counter, Flights, Outcome, Rows, Served, ServerUse, Session, Setting, Store, StoreUse};
pub use strings::{NotARow, Strings};
pub use target::{Opening, Options, Scheme, Target};
pub use times::Times;
pub use transactions::{Checked, Commits, Ended, Transactions};

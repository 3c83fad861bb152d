//! How a store is driven and measured. It knows no workload and no engine: a workload makes [`Client`]s, an engine is a
//! [`Store`].
//!
//! ```text
//!   Workload ──makes──> Client ──Request──> Session of a Store
//!                          ^                     │
//!                          └── Reply, Outcome ───┘    times into histograms
//! ```
//!
//! What happens once an operation takes no lock, touches no counter that another thread writes, and allocates nothing.

pub mod client;
pub mod clock;
pub mod conformance;
pub mod cost;
pub mod directory;
pub mod gather;
pub mod key_value;
pub mod listen;
pub mod measured;
pub mod noop;
pub mod partitions;
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
pub use cost::{Cost, Million, noop_nanos};
pub use directory::Directory;
pub use gather::{Gather, WriteMany};
pub use key_value::{KeyValue, Records};
pub use listen::listen;
pub use measured::{Change, Counted, Interval, Measure, Measured, Noted};
pub use partitions::{Order, PartitionRequest, PartitionRows};
pub use prometheus::Prometheus;
pub use reply::Reply;
pub use request::{Fields, Request, Table};
pub use run::{Length, MOST_CLIENTS, MOST_THREADS, Pace, Plan, RunError, run, run_from};
pub use share::{Part, Share};
pub use store::{
    Blocking, Counter, Failure, Flights, Harm, Outcome, Rows, Served, ServerUse, Session, Setting, Store, StoreUse,
};
pub use strings::{NotARow, Strings};
pub use target::{Opening, Options, Scheme, Target};
pub use times::Times;
pub use transactions::{Checked, Commits, Ended, Transactions};

//! Databases on object storage: how requests are sent to a store, and how the engine gets a store. This crate knows
//! nothing of files, logs or manifests.
//!
//! [`RemoteStore`] is an [`os::Store`] over the crate `object_store`. Its URL names S3 or a compatible store,
//! Azure, Google Cloud, a directory (`file://`) or memory (`memory:///`). It has an event loop of its own, so that
//! callers need none, and hundreds of requests can be under way without a thread each. A [`Connection`] lets the
//! engine run on it:
//!
//! ```no_run
//! let connection = larch_remote::Connection::of_url("s3://bucket/database", &larch_remote::Near::default())?;
//! let db = connection.builder().open()?;
//! db.table("t")?.insert("key", "value")?;
//! println!("{}", connection.store.counts());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it speaks to the network through an executor, outside of what is simulated; os::SimStore is its twin there"
)]

mod connection;
mod connector;
mod counts;
mod event_loop;
mod failure;
mod last_answer;
mod patience;
mod shared;
mod store;
pub mod trouble;
mod upload;
mod url;

pub use connection::{Connection, Near};
pub use os::store::{Bill, Cost, Counts, Price, Requests};
pub use patience::Patience;
pub use store::RemoteStore;
pub use url::{Place, is_url};

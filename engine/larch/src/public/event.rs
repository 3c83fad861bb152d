//! Events report what the engine does in the background, as it happens: flushes, compactions, stalls, errors.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use larch::event::Event;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! static FLUSHES: AtomicU64 = AtomicU64::new(0);
//! let db = larch::Database::builder(&directory)
//!     .on_event(|event: &Event| {
//!         if matches!(event, Event::FlushFinished { .. }) {
//!             FLUSHES.fetch_add(1, Ordering::Relaxed);
//!         }
//!     })
//!     .open()?;
//! db.table("fruit")?.insert("apple", "red")?;
//! db.flush()?;
//! assert_eq!(FLUSHES.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! ```

pub use crate::base::event::{CompactionReason, Event, EventLevel, StallReason};

//! Pages of bytes by address, from memory or from disk. This crate knows no keys, no rows and no levels.
//!
//! Readers are ordinary synchronous functions over a [`PageSource`] that never blocks. If a page is not in memory,
//! the step ends with [`Stop::Fault`]. Then [`retry()`] fetches all pages that the step missed or asked for ahead,
//! in one round, and runs the step again.

#![deny(unsafe_code)]

pub mod address;
mod budget;
pub mod cache;
mod cost;
pub mod counters;
pub mod elastic;
pub mod error;
pub mod file;
pub mod flaky;
#[allow(unsafe_code, reason = "pages are found and let go without a lock: measured")]
pub mod frame;
pub mod gauge;
pub mod guard;
pub mod loaded;
pub mod notes;
#[cfg(test)]
mod numbered;
mod open_files;
pub mod page;
mod page_key;
mod page_read;
pub mod policy;
pub mod resident;
pub mod retry;
pub mod session;
pub mod source;
pub mod trace;
mod wake;

pub use address::{Address, PACK_BYTES};
pub use cache::{
    CacheUsage, CutPart, Cutter, Excerpt, ExcerptName, FilesUsage, HeldPage, PageCache, PageHeat, ResidentPage,
};
pub use counters::{Counters, Reason};
pub use elastic::Elastic;
pub use error::{Error, Result};
pub use file::PagedFile;
pub use flaky::Flaky;
pub use frame::{LentPage, LivePage, Page, PageRef, Part};
pub use guard::Guard;
pub use loaded::Loaded;
pub use page::{Codec, Compression, HEADER_BYTES, Packing, PageHeader, PageKind, encode_page};
pub use resident::Resident;
pub use retry::{retry, retry_async, together};
pub use session::{Admit, OwnMemory, Session, Waits};
pub use source::{PageAt, PageLender, PageSource, Stop};
pub use trace::Trace;

//! Decisions about levels of files: what to merge next, which compaction has claimed which files, and which merges
//! are offered to other processes. This module does not know how files are read or written.

pub mod claim;
pub mod expiry;
pub mod level0;
pub mod levels_lock;
pub mod offers;
pub mod pick;
pub mod picks;
pub mod waste;
pub mod work;

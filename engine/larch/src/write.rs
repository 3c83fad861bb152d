//! The write path: batches become commits, commits become rows in memory, and rows in memory become files of level
//! 0. This module does not know how files are merged into deeper levels.

pub mod change;
pub mod commit;
pub mod define;
pub mod flush;
pub mod indexed;
mod joined;
pub mod keep;
pub mod large;
pub mod limits;
pub mod log_job;
pub mod not_committed;
pub mod recovery;
pub mod room;
pub mod spill;
pub mod subscribe;
pub mod sync_job;
pub mod times;
pub mod validation;

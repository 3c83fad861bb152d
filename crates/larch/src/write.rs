//! The way of writes: batches become commits, commits become rows in memory, and memory becomes files of level 0. It does not
//! know the levels below.

pub mod ahead;
pub mod batch;
pub mod commit;
pub mod fill;
pub mod flush;
pub mod indexed;
mod joined;
pub mod large;
pub mod limits;
pub mod log_job;
pub mod not_committed;
pub mod pace;
pub mod reserve;
pub mod room;
pub mod spill;
pub mod stall;
pub mod sync_job;
pub mod writer;

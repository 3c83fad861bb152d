//! The way in: batches become commits, commits become rows in memory, and memory becomes files of level 0.

pub mod batch;
pub mod commit;
pub mod flush;
pub mod limits;
pub mod pace;
pub mod reserve;
pub mod room;
pub mod stall;
pub mod writer;

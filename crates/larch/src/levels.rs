//! Levels of files: what to merge next, who has claimed which files, and which merges other processes are to do. It
//! decides, and does not know how files are read or written.

pub mod claim;
pub mod level0;
pub mod levels_lock;
pub mod offers;
pub mod pick;
pub mod picks;
pub mod waste;
pub mod work;

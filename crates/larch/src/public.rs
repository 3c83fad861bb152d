//! The modules that a program sees beside the root of the crate. They hold names only, each with the words and the
//! example that its topic needs. What the names stand for lies in the folders below.

pub mod backup;
pub mod bulk;
pub mod check;
pub mod event;
pub mod explain;
pub mod index;
pub mod machine;
pub mod options;
pub mod rows;
pub mod stats;
pub mod transaction;
pub mod worker;

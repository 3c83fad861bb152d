//! Inspects a database: counters, checks, dumps, and explanations of reads. Nothing in here changes what a read
//! returns, and it does not know how data is written.

pub mod check;
pub mod dump;
pub mod metrics;
pub mod scrub;

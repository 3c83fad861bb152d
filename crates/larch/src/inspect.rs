//! Looking at a database: counters, checks, dumps, and what a read did. Nothing here changes what a read shows.

pub mod check;
pub mod damage;
pub mod dump;
pub mod explain;
pub mod metrics;
pub mod problem;
pub mod scrub;

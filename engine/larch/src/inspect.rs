//! Inspects a database: counters, checks, dumps, and explanations of reads. Nothing in this folder changes what a
//! read returns. This module does not know how data is written.

pub mod check;
pub mod dump;
pub mod metrics;
pub mod published;
pub mod scrub;

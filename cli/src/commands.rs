//! What each command does, one file for each.

pub mod alter;
pub mod backup;
pub mod build_files;
pub mod check;
pub mod checkpoint;
pub mod compact;
pub mod demo;
pub mod dump;
pub mod explain;
pub mod follow;
pub mod import;
pub mod index;
pub mod ingest;
pub mod load;
pub mod metrics;
pub mod plan;
pub mod point;
pub mod repair;
pub mod restore;
pub mod scan;
pub mod share;
pub mod split;
pub mod stats;
pub mod tables;
pub mod verify_backup;
pub mod warm;

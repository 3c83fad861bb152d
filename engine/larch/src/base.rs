//! What all other folders use: errors, options, events, bounds of keys, and the encoding of commits and log records.
//! This folder does not know what a database is.

pub mod boundaries;
pub mod bounds;
pub mod budget;
pub mod conflict;
pub mod error;
pub mod event;
pub mod expiry;
pub mod extractors;
pub mod filter;
pub mod kept;
pub mod key_head;
pub mod operand;
pub mod ops;
pub mod options;
pub mod parts;
pub mod record;
pub mod release;
pub mod retention;
pub mod row_clock;
pub mod sealed;
pub mod subscription;
pub mod table;
pub mod watch;

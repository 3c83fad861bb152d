//! Keeps the indexes of tables. This folder says what the entries of an index are, which entries a write changes,
//! and how an index is built and checked. It does not know the types of values: the program registers a function
//! that makes the index keys of a row.
//!
//! The entries of an index are the rows of a separate table. So entries are flushed, merged, read and checked in
//! the same way as all other rows.

pub mod check;
pub mod entry;
pub mod maintain;
pub mod read;

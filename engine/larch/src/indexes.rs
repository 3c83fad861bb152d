//! Keeps the indexes of tables: what the entries of an index are, which entries a write changes, and how an index is
//! built and checked. This folder does not know the types of values: the program registers a function that computes
//! the index keys of a row.
//!
//! The entries of an index are the rows of a table of their own, so they are flushed, merged, read and checked like
//! all other rows.

pub mod check;
pub mod entry;
pub mod maintain;
pub mod read;

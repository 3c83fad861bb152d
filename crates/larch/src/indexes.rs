//! Keeps indexes of tables: what their entries are, which entries a write changes, how an index is built and checked.
//! It does not know types: a program registers what makes the keys of an index from a row.
//!
//! The entries of an index are the rows of a table of its own. So they are flushed, merged, read and checked as all
//! rows are.

pub mod check;
pub mod entry;
pub mod maintain;
pub mod read;

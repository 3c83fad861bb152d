//! Defines how an engine that stores bytes remembers what a database was made with, and which of its parts were
//! loaded: in a table of its own, beside the nine tables of TPC-C.
//!
//! ```text
//!   key                                  value
//!   0                                    warehouses, seed, loaded
//!                                        or: warehouses, seed, loaded, true
//!   1, table, first warehouse, last      nothing: this part was loaded
//! ```
//!
//! The longer value says that the sums of the year are in a table of their own. A program that does not know such a
//! table expects the shorter value, and refuses the database.

use crate::database::{Form, Part};
use crate::transactions::wrong;
use harness::Failure;
use rows::{DecodeTuple as _, Tuple as _};

/// The name of this table.
pub const TABLE: &str = "tpcc";

/// The key of the entry that says what the database was made with.
pub fn form_key() -> Vec<u8> {
    (0_u8,).to_key()
}

/// The key under which a loaded part is stored.
pub fn part_key(part: &Part) -> Vec<u8> {
    (1_u8, part.table as u8, *part.warehouses.start(), *part.warehouses.end()).to_key()
}

/// The value that is stored under [`form_key`].
pub fn encode_form(form: &Form) -> Vec<u8> {
    (form.warehouses, form.seed, form.loaded).to_key()
}

/// As [`encode_form`], for a database with the sums of the year in a table of their own.
pub fn encode_form_with_sums(form: &Form) -> Vec<u8> {
    (form.warehouses, form.seed, form.loaded, true).to_key()
}

/// Decodes the result of [`encode_form`] or of [`encode_form_with_sums`]. Returns also whether the sums of the year are
/// in a table of their own.
///
/// # Errors
///
/// Fails if the bytes are not such a value.
pub fn decode_form(value: &[u8]) -> Result<(Form, bool), Failure> {
    let decoded = match <(u32, u64, i64)>::decode(value) {
        Ok((warehouses, seed, loaded)) => Ok((warehouses, seed, loaded, false)),
        Err(_) => <(u32, u64, i64, bool)>::decode(value),
    };
    let (warehouses, seed, loaded, has_sums) =
        decoded.map_err(|error| wrong(format!("the table `{TABLE}` is not of TPC-C: {error}")))?;
    Ok((Form { warehouses, seed, loaded }, has_sums))
}

#[cfg(test)]
mod tests;

//! What a row has for a field of an index. This module does not know where a row has the value of a field.

use crate::value::FieldValue;

/// A value of a field, or the reason why the row has no value for it.
pub type Found<'r> = Result<FieldValue<'r>, Unfit>;

/// Why a row has no value for a field.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The row does not have it.
    Missing,
    /// The row has something else there.
    Wrong(String),
}

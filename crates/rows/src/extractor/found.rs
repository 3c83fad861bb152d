//! What a row has for a field of an index. It does not know where the value comes from.

use crate::value::FieldValue;

/// A value of a field, or why it has none.
pub type Found<'r> = Result<FieldValue<'r>, Unfit>;

/// Why a row has no value for a field.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The row does not have it.
    Missing,
    /// The row has something else there.
    Wrong(String),
}

//! Shows declarations and keys of indexes as text. This module does not know how an extractor works.

use crate::failure::{CommandFailure, Result};
use crate::keys;
use ::rows::Extractor;
use larch::Index;
use std::ffi::OsStr;

/// The declaration of an index as text. If another program has declared the index, the text shows the bytes of the
/// declaration.
pub fn text(index: &Index) -> String {
    match Extractor::from_bytes(index.declaration()) {
        Ok(extractor) => extractor.to_string(),
        Err(_) => index.declaration().escape_ascii().to_string(),
    }
}

/// Parses a text such as `("Bonn", 7)`, which has the first fields of an index key or all of them, to the bytes
/// with which all such keys begin.
pub fn bound(index: &Index, text: &OsStr) -> Result<Vec<u8>> {
    let declaration = match Extractor::from_bytes(index.declaration()) {
        Ok(extractor) => extractor.declaration(),
        Err(error) => {
            return Err(CommandFailure::Usage(format!("index {} was made by another program: {error}", index.name())));
        }
    };
    keys::tuple_front(&declaration, "key of the index", text.as_encoded_bytes()).map_err(CommandFailure::Usage)
}

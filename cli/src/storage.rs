//! How a table is kept in files, in words and as a machine reads it.

use crate::size;
use larch::TableOptions;
use serde::Serialize;
use std::fmt;

/// What can be altered of [`TableOptions`].
#[derive(Serialize)]
pub struct Storage {
    page_bytes: u32,
    node_bytes: u32,
    index: String,
    compression: String,
}

impl From<&TableOptions> for Storage {
    fn from(options: &TableOptions) -> Self {
        Self {
            page_bytes: options.page_bytes,
            node_bytes: options.node_bytes,
            index: format!("{:?}", options.index).to_lowercase(),
            compression: format!("{:?}", options.compression).to_lowercase(),
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (page, node) = (size::bytes(self.page_bytes.into()), size::bytes(self.node_bytes.into()));
        write!(f, "pages of {page}, nodes of {node}, index {}, compression {}", self.index, self.compression)
    }
}

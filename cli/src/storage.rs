//! Prints how a table is stored in files, in words or as JSON.

use crate::expiring::{self, NEVER};
use crate::size;
use larch::TableOptions;
use serde::Serialize;
use std::fmt;

/// The [`TableOptions`] that can be altered after the table was made.
#[derive(Serialize)]
pub struct Storage {
    page_bytes: u32,
    node_bytes: u32,
    index: String,
    compression: String,
    filters: String,
    filter_prefix_bytes: u16,
    in_memory: bool,
    /// Until when rows are there, as `after 10m`.
    expire: String,
}

impl From<&TableOptions> for Storage {
    fn from(options: &TableOptions) -> Self {
        Self {
            page_bytes: options.page_bytes,
            node_bytes: options.node_bytes,
            index: format!("{:?}", options.index).to_lowercase(),
            compression: options.compression.to_string(),
            filters: options.filters.to_string(),
            filter_prefix_bytes: options.filter_prefix_bytes,
            in_memory: options.in_memory,
            expire: expiring::text(&options.expiry),
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (page, node) = (size::bytes(self.page_bytes.into()), size::bytes(self.node_bytes.into()));
        let Self { index, compression, filters, filter_prefix_bytes: prefix, .. } = self;
        write!(f, "pages of {page}, nodes of {node}, index {index}, compression {compression}, filters {filters}")?;
        if *prefix > 0 {
            write!(f, " with prefixes of {}", size::bytes(u64::from(*prefix)))?;
        }
        f.write_str(if self.in_memory { ", in memory" } else { "" })?;
        if self.expire == NEVER { Ok(()) } else { write!(f, ", rows expire {}", self.expire) }
    }
}

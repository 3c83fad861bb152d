//! A page that a session reads from disk. This module does not know how the read ends.

use crate::page_key::PageKey;
use crate::{Address, PageKind};

/// A page read from disk.
pub(crate) struct PageRead {
    pub key: PageKey,
    /// Id of its file.
    pub file: u64,
    pub at: Address,
    pub kind: PageKind,
    /// Whether the step needs the page; if not, it is read ahead.
    pub needed: bool,
}

//! A page that a session was asked for. This module does not know how the page is read.

use crate::page_key::PageKey;
use crate::{Address, PageKind, PagedFile};
use os::sync::Arc;

/// A request for a page.
#[derive(Clone)]
pub(super) struct Request {
    pub key: PageKey,
    /// When the page was asked for, by the clock of the step.
    pub time: u64,
    /// Whether the step needs the page; if not, it is read ahead.
    pub needed: bool,
    pub file: Arc<PagedFile>,
    pub at: Address,
    pub kind: PageKind,
}

impl Request {
    /// Memory to reserve for the page.
    pub fn memory_bytes(&self) -> u64 {
        self.at.memory_bytes()
    }
}

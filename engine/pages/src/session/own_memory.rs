//! Memory for the pages of sessions that read around the cache. This module does not know what these sessions
//! read.

use crate::budget::{Budget, Charge};
use os::sync::Arc;

/// A budget for pages that sessions read for themselves alone. Clones share it.
///
/// Pages that are read ahead stay within the budget. Pages that a step needs may exceed it, because such a session
/// has nobody to wait for and must go on. So the budget should have room for the pages of a step on top of those
/// that are read ahead.
#[derive(Clone, Debug)]
pub struct OwnMemory {
    budget: Arc<Budget>,
}

impl OwnMemory {
    /// A budget of `bytes`. No memory is allocated before pages are read.
    pub fn new(bytes: u64) -> Self {
        Self { budget: Arc::new(Budget::new(bytes)) }
    }

    /// The budget in bytes.
    pub fn budget_bytes(&self) -> u64 {
        self.budget.limit()
    }

    /// The used bytes.
    pub fn used_bytes(&self) -> u64 {
        self.budget.used()
    }

    /// Memory for pages that are needed.
    pub(super) fn reserve(&self, bytes: u64) -> Charge {
        self.budget.overdraw(bytes)
    }

    /// Memory for a page that is read ahead, if room is left.
    pub(super) fn try_reserve(&self, bytes: u64) -> Option<Charge> {
        self.budget.try_charge(bytes).ok()
    }
}

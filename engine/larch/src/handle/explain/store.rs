//! Counts the requests to a store while a read is being explained.

use os::Disk;
use os::store::{Bill, Counts};

/// The requests to the store during a read, including those that the process made for other purposes at the same
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedStore {
    /// The numbers of requests and bytes.
    pub counts: Counts,
    /// What they cost, in billionths of the currency in which the prices are given. `None` if the prices are
    /// unknown.
    pub billionths: Option<u64>,
}

/// The store's counts when a read began.
pub struct StoreWatch<'d> {
    disk: &'d dyn Disk,
    before: Option<Bill>,
}

impl<'d> StoreWatch<'d> {
    /// Starts counting.
    pub fn begin(disk: &'d dyn Disk) -> Self {
        Self { disk, before: disk.bill() }
    }

    /// The requests since `begin`, or `None` if the files are not in a store.
    pub fn end(&self) -> Option<ExplainedStore> {
        let now = self.disk.bill()?;
        let bill = Bill { counts: now.counts.since(&self.before?.counts), ..now };
        Some(ExplainedStore { counts: bill.counts, billionths: bill.billionths() })
    }
}

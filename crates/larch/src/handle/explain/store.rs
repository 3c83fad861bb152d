//! What a store is asked while a read is explained. This module does not know what the read does.

use os::Disk;
use os::store::{Bill, Counts};

/// What the store was asked while a read ran: by this read, and by everything else that the process did meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedStore {
    /// Requests and bytes.
    pub counts: Counts,
    /// The cost of these requests and bytes, in billionths of the currency of the prices. `None` if the prices are
    /// not known.
    pub billionths: Option<u64>,
}

/// The counts of a store at the moment when a read began.
pub struct StoreWatch<'d> {
    disk: &'d dyn Disk,
    before: Option<Bill>,
}

impl<'d> StoreWatch<'d> {
    /// Counts from now on.
    pub fn begin(disk: &'d dyn Disk) -> Self {
        Self { disk, before: disk.bill() }
    }

    /// What the store was asked since `begin`. `None` if the files are in no store.
    pub fn end(&self) -> Option<ExplainedStore> {
        let now = self.disk.bill()?;
        let bill = Bill { counts: now.counts.since(&self.before?.counts), ..now };
        Some(ExplainedStore { counts: bill.counts, billionths: bill.billionths() })
    }
}

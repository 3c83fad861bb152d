//! What a store is asked while a read is explained. It does not know what the read does.

use os::Disk;
use os::store::{Bill, Counts};

/// What the store was asked while a read ran: by this read, and by whatever else the process did meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedStore {
    /// Requests and bytes.
    pub counts: Counts,
    /// What they cost, in billionths of the currency of the prices; `None` if these are not known.
    pub billionths: Option<u64>,
}

/// Where the counts of a store stood.
pub struct StoreWatch<'d> {
    disk: &'d dyn Disk,
    before: Option<Bill>,
}

impl<'d> StoreWatch<'d> {
    /// From now on.
    pub fn begin(disk: &'d dyn Disk) -> Self {
        Self { disk, before: disk.bill() }
    }

    /// What was asked since; `None` if the files are in no store.
    pub fn end(&self) -> Option<ExplainedStore> {
        let now = self.disk.bill()?;
        let bill = Bill { counts: now.counts.since(&self.before?.counts), ..now };
        Some(ExplainedStore { counts: bill.counts, billionths: bill.billionths() })
    }
}

//! The database as it was at one version.

use super::table::Table;
use crate::core::handle::DatabaseHandle;
use crate::core::snapshots::PinnedVersion;
use crate::error::Result;
use os::sync::Arc;
use sst::Version;

/// The database as it was at one version. Cheap; cloning shares it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    handle: Arc<DatabaseHandle>,
    pin: Arc<PinnedVersion>,
}

impl Snapshot {
    pub(super) fn new(handle: &Arc<DatabaseHandle>) -> Self {
        Self { handle: handle.clone(), pin: Arc::new(handle.core().views.pin()) }
    }

    /// The version it shows.
    pub fn version(&self) -> Version {
        self.pin.version()
    }

    /// What keeps the version of a snapshot of `table`'s database.
    pub(crate) fn pin_of(&self, table: &Table) -> Result<&Arc<PinnedVersion>> {
        table.inner().check_handle(&self.handle)?;
        Ok(&self.pin)
    }
}

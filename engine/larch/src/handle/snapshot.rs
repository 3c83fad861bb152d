//! A snapshot of a database. Its reads are in `readable`.

use crate::base::error::{Error, Result};
use crate::core::handle::DatabaseHandle;
use crate::core::snapshots::PinnedVersion;
use crate::read::Reader;
use os::sync::Arc;
use sst::Version;

/// The database as it was at one version. Read from it with [`Readable`](crate::Readable). A clone is cheap, and
/// another handle to the same snapshot.
///
/// While a snapshot exists, compactions keep the rows that it shows, so rows that are overwritten or erased
/// meanwhile take space until it is dropped.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// use larch::Readable;
///
/// fruit.insert("apple", "green")?;
/// let snapshot = db.snapshot();
/// fruit.insert("apple", "red")?;
/// assert_eq!(snapshot.get(&fruit, "apple")?.as_deref(), Some(&b"green"[..]));
/// assert_eq!(snapshot.iter(&fruit).count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    handle: Arc<DatabaseHandle>,
    pin: Arc<PinnedVersion>,
}

impl Snapshot {
    pub(super) fn new(handle: &Arc<DatabaseHandle>) -> Self {
        Self::of_pin(handle, handle.core().views.pin())
    }

    /// The database as it was at a version that `pin` pins.
    pub(super) fn of_pin(handle: &Arc<DatabaseHandle>, pin: PinnedVersion) -> Self {
        Self { handle: handle.clone(), pin: Arc::new(pin) }
    }

    /// The pin of the snapshot's version, for a snapshot of the database `handle`.
    pub(super) fn pin_in(&self, handle: &Arc<DatabaseHandle>) -> Option<&PinnedVersion> {
        Arc::ptr_eq(&self.handle, handle).then(|| &*self.pin)
    }

    /// The version that the snapshot shows.
    pub fn version(&self) -> Version {
        self.pin.version()
    }

    /// The pin of the snapshot's version, for the reader `rows` to read at.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the table belongs to another database; [`Error::NotKeptOf`] if it keeps less of its
    /// past than the database.
    pub(crate) fn pin_of<V>(&self, rows: &Reader<'_, V>) -> Result<&Arc<PinnedVersion>> {
        let table = rows.handle();
        table.check_handle(&self.handle)?;
        if self.pin.shows(table.id()) {
            return Ok(&self.pin);
        }
        Err(Error::NotKeptOf { table: table.identity.name.clone(), version: self.version() })
    }
}

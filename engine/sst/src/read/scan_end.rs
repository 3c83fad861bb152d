//! Where a scan ends, expressed in rows of trees that do not know keys. This module knows the far key of the scan
//! and the index of one file.

use super::readahead::Far;
use super::sst::Sst;
use crate::Direction;
use crate::format::history_key;
use crate::format::meta::TreeKind;
use crate::row::Version;
use os::sync::Arc;
use pages::PageSource;

/// Where a scan ends, for trees that do not know keys.
#[derive(Clone, Debug)]
pub(crate) struct ScanEnd {
    pub sst: Arc<Sst>,
    pub far: Far,
}

impl ScanEnd {
    /// The row of tree `kind` up to which the scan is known to visit all rows.
    pub(super) fn row<S: PageSource + ?Sized>(&self, source: &S, kind: TreeKind, direction: Direction) -> Option<u64> {
        let main = self.sst.descent(TreeKind::Main)?;
        // A forward scan ends before the first row whose key lies beyond the far key. A backward scan ends at the
        // lowest row whose key does not lie beyond the far key.
        let after = self.far.is_included() == direction.is_forward();
        let row = main.peek_rank(source, self.far.key(), after, !direction.is_forward());
        match kind {
            TreeKind::History | TreeKind::GroupHistory(_) => {
                let history = self.sst.descent(TreeKind::History)?;
                Some(history.peek_rank(source, &history_key(row, Version::MAX), false, !direction.is_forward()))
            }
            TreeKind::Main | TreeKind::RangeErases | TreeKind::Filter | TreeKind::Group(_) => Some(row),
        }
    }
}

//! What is brought to memory in the background: pages of tables that are to be in memory, and what was there when the
//! database was closed last. Nobody waits for it.

use super::state::{self, Restored};
use super::{KeyRange, Loader};
use crate::core::Core;
use crate::error::Result;
use crate::manifest::Edit;
use crate::manifest::db_file::DbFile;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, Weak};
use os::{Job, Polled};
use pages::Reason;

/// What is left to do, and what was done.
#[derive(Debug, Default)]
pub struct Warmth {
    left: Mutex<Left>,
    /// Memory brought back after the last open, in bytes.
    pub restored_bytes: AtomicU64,
    /// Warm states that could not be used.
    pub refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Left {
    tables: bool,
    state: bool,
}

impl Warmth {
    /// Asks for pages of tables that are to be in memory.
    pub fn want_tables(&self) {
        self.left.lock().tables = true;
    }

    /// Asks for what was in memory when the database was closed last.
    pub fn want_state(&self) {
        self.left.lock().state = true;
    }

    /// What a restored state says of itself.
    pub fn count(&self, restored: &Restored) {
        self.restored_bytes.fetch_add(restored.warmed.bytes, Ordering::Relaxed);
        self.refused.fetch_add(u64::from(restored.is_refused), Ordering::Relaxed);
    }
}

/// The job that brings pages while there is something to bring.
#[derive(Debug)]
pub struct WarmJob(pub Weak<Core>);

impl Job for WarmJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let Left { tables, state } = std::mem::take(&mut *core.warmth.left.lock());
        if core.background.is_closing() || !tables && !state {
            return Polled::Idle;
        }
        if tables {
            // Of a page that cannot be read who needs it is told.
            keep_tables(&core).ok();
        }
        if state {
            let restored = state::restore(&core, &mut |_| !core.background.is_closing());
            core.warmth.count(&restored);
        }
        Polled::Worked
    }
}

/// Whether any table is to be in memory.
pub fn has_kept_tables(core: &Core) -> bool {
    core.view().files.tables.values().any(|table| table.info.options.in_memory)
}

/// Brings pages of all tables that are to be in memory, index nodes first, as many as their share holds.
fn keep_tables(core: &Core) -> Result<()> {
    let view = core.view();
    let tables = view.files.tables.values().filter(|table| table.info.options.in_memory);
    let files: Vec<Arc<DbFile>> = tables.flat_map(|table| table.files()).map(|(_, file)| file.clone()).collect();
    drop(view);
    let mut go_on = |_| !core.background.is_closing();
    Loader::new(&core.cache, Reason::Warm, core.cache.most_kept_bytes(), &mut go_on).files(&files, &KeyRange::ALL)?;
    Ok(())
}

/// Brings the files that a flush has written for tables that are to be in memory, as far as there is room in their share,
/// before they are installed.
pub fn keep_early(core: &Core, edits: &[Edit]) {
    let mut files = Vec::new();
    for edit in edits {
        if let Edit::AddFile { table, number, epoch, version_offset, meta, .. } = edit
            && core.table_info(*table).is_some_and(|info| info.options.in_memory)
        {
            let file = core.opener.open_early(*number, *epoch, *version_offset, meta.clone());
            file.sst.file.keep(true);
            files.push(file);
        }
    }
    if files.is_empty() {
        return;
    }
    let most_bytes = core.cache.most_kept_bytes().saturating_sub(core.cache.kept_bytes());
    let mut go_on = |_| !core.background.is_closing();
    // Of a page that cannot be read who needs it is told.
    Loader::new(&core.cache, Reason::Warm, most_bytes, &mut go_on).files(&files, &KeyRange::ALL).ok();
}

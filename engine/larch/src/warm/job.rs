//! The background job that loads pages of tables that are kept in memory, and pages that were in memory at the last
//! close. It does not choose the latter, and no thread waits for it.

use super::loader::PageLoader;
use super::state;
use crate::base::error::Result;
use crate::core::Core;
use crate::core::background::warmth::WarmRequests;
use crate::manifest::DbFile;
use os::sync::{Arc, Weak};
use os::{Job, Polled};
use pages::Reason;
use sst::KeyRange;

/// Loads pages on request.
#[derive(Debug)]
pub struct WarmJob(pub Weak<Core>);

impl Job for WarmJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let WarmRequests { tables, state } = core.background.warmth.take();
        if core.background.is_closing() || !tables && !state {
            return Polled::Idle;
        }
        if tables {
            // Ignores an error: the next reader that needs the page gets it.
            load_kept_tables(&core).ok();
        }
        if state {
            let restored = state::restore(&core.env, &core.views.newest(), &mut |_| !core.background.is_closing());
            core.background.warmth.count(&restored);
        }
        Polled::Worked
    }
}

/// Loads pages of all tables that are kept in memory, index nodes first, as many as fit into their share of the
/// cache.
fn load_kept_tables(core: &Core) -> Result<()> {
    let view = core.views.newest();
    let tables = view.files.tables.values().filter(|table| table.info.options.in_memory);
    let files: Vec<Arc<DbFile>> = tables.flat_map(|table| table.files()).map(|(_, file)| file.clone()).collect();
    drop(view);
    let mut go_on = |_| !core.background.is_closing();
    PageLoader::new(&core.env, Reason::Warm, core.env.cache.most_kept_bytes(), &mut go_on)
        .files(&files, &KeyRange::ALL)?;
    Ok(())
}

//! Installs new files with the pages in memory that readers expect of them: the one call around a flush and a compaction.
//!
//! ```text
//!   before the install   index nodes, and the warmest data pages that have room    readers still use the old files
//!   install              readers see the new files, pages of the old ones leave
//!   after it             the other pages that were warm, then tables that are to be in memory
//! ```

use super::heat;
use super::loader::PageLoader;
use crate::core::Core;
use crate::error::Result;
use crate::files::output::NewFiles;
use crate::manifest::{Edit, Level, NewFile};
use crate::read::View;
use pages::Reason;
use sst::KeyRange;

/// Installs `new` files with what `change` does to the memtables; `edits` is given the edits that add the files and returns
/// all that are to be installed with them. The files replace `inputs`, runs of files that do not overlap each, and inherit
/// their heat; files of a flush have no inputs.
///
/// # Errors
///
/// As [`Core::install`]. That a page could not be brought is none: a later reader that needs the page gets the error.
pub fn install(
    core: &Core,
    new: NewFiles,
    inputs: Vec<Level>,
    edits: impl FnOnce(Vec<Edit>) -> Vec<Edit>,
    change: impl FnOnce(&mut View),
) -> Result<()> {
    let NewFiles { files, fresh } = new;
    let has_kept = files.iter().any(|new| is_kept(core, new));
    let rest = if inputs.is_empty() {
        keep_early(core, &files);
        None
    } else {
        Some(heat::inherit(core, inputs, &files))
    };
    let edits = edits(files.into_iter().map(Edit::AddFile).collect());
    core.install(&edits, fresh, change)?;
    if let Some(rest) = rest {
        rest.bring(core);
        if has_kept {
            core.warm_kept_tables();
        }
    }
    Ok(())
}

/// Whether the table of `new` is to be in memory.
fn is_kept(core: &Core, new: &NewFile) -> bool {
    core.views.table_info(new.table).is_some_and(|info| info.options.in_memory)
}

/// Brings the files of tables that are to be in memory before they are installed, as many pages as their share has room for.
fn keep_early(core: &Core, new: &[NewFile]) {
    let open = |new: &NewFile| {
        let file = core.env.opener.open_early(new);
        file.sst.file.keep(true);
        file
    };
    let files: Vec<_> = new.iter().filter(|new| is_kept(core, new)).map(open).collect();
    if files.is_empty() {
        return;
    }
    let cache = &core.env.cache;
    let most_bytes = cache.most_kept_bytes().saturating_sub(cache.kept_bytes());
    let mut go_on = |_| !core.background.is_closing();
    // A page that cannot be read is reported to the reader that needs it.
    PageLoader::new(cache, Reason::Warm, most_bytes, &mut go_on).files(&files, &KeyRange::ALL).ok();
}

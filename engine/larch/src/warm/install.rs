//! Installs new files, and loads those of their pages that readers expect to be in memory. Each flush and each
//! compaction ends with a call of [`install`]. This module does not know how the files were written.
//!
//! ```text
//!   before the install   loads index nodes, and the hottest data pages that have room; readers still use the old files.
//!                        Pages of a flush are loaded if its table is read and the cache has free room for them: what was just
//!                        written is read most
//!   install              readers see the new files, and pages of the old files leave the cache
//!   after it             loads other hot pages, then tables that are to be in memory
//! ```

use super::heat;
use super::loader::PageLoader;
use crate::base::error::Result;
use crate::base::table::TableId;
use crate::core::Core;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{DbFile, Edit, FileSet, Level, NewFile};
use crate::view::View;
use os::sync::Arc;
use pages::{Loaded, PageLender as _, Reason};
use sst::{KeyRange, TreeKind};

/// Installs `new` files and lets `change` change the memtables of the view, in one step. `edits` gets the edits that
/// add the files, and returns all edits to install. The new files inherit the heat of `inputs`, the runs of files
/// that they replace. The files of a run do not overlap. For a flush, `inputs` is empty.
///
/// # Errors
///
/// The errors of [`Core::install`]. Pages that cannot be loaded cause no error here: the next reader that needs them
/// gets it.
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
        load_kept_early(core, &files);
        load_read_early(core, &files);
        None
    } else {
        Some(heat::inherit(core, inputs, || files.iter().map(|new| open_early(core, new)).collect()))
    };
    let edits = edits(files.into_iter().map(Edit::AddFile).collect());
    core.install(&edits, fresh, change)?;
    if let Some(rest) = rest {
        rest.load(core);
        if has_kept {
            core.warm_kept_tables();
        }
    }
    Ok(())
}

/// Opens a new file before it is installed.
fn open_early(core: &Core, new: &NewFile) -> Arc<DbFile> {
    let file = core.env.opener.open_early(new);
    file.sst.file.keep(is_kept(core, new));
    file
}

/// Whether the table of `new` is kept in memory.
fn is_kept(core: &Core, new: &NewFile) -> bool {
    core.views.table_info(new.table).is_some_and(|info| info.options.in_memory)
}

/// Before the install, loads pages of new files whose tables are kept in memory, as many as fit into their share of
/// the cache.
fn load_kept_early(core: &Core, new: &[NewFile]) {
    let files: Vec<_> = new.iter().filter(|new| is_kept(core, new)).map(|new| open_early(core, new)).collect();
    if files.is_empty() {
        return;
    }
    let cache = &core.env.cache;
    let most_bytes = cache.most_kept_bytes().saturating_sub(cache.kept_bytes());
    let mut go_on = |_| !core.background.is_closing();
    // Ignores an error: the next reader that needs the page gets it.
    PageLoader::new(&core.env, Reason::Warm, most_bytes, &mut go_on).files(&files, &KeyRange::ALL).ok();
}

/// Before a flush is installed, loads pages of the new files whose tables are being read, as many as the cache has
/// free room for. Stops early if commits may soon have to wait for the flush.
fn load_read_early(core: &Core, new: &[NewFile]) {
    let view = core.views.newest();
    let mut tables: Vec<TableId> = new.iter().map(|new| new.table).collect();
    tables.dedup();
    tables.retain(|table| is_read(core, &view.files, *table));
    drop(view);
    let is_wanted = |new: &&NewFile| tables.contains(&new.table) && !is_kept(core, new);
    let files: Vec<_> = new.iter().filter(is_wanted).map(|new| open_early(core, new)).collect();
    let cache = &core.env.cache;
    let mut go_on = |_| !core.background.is_closing() && cache.free_bytes() > 0 && !is_awaited(core);
    // Ignores an error: the next reader that needs the page gets it.
    PageLoader::new(&core.env, Reason::Warm, cache.free_bytes(), &mut go_on).files(&files, &KeyRange::ALL).ok();
}

/// Loads pages of files that another process has flushed, as many as the cache has free room for. Index pages may
/// also replace other pages, up to a sixteenth of the cache. Stops early if `go_on` returns false.
pub fn load_flushed(core: &Core, files: &[Arc<DbFile>], go_on: &mut dyn FnMut(u64) -> bool) {
    let cache = &core.env.cache;
    let free_bytes = cache.free_bytes();
    let mut loader = PageLoader::new(&core.env, Reason::Warm, free_bytes.max(cache.budget_bytes() / 16), go_on);
    // Ignores an error: the next reader that needs the page gets it.
    if loader.nodes(files, &KeyRange::ALL).is_ok_and(|is_whole| is_whole) {
        loader.most_bytes = free_bytes;
        loader.files(files, &KeyRange::ALL).ok();
    }
}

/// Whether commits may soon have to wait for a flush, because little of the write buffer is left.
fn is_awaited(core: &Core) -> bool {
    let (view, buffer_bytes) = (core.views.newest(), core.env.options.write_buffer_bytes);
    let left_bytes = view.left_bytes(buffer_bytes).saturating_sub(view.memory[0].used_bytes());
    left_bytes < buffer_bytes / 8
}

/// Whether reads have lately used the top page of at least one file of `table`.
pub fn is_read(core: &Core, files: &FileSet, table: TableId) -> bool {
    let loaded = Loaded::new(&core.env.cache);
    let is_used = |file: &DbFile| {
        let top = file.sst.top(TreeKind::Main);
        let page = top.and_then(|top| loaded.peek(file.sst.file.at(&top.subtree.address, top.kind)));
        page.is_some_and(|page| core.env.cache.heat_of(&page).uses > 0)
    };
    files.tables.get(&table).is_some_and(|files| files.files().any(|(_, file)| is_used(file)))
}

//! Tables that see each other's files: cloning a table, splitting one and renaming one, without copying a row. The files
//! stay where they are; a manifest edit says that another table sees them too, or a part of them.

use crate::compact::cut::{self, Left, Region};
use crate::error::{Error, Result};
use crate::files::install::FreshFiles;
use crate::files::output::Outputs;
use crate::handle::database::Handle;
use crate::handle::table::Table;
use crate::manifest::{Edit, TableId};
use crate::write::commit::wait_for_level0;
use crate::write::flush;
use os::sync::Arc;
use pages::{Admit, Reason, Session};
use sst::RangeErase;

/// What a new table sees of an old one, and what becomes of that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part<'k> {
    /// All of it, which the old table keeps.
    Copy,
    /// What it has from this key on, which is taken from it.
    From(&'k [u8]),
    /// All of it, and the old table is no more.
    Whole,
}

/// Makes table `name` see `part` of what `table` has.
pub fn share(handle: &Arc<Handle>, table: &Table, name: &str, part: Part<'_>) -> Result<Table> {
    let outcome = share_files(handle, table, name, part);
    // Compaction may have found the turn taken.
    handle.core.background.wake_compact();
    outcome
}

fn share_files(handle: &Arc<Handle>, table: &Table, name: &str, part: Part<'_>) -> Result<Table> {
    let core = &handle.core;
    let from = match part {
        Part::From(key) => Some(key),
        Part::Copy | Part::Whole => None,
    };
    core.check_writable()?;
    wait_for_level0(core, None)?;
    // No compaction may change levels, and no commit may come between the steps.
    let turn = core.compacting.lock();
    let mut guard = core.write.lock();
    let writer = guard.as_mut().ok_or(Error::ReadOnly)?;
    core.check_writable()?;
    core.view().files_of(table.identity())?;
    if core.view().files.tables.named(name).is_some() {
        return Err(Error::TableExists(name.to_owned()));
    }
    flush::table_to_files(core, writer, table.id())?;
    // What is durable is a prefix of the commits: those before this one come first.
    writer.sync(core)?;
    let view = core.view();
    let files = view.files_of(table.identity())?;
    let (info, id) = (&files.info, TableId(view.files.next_table));
    let mut edits = vec![Edit::Table { id, name: name.to_owned(), options: info.options.clone() }];
    if info.since > 0 {
        edits.push(Edit::AlterTable { id, since: info.since, options: info.options.clone() });
    }
    let session = Session::new(&core.cache, Reason::Scan, Admit::Keep);
    // Of a key, not of a region's end: nothing is less than the empty key.
    let before = from.filter(|key| !key.is_empty());
    let before: Vec<Region> =
        before.map(|key| Region { start: Vec::new(), end: Some(key.to_vec()) }).into_iter().collect();
    for (level, file) in files.files() {
        let (level, number) = (level as u8, file.number);
        let left = cut::without(&session, file, &before, false)?;
        if left == Left::Nothing {
            continue;
        }
        edits.push(Edit::ShareFile { table: table.id(), level, number, to: id });
        if let Left::Part(slice) = left {
            edits.push(Edit::SliceFile { table: id, level, number, slice: Some(slice) });
        }
    }
    let mut version = None;
    let mut fresh = FreshFiles::new(core);
    if let Some(key) = from {
        // The old table's rows are hidden by a file that says so, which a compaction turns into slices.
        let at = *version.insert(writer.next_version());
        let erase = RangeErase { start: key.to_vec(), end: None, versions: vec![at] };
        let mut outputs = Outputs::new(core, info, u64::MAX, false);
        outputs.add_erase(erase)?;
        let added = outputs.finish(0, 0)?;
        edits.extend(added.edits);
        fresh.append(added.fresh);
        edits.push(Edit::LastVersion(at));
        if view.memory.iter().all(|memory| memory.is_empty()) {
            edits.push(Edit::FlushedVersion(at));
        }
    }
    if part == Part::Whole {
        // In the same record: a crash leaves one of the two names, and all rows under it.
        edits.push(Edit::DropTable(table.id()));
    }
    core.install_in(&mut core.manifest.lock(), &edits, fresh, |_| {})?;
    if let Some(version) = version {
        writer.take_version();
        core.publish(version);
    }
    drop(guard);
    drop(turn);
    if part == Part::Whole {
        core.free_old_views();
    }
    let info = core.table_info(id).ok_or_else(|| Error::NoSuchTable(name.to_owned()))?;
    Ok(Table::new(handle.clone(), info))
}

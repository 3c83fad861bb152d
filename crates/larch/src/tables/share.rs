//! Tables that see each other's files: cloning a table, splitting one and renaming one, without copying a row. The files
//! stay where they are; a manifest edit says that another table sees them too, or a part of them.

use super::change::TableChange;
use crate::compact::cut::{self, Remainder};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::files::fresh::FreshFiles;
use crate::files::output::{NewFiles, Outputs};
use crate::manifest::{Edit, TableId, TableInfo};
use os::sync::Arc;
use pages::{Admit, Reason, Session};
use sst::KeyRange;
use sst::RangeErase;

/// What a new table sees of an old one, and what becomes of that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SharedPart<'k> {
    /// All of it, which the old table keeps.
    Copy,
    /// What it has from this key on, which is taken from it.
    From(&'k [u8]),
    /// All of it, and the old table is no more.
    Whole,
}

/// Makes a new table `name` see `part` of what `table` has, and returns it.
pub fn share(core: &Arc<Core>, table: &TableInfo, name: &str, part: SharedPart<'_>) -> Result<Arc<TableInfo>> {
    let outcome = share_files(core, table, name, part);
    // Compaction may have found the turn taken.
    core.background.wake_compact();
    outcome
}

fn share_files(core: &Arc<Core>, table: &TableInfo, name: &str, part: SharedPart<'_>) -> Result<Arc<TableInfo>> {
    let from = match part {
        SharedPart::From(key) => Some(key),
        SharedPart::Copy | SharedPart::Whole => None,
    };
    let mut change = TableChange::begin_with_levels(core, table, None, || {
        let view = core.views.newest();
        view.files_of(table)?;
        match view.files.tables.named(name) {
            Some(_) => Err(Error::TableExists(name.to_owned())),
            None => Ok(()),
        }
    })?;
    let view = core.views.newest();
    let files = view.files_of(table)?;
    let (info, id) = (&files.info, TableId(view.files.next_table));
    let mut edits = vec![Edit::Table { id, name: name.to_owned(), options: info.options.clone() }];
    if info.since > 0 {
        edits.push(Edit::AlterTable { id, since: info.since, options: info.options.clone() });
    }
    let session = Session::new(&core.env.cache, Reason::Scan, Admit::Keep);
    // Nothing is less than the empty key.
    let before = from.filter(|key| !key.is_empty());
    let before: Vec<KeyRange> =
        before.map(|key| KeyRange { start: Vec::new(), end: Some(key.to_vec()) }).into_iter().collect();
    for (level, file) in files.files() {
        let (level, number) = (level as u8, file.number);
        let left = cut::without(&session, file, &before, false)?;
        if left == Remainder::Nothing {
            continue;
        }
        edits.push(Edit::ShareFile { table: table.id, level, number, to: id });
        if let Remainder::Part(slice) = left {
            edits.push(Edit::SliceFile { table: id, level, number, slice: Some(slice) });
        }
    }
    match from {
        Some(key) => {
            // The old table's rows are hidden by a file that says so, which a compaction turns into slices.
            let erase =
                RangeErase { keys: KeyRange { start: key.to_vec(), end: None }, versions: vec![change.version()] };
            let mut outputs = Outputs::new(core, info, u64::MAX, false);
            outputs.add_erase(erase)?;
            let NewFiles { files, fresh } = outputs.finish(0, 0)?;
            edits.extend(files.into_iter().map(Edit::AddFile));
            change.commit(edits, fresh)?;
        }
        None => {
            if part == SharedPart::Whole {
                // In the same record: a crash leaves one of the two names, and all rows under it.
                edits.push(Edit::DropTable(table.id));
            }
            change.install(&edits, FreshFiles::new(&core.env.opener.leftovers))?;
        }
    }
    core.views.table_info(id).ok_or_else(|| Error::NoSuchTable(name.to_owned()))
}

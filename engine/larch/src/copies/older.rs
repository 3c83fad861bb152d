//! Takes a file set back to an older version, for a copy whose newest version it becomes. This module does not know
//! where the copy goes, or which rows are only in memory.

use crate::base::boundaries::Boundaries;
use crate::base::error::{Error, Result};
use crate::base::table::TableId;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::files::older::{OlderFiles, older_files, rewrite};
use crate::files::output::Target;
use crate::manifest::directory::place::Place;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{Edit, FileSet, TableFiles};
use os::sync::Arc;
use sst::Version;

/// The files of a database at an older version.
pub struct Older {
    /// The files that are as they were.
    pub files: FileSet,
    /// The files that are new.
    pub new: NewFiles,
    /// Bytes of the new files that take the place of files with newer rows.
    pub rewritten_bytes: u64,
    /// Indexes that are left out, because they were made after the version.
    pub left_out_indexes: u64,
}

/// Takes `files` back to `version`. The caller makes sure that reads can see this version, and that its files stay
/// until the copy is made. New files are written to `place`.
///
/// # Errors
///
/// Fails if a file cannot be read or written, or if `watch` has ended the work.
pub fn older(core: &Arc<Core>, files: &FileSet, version: Version, place: &Place, watch: &Watch<'_>) -> Result<Older> {
    let mut files = FileSet::clone(files);
    files.go_back_to(version);
    let change = |files: &mut FileSet, edit: &Edit| {
        // What no table sees any more is still part of the database.
        let changed = files.apply(edit, &core.env.opener, &mut Vec::new());
        changed.expect("the edit is made from the file set");
    };
    let is_late = |table: &TableFiles| table.info.index.as_ref().is_some_and(|index| index.since > version);
    let late: Vec<TableId> = files.tables.indexes().filter(|table| is_late(table)).map(|table| table.info.id).collect();
    late.iter().for_each(|index| change(&mut files, &Edit::DropTable(*index)));
    // Reads of the copy see the same versions as those of the database, up to this one.
    let kept = files.all_kept().map(|kept| kept.version).chain([version]).collect();
    let boundaries = Boundaries::new(kept, files.retained_from()).with_tables(files.own_pasts());
    let mut new = NewFiles::none(place);
    let tables: Vec<TableFiles> = files.tables.values().cloned().collect();
    for table in &tables {
        let boundaries = boundaries.of(table.info.id);
        let OlderFiles { replaced, mixed } = older_files(table, version);
        for (level, number) in replaced {
            change(&mut files, &Edit::RemoveFile { table: table.info.id, level, number });
        }
        for mixed in mixed {
            let (at, target) = ((version, &boundaries), Target::Place(place.clone()));
            let Some(written) = rewrite(core, table, &mixed, at, target, &mut || !watch.is_over())? else {
                watch.check()?;
                return Err(Error::Cancelled("the copy"));
            };
            new.append(written);
        }
    }
    let rewritten_bytes = new.bytes();
    Ok(Older { files, new, rewritten_bytes, left_out_indexes: late.len() as u64 })
}

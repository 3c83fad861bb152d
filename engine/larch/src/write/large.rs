//! Commits a batch that is too large for the write buffer. Its rows are written to files of level 0, and become
//! visible and durable when these files are installed. This module does not look at the rows.
//!
//! The files are written before any lock is taken. All their rows have version 0, as in an import. Under the
//! writer's lock, the tables of the batch are then flushed, so that older rows lie in older files, and the files of
//! the batch are installed as one commit, in all tables at once. After a failure or a crash, nothing is left of the
//! batch.

use super::change::TableChange;
use super::flush::write_files;
use super::indexed::Indexed;
use super::not_committed::NotCommitted;
use super::room::memory_bytes;
use super::validation::Validation;
use crate::base::boundaries::Boundaries;
use crate::base::ops::CommitOps;
use crate::base::table::TableInfo;
use crate::core::Core;
use crate::core::writer::apply;
use crate::manifest::Edit;
use crate::manifest::new_files::NewFiles;
use crate::memtable::set::MemSet;
use os::sync::Arc;
use sst::Version;

/// The version that the files store for their rows. The install sets an offset in each file, so that readers see
/// the version of the commit.
pub const FILE_VERSION: Version = Version(0);

/// Commits `ops`, which must be resolved, on `tables`, if `validation` finds no conflict. When this returns, the
/// ops are durable. On a full disk, a commit that only erases may use the reserve.
///
/// # Errors
///
/// [`NotCommitted::Conflict`] if there is a conflict with another commit; an error if a table was dropped, or if
/// files cannot be written or installed. After an error, nothing has taken effect.
pub fn commit(
    core: &Arc<Core>,
    ops: CommitOps<'_>,
    tables: (&[Arc<TableInfo>], Indexed),
    mut validation: Option<&mut Validation<'_>>,
) -> Result<Version, NotCommitted> {
    let is_erases_only = ops.is_erases_only();
    loop {
        let outcome = write_and_install(core, ops, tables, validation.as_deref_mut(), is_erases_only);
        // The compaction job could begin nothing while the levels lock was held, so wake it now.
        core.background.wake_compact();
        match outcome {
            Err(NotCommitted::Failed(error))
                if error.is_disk_full() && is_erases_only && core.writes.reserve.give_back() => {}
            outcome => return outcome,
        }
    }
}

fn write_and_install(
    core: &Arc<Core>,
    ops: CommitOps<'_>,
    tables: (&[Arc<TableInfo>], Indexed),
    validation: Option<&mut Validation<'_>>,
    is_erases_only: bool,
) -> Result<Version, NotCommitted> {
    if !core.writes.reserve.is_full() && !is_erases_only {
        // Erases may have used the reserve. Refill it before a put, or puts would use up the space that erases have
        // freed.
        core.writes.reserve.fill()?;
    }
    let rows = MemSet::new(0, Arc::default());
    let bytes = memory_bytes(ops);
    rows.note_commit(FILE_VERSION, bytes);
    apply(&rows, FILE_VERSION, ops, bytes);
    let new = write_files(core, &rows, &Boundaries::only(FILE_VERSION))?;
    drop(rows);
    install(core, new, ops, tables, validation)
}

/// Installs `new` files, whose rows have the version [`FILE_VERSION`], as a commit on `tables`, if `validation`
/// finds no conflict. `ops` are the writes that it compares.
///
/// # Errors
///
/// [`NotCommitted::Conflict`] if there is a conflict with another commit; an error if a table was dropped, or if
/// the files cannot be installed. After an error, nothing has taken effect.
pub fn install(
    core: &Arc<Core>,
    mut new: NewFiles,
    ops: CommitOps<'_>,
    (tables, indexed): (&[Arc<TableInfo>], Indexed),
    validation: Option<&mut Validation<'_>>,
) -> Result<Version, NotCommitted> {
    let changed: Vec<&TableInfo> = tables.iter().map(|table| &**table).collect();
    let mut change = TableChange::begin_with_levels(core, &changed, &changed, |last| -> Result<(), NotCommitted> {
        indexed.check(&core.indexes, tables)?;
        let view = core.views.newest();
        changed.iter().try_for_each(|table| view.files_of(table).map(drop))?;
        match validation {
            Some(validation) => Ok(validation.compare(&view, &core.writes.recent, ops, last)?),
            None => Ok(()),
        }
    })?;
    let version = change.version();
    for file in &mut new.files {
        file.version_offset = version.0;
    }
    change.commit(new.files.drain(..).map(Edit::AddFile).collect(), new.fresh)?;
    core.warm_kept_tables();
    Ok(version)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

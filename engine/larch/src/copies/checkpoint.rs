//! A checkpoint is a copy in another directory of the same machine, which shares files with the database. This
//! module does not know how a moment of the database is found.

use super::moment::{Moment, Written};
use crate::base::error::Result;
use crate::base::kept::AsOf;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::files::copied_file::{copy_whole, share_file};
use crate::files::new_directory::NewDirectory;
use crate::manifest::db_file::sst_name;
use os::sync::Arc;
use sst::Version;
use std::path::Path;

/// The result of a checkpoint.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckpointReport {
    /// The checkpoint has all commits up to this version, and none after it.
    pub version: Version,
    /// SSTs of the database in the checkpoint.
    pub files: u64,
    /// Bytes in these SSTs.
    pub bytes: u64,
    /// How many of these bytes were copied because the file system could not share the file.
    pub copied_bytes: u64,
    /// Bytes of files that were written because files of the database have rows that are newer than the checkpoint.
    pub rewritten_bytes: u64,
    /// Indexes that the checkpoint lacks, because they were made after its version.
    pub left_out_indexes: u64,
}

/// Makes a checkpoint in `directory`, of the version that `when` stands for, or of the newest one. `watch` is called
/// with the number of bytes done so far.
///
/// # Errors
///
/// The errors of [`Database::checkpoint`](crate::Database::checkpoint), including the one for work that `watch` has
/// ended.
pub fn checkpoint(
    core: &Arc<Core>,
    directory: &Path,
    when: Option<&AsOf>,
    watch: &Watch<'_>,
) -> Result<CheckpointReport> {
    loop {
        let mut moment = Moment::at(core, when)?;
        match checkpoint_of(core, &mut moment, directory, watch) {
            Err(error) if moment.is_outdated(&error) => {}
            outcome => return outcome,
        }
    }
}

fn checkpoint_of(
    core: &Arc<Core>,
    moment: &mut Moment,
    directory: &Path,
    watch: &Watch<'_>,
) -> Result<CheckpointReport> {
    let new = NewDirectory::begin(&core.env.machine.disk, directory)?;
    // `disk` finds both the directory of the database and the new one.
    let disk = new.place().disk.clone();
    let Written { version, manifest, shared: files, mut fresh, rewritten_bytes, left_out_indexes, .. } =
        moment.write_rest(new.place(), watch)?;
    let total: u64 = files.iter().map(|file| file.bytes()).sum();
    let shared = files.len() as u64;
    let mut report =
        CheckpointReport { version, files: shared, rewritten_bytes, left_out_indexes, ..CheckpointReport::default() };
    for file in &files {
        watch.check()?;
        let copy = directory.join(sst_name(file.number, file.epoch));
        if !share_file(&*disk, file.path(), &copy)? {
            let before = report.bytes;
            let mut done = before;
            let content = copy_whole((&*disk, file.path()), (&*disk, &copy), watch, &mut |bytes| {
                done += bytes;
                watch.tell(done, total);
            })?;
            report.copied_bytes += content.bytes;
        }
        report.bytes += file.bytes();
        watch.tell(report.bytes, total);
    }
    moment.make_durable(version)?;
    // If the last step fails and cannot be undone, the checkpoint may be complete and need the new files, so `fresh`
    // must not remove them. In all other cases `new` does.
    fresh.take_paths();
    new.finish(&manifest)?;
    Ok(report)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

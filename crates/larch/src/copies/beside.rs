//! Looks at a database that another process may be writing to: finds its newest manifest and the logs that belong to
//! it, all as of one moment. This module does not know what is done with them.
//!
//! The writer does not know of such readers. The writer appends to logs, begins new logs, and removes logs whose
//! rows are in files. So a reader looks at the manifest, opens the logs, and looks at the manifest again. If the
//! manifest has changed between these looks, the reader starts again. If the manifest has not changed, the commits
//! in the logs come after the commits in the manifest's files, and write only to the manifest's tables.

use crate::base::error::{Error, Result};
use crate::core::Core;
use crate::core::files_only::open_beside;
use crate::core::writer::log_path;
use crate::manifest::ManifestLog;
use crate::manifest::directory::listing::{ListedFile, list};
use os::sync::Arc;
use os::{Access, File};
use std::path::PathBuf;

/// A log, with the length that it had at the moment of the look. The writer may append to this log, or remove it.
pub struct OpenLog {
    pub number: u64,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    pub bytes: u64,
}

/// The files of the database of `core`, opened as another read-only database, and the logs with newer commits.
///
/// # Errors
///
/// Fails if the manifest or a log cannot be read.
pub fn look(core: &Core) -> Result<(Arc<Core>, Vec<OpenLog>)> {
    loop {
        let before = state_of_manifest(core)?;
        let seen = open_beside(core).and_then(|seen| Ok((open_logs(&seen)?, seen)));
        // If something failed while the writer changed the manifest, the change was the cause, and the loop tries
        // again.
        if state_of_manifest(core)? == before {
            return seen.map(|(logs, core)| (core, logs));
        }
    }
}

/// The path and the length of the manifest. At least one of the two changes with every edit.
fn state_of_manifest(core: &Core) -> Result<(PathBuf, u64)> {
    let disk = &core.env.machine.disk;
    loop {
        let path = ManifestLog::named(&core.env.machine, &core.env.directory)?;
        let length = disk.open(&path, Access::Read).and_then(|file| file.len());
        match length {
            Ok(bytes) => return Ok((path, bytes)),
            Err(error) => {
                if ManifestLog::named(&core.env.machine, &core.env.directory)? == path {
                    return Err(Error::io("open", &path, error));
                }
            }
        }
    }
}

/// Opens the logs whose commits are not in files of `core`.
///
/// The newest log is opened first, because it may say where the previous log ended. If the newest log says this, the
/// previous log gets no more commits. So the previous log, which is opened afterwards, already has all of its
/// commits.
fn open_logs(core: &Core) -> Result<Vec<OpenLog>> {
    let (machine, directory) = (&core.env.machine, &core.env.directory);
    let oldest = core.views.newest().files.oldest_log;
    let mut logs = Vec::new();
    for listed in list(&*machine.disk, directory)?.into_iter().rev() {
        let ListedFile::Log(number) = listed else { continue };
        if number < oldest {
            continue;
        }
        let path = log_path(directory, number);
        let file = machine.disk.open(&path, Access::Read).map_err(|error| Error::io("open", &path, error))?;
        let bytes = file.len().map_err(|error| Error::io("measure", &path, error))?;
        logs.push(OpenLog { number, path, file, bytes });
    }
    Ok(logs)
}

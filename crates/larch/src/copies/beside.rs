//! Looks at a database that another process may be writing to. It finds the newest manifest and the logs that
//! belong to this manifest, all as they were at one moment. This module does not know what is done with the
//! manifest and the logs.
//!
//! The writer does not know of such readers. The writer appends to logs, begins new logs, and removes logs whose
//! rows are in files. So a reader looks at the manifest, opens the logs, and looks at the manifest again. If the
//! manifest has changed between these looks, the reader starts again. If the manifest has not changed, the commits
//! in the logs come after the commits in the files of the manifest. They write only to tables that the manifest
//! names.

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
        // If the writer has changed the manifest meanwhile, the change may have caused an error. So the loop tries
        // again, and ignores the error.
        if state_of_manifest(core)? == before {
            return seen.map(|(logs, core)| (core, logs));
        }
    }
}

/// The path and the length of the manifest. Every edit changes the path or the length.
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
/// The newest log is opened first, because it may state where the previous log ends. A log whose end is stated gets
/// no more commits. So the previous log, which is opened next, has all of its commits already.
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

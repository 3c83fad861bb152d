//! Looks at a database that another process may be writing to. Finds the newest manifest and the logs that go with
//! it, consistently at one moment. This module does not know what they are used for.
//!
//! The writer does not know of such readers: it appends to logs, begins new ones, and removes those whose rows are
//! in files. So a reader looks at the manifest, opens the logs, and looks at the manifest again. If it has changed,
//! the reader starts over. If not, the commits in the logs come after those in the manifest's files, and write only
//! to tables that the manifest names.

use crate::base::error::{Error, Result};
use crate::core::Core;
use crate::core::files_only::open_beside;
use crate::core::writer::log_path;
use crate::manifest::ManifestLog;
use crate::manifest::directory::listing::{ListedFile, list};
use os::sync::Arc;
use os::{Access, File};
use std::path::PathBuf;

/// A log with the length that it had when it was opened. The writer may append to it, or remove it.
pub struct OpenLog {
    pub number: u64,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    pub bytes: u64,
}

/// Opens the files of the database of `core` as another read-only database, and the logs with newer commits.
///
/// # Errors
///
/// Fails if the manifest or a log cannot be read.
pub fn look(core: &Core) -> Result<(Arc<Core>, Vec<OpenLog>)> {
    loop {
        let before = state_of_manifest(core)?;
        let seen = open_beside(core).and_then(|seen| Ok((open_logs(&seen)?, seen)));
        // If the writer has changed the manifest meanwhile, an error may come from that. Ignore it and try again.
        if state_of_manifest(core)? == before {
            return seen.map(|(logs, core)| (core, logs));
        }
    }
}

/// The path and the length of the manifest. Every edit changes one of them.
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
/// Opens the newest log first, because it may state where the previous log ends. A log whose end is stated gets no
/// more commits, so the previous log, opened next, already has all of its commits.
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

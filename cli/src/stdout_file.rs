//! Makes durable what was written to standard output, if that is a file. This module does not know what was written.

#![allow(clippy::disallowed_types, reason = "syncs a file that the shell has opened; never simulated")]

use crate::failure::{CommandFailure, Result};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Syncs the file to which standard output goes. A pipe and a terminal have nothing to sync.
///
/// # Errors
///
/// Returns [`CommandFailure::Output`] if the system cannot do it.
pub fn sync() -> Result<()> {
    try_sync().map_err(CommandFailure::Output)
}

fn try_sync() -> io::Result<()> {
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
}

//! Finds databases and backups that are not in directories of this machine. This module itself knows no such place:
//! a binary that knows some, such as URLs of stores, registers a function that resolves them.

use crate::failure::{Failure, Result};
use larch::machine::Machine;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// What is stored at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A database.
    Database,
    /// Backups. A backup command reads and writes the store alone, without directories of this machine beside it.
    Backups,
}

/// Returns the machine on whose disk the place is, or `None` if the place is a directory of this machine.
pub type MachineOf = fn(&Path, Stored) -> Option<io::Result<Machine>>;

static MACHINE_OF: OnceLock<MachineOf> = OnceLock::new();

/// Sets the function that finds places outside of this machine. Call this function once, before anything is
/// opened.
pub fn set(machine_of: MachineOf) {
    assert!(MACHINE_OF.set(machine_of).is_ok(), "a process runs one command");
}

/// The failure for a URL in a binary that knows no stores.
pub fn no_stores() -> Failure {
    Failure::Usage("this binary knows no stores: build the one of crates/remote, see docs/guide/store.md".to_owned())
}

/// The machine whose disk holds what is stored at a place, or `None` for this machine.
pub fn machine(place: &Path, what: Stored) -> Result<Option<Machine>> {
    let Some(machine_of) = MACHINE_OF.get() else {
        return if is_url(place) { Err(no_stores()) } else { Ok(None) };
    };
    machine_of(place, what).transpose().map_err(|error| Failure::Input(error.to_string()))
}

/// Whether a place is written as a URL. If a directory has a name that looks like a URL, write `./` before it.
pub fn is_url(place: &Path) -> bool {
    let scheme = place.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| !scheme.contains('/'))
}

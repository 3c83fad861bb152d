//! Databases and backups that are not in directories of this machine. It knows no such place itself: another binary
//! says which machine reads the place that an argument names.

use crate::failure::{Failure, Result};
use larch::machine::Machine;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// What lies at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A database.
    Database,
    /// Backups. Everything that is written and read is in the store itself.
    Backups,
}

/// The machine on whose disk the place lies; `None` if it is a directory of this machine.
pub type MachineOf = fn(&Path, Stored) -> Option<io::Result<Machine>>;

static MACHINE_OF: OnceLock<MachineOf> = OnceLock::new();

/// Says where they may be, once, before any is opened.
pub fn set(machine_of: MachineOf) {
    assert!(MACHINE_OF.set(machine_of).is_ok(), "a process runs one command");
}

/// What a binary without stores says of a URL.
pub fn no_stores() -> Failure {
    Failure::Usage("this binary knows no stores: build the one of crates/remote, see docs/guide/store.md".to_owned())
}

/// The machine for what lies at a place; `None` for this one.
pub fn machine(place: &Path, what: Stored) -> Result<Option<Machine>> {
    let Some(machine_of) = MACHINE_OF.get() else {
        return if is_url(place) { Err(no_stores()) } else { Ok(None) };
    };
    machine_of(place, what).transpose().map_err(|error| Failure::Input(error.to_string()))
}

/// Whether a place is written as a URL. A directory with such a name is written with `./` before it.
pub fn is_url(place: &Path) -> bool {
    let scheme = place.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| !scheme.contains('/'))
}

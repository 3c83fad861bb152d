//! Databases that are not in directories of this machine. It knows none itself: another binary says which machine reads what
//! DIR names.

use crate::failure::{Failure, Result};
use larch::Machine;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// The machine on whose disk a database lies; `None` if it is in a directory of this machine.
pub type MachineOf = fn(&Path) -> Option<io::Result<Machine>>;

static MACHINE_OF: OnceLock<MachineOf> = OnceLock::new();

/// Says where databases may be, once, before any is opened.
pub fn set(machine_of: MachineOf) {
    assert!(MACHINE_OF.set(machine_of).is_ok(), "a process runs one command");
}

/// The machine for a database; `None` for this one.
pub fn machine(dir: &Path) -> Result<Option<Machine>> {
    let found = MACHINE_OF.get().and_then(|machine_of| machine_of(dir)).transpose();
    found.map_err(|error| Failure::Input(error.to_string()))
}

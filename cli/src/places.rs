//! Finds databases and backups that are not in directories of this machine, but in a store.

use crate::cloud;
use crate::failure::Result;
use crate::stored::Stored;
use larch::machine::Machine;
use std::path::Path;

/// The machine for what is stored at a place, or `None` for this machine.
pub fn machine(place: &Path, what: Stored) -> Result<Option<Machine>> {
    url(place).map(|url| cloud::machine(url, what)).transpose()
}

/// The place as the URL of a store, or `None` if it is a directory. If a directory has a name that looks like a URL,
/// write `./` before it.
pub fn url(place: &Path) -> Option<&str> {
    let text = place.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    (!scheme.contains('/')).then_some(text)
}

/// Whether a place is written as a URL.
pub fn is_url(place: &Path) -> bool {
    url(place).is_some()
}

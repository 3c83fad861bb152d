//! Lists the files in the directory of a database, by their names alone. This module opens no file, and does not
//! know which of them are in use.

use super::names::{CURRENT, CURRENT_NEW, FOLLOWERS, LOCK, METRICS, RESERVE, UNFINISHED, WARM, WARM_NEW, WORKERS};
use crate::base::error::{Error, Result};
use os::{Disk, Machine};
use std::path::Path;

/// The end of the name of a log.
const LOG: &str = ".log";

/// A file of a database, as its name describes it.
pub enum ListedFile {
    /// An SST, with its name and its number.
    Sst(String, u64),
    /// A log, with its number.
    Log(u64),
    /// A manifest, with its number.
    Manifest(u64),
}

impl ListedFile {
    /// The number in the file's name.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Sst(_, number) | Self::Log(number) | Self::Manifest(number) => Some(*number),
        }
    }
}

/// The SSTs, logs and manifests in `directory`, sorted by their numbers.
///
/// # Errors
///
/// An error if the directory cannot be listed.
pub fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<ListedFile>> {
    let entries = disk.list(directory).map_err(|error| Error::io("list", directory, error))?;
    let mut listed: Vec<ListedFile> = entries.into_iter().filter_map(|entry| parse(entry.name)).collect();
    listed.sort_by_key(ListedFile::number);
    Ok(listed)
}

/// The numbers of the logs in `directory`, ascending.
///
/// # Errors
///
/// An error if the directory cannot be listed.
pub fn log_numbers(machine: &Machine, directory: &Path) -> Result<Vec<u64>> {
    let entries = machine.disk.list_ending(directory, LOG);
    let entries = entries.map_err(|error| Error::io("list", directory, error))?;
    let mut numbers: Vec<u64> = entries.iter().filter_map(|entry| entry.name.strip_suffix(LOG)?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Whether a file in the directory of a database may have this name. After an unfinished creation of a database,
/// all files in the directory have such names; any other name means that it is used for something else.
pub fn is_file_of_database(name: &str) -> bool {
    const OTHERS: [&str; 10] =
        [LOCK, CURRENT, CURRENT_NEW, UNFINISHED, RESERVE, WARM, WARM_NEW, FOLLOWERS, WORKERS, METRICS];
    is_of_database(name) || OTHERS.contains(&name)
}

/// Whether an SST, a log or a manifest may have this name.
pub fn is_of_database(name: &str) -> bool {
    parse(name.to_owned()).is_some()
}

fn parse(name: String) -> Option<ListedFile> {
    if let Some(number) = name.strip_suffix(LOG) {
        return number.parse().ok().map(ListedFile::Log);
    }
    if let Some(number) = name.strip_prefix("MANIFEST-") {
        return number.parse().ok().map(ListedFile::Manifest);
    }
    let number = name.strip_suffix(".sst")?.split('-').next()?.parse().ok()?;
    Some(ListedFile::Sst(name, number))
}

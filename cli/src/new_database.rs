//! Removes what a failed command has made (directories, a database, a table), so that everything is as it was
//! before. This module does not know what the commands do.

use crate::args::Common;
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::places;
use larch::{Database, Table, TableOptions};
use os::{Disk, Machine};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file with the lock of a database, as the engine names it. It is removed last.
const LOCK: &str = "LOCK";
/// The file that names the newest manifest. Every open for writing makes a new manifest.
const CURRENT: &str = "CURRENT";

/// Runs `work` on a database and closes it. If the directory has no database, one is made first, and it is removed
/// again if `work` fails and leaves it without tables.
pub fn with_database<T>(dir: &Path, common: &Common, work: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
    let (database, new) = match database::open_to_write(dir, common) {
        Err(CommandFailure::Engine(larch::Error::NotADatabase(_))) => {
            let new = NewDirectory::look(dir);
            (database::make(dir, common), new)
        }
        opened => (opened, None),
    };
    let database = match database {
        Ok(database) => database,
        Err(error) => {
            new.into_iter().for_each(|new| new.clear(None));
            return Err(error);
        }
    };
    let done = work(&database);
    if done.is_ok() {
        database.close()?;
        return done;
    }
    let Some(new) = new.filter(|_| database.tables().is_empty()) else { return done };
    let current = new.current();
    drop(database);
    new.clear(current);
    done
}

/// Makes a new table, in place of any table of this name, and runs `fill` on it. If that fails, the new table is
/// removed, and the old one, if any, is made again without rows.
pub fn with_table<T>(
    database: &Database,
    name: &str,
    options: TableOptions,
    fill: impl FnOnce(&Table) -> Result<T>,
) -> Result<T> {
    let before = database.existing_table(name)?.map(|table| table.options());
    if before.is_some() {
        database.drop_table(name)?;
    }
    let done = database.table_with(name, options).map_err(Into::into).and_then(|table| fill(&table));
    if done.is_err() {
        // Only the error of `fill` is reported. If the table cannot be removed, it stays, without rows.
        database.drop_table(name).ok();
        before.and_then(|before| database.table_with(name, before).ok());
    }
    done
}

/// A directory of this machine in which a database will be made.
struct NewDirectory {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The names of the files that the directory had before the database was made.
    names: BTreeSet<String>,
    /// The directories that did not exist before, the innermost first.
    missing: Vec<PathBuf>,
}

impl NewDirectory {
    /// Notes which files and directories exist; `None` if this cannot be found out, or if the database is in a
    /// store.
    fn look(directory: &Path) -> Option<Self> {
        if places::is_url(directory) {
            return None;
        }
        let (disk, directory) = (Machine::real().disk, directory.to_owned());
        let mut missing = Vec::new();
        for parent in directory.ancestors().filter(|parent| !parent.as_os_str().is_empty()) {
            if disk.exists(parent).ok()? {
                break;
            }
            missing.push(parent.to_owned());
        }
        let names = if missing.is_empty() { names(&*disk, &directory).ok()? } else { BTreeSet::new() };
        Some(Self { disk, directory, names, missing })
    }

    /// The content of the file that names the manifest. It changes when another process opens the database for
    /// writing.
    fn current(&self) -> Option<Vec<u8>> {
        self.disk.read_all(&self.directory.join(CURRENT)).ok()
    }

    /// Removes everything that did not exist before. If another process has the database open, or has opened it
    /// since `current` was read, nothing is removed. Errors are ignored, because the caller reports the error of
    /// the work itself.
    fn clear(self, current: Option<Vec<u8>>) {
        let lock_file = self.directory.join(LOCK);
        let Ok(lock) = self.disk.lock(&lock_file) else { return };
        if self.current() != current {
            return;
        }
        let Ok(there) = names(&*self.disk, &self.directory) else { return };
        for name in there.iter().filter(|name| *name != LOCK && !self.names.contains(*name)) {
            let path = self.directory.join(name);
            self.disk.remove(&path).or_else(|_| self.disk.remove_dir(&path)).ok();
        }
        if !self.names.contains(LOCK) {
            self.disk.remove(&lock_file).ok();
        }
        drop(lock);
        for directory in &self.missing {
            self.disk.remove_dir(directory).ok();
        }
    }
}

fn names(disk: &dyn Disk, directory: &Path) -> io::Result<BTreeSet<String>> {
    Ok(disk.list(directory)?.into_iter().map(|entry| entry.name).collect())
}

//! Databases of experiments: each is made once and read by many cells. Cells that write get a copy, so every cell
//! starts from the same files. SSTs never change, so a copy hard-links them and copies only the small files, which takes
//! almost no time or space.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "databases of real files, never simulated")]

use harness::Failure;
use harness::directory::failure;
use larch::stats::TableStats;
use larch::{Database, Table};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// Larch's errors name the file and the remedy themselves.
#[cold]
pub fn broken(error: larch::Error) -> Failure {
    Failure::session("larch", error.to_string())
}

/// Imports the rows `numbers`, whose keys must ascend, into `table`. Ends early after ^C.
pub fn import<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    table: &Table,
    numbers: impl Iterator<Item = u64>,
    stop: &Stop,
    row: impl Fn(u64) -> (K, V),
) -> Result<(), Failure> {
    let mut import = table.import().map_err(broken)?;
    for number in numbers.take_while(|_| !stop.is_pressed()) {
        let (key, value) = row(number);
        import.add(key.as_ref(), value.as_ref()).map_err(broken)?;
    }
    import.finish(|_| {}).map_err(broken)?;
    Ok(())
}

/// The sizes of a table, or of all tables of a database together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    pub rows: u64,
    pub files: u64,
    pub file_bytes: u64,
    pub least_file_bytes: u64,
    /// Each level that has files, with their number.
    pub levels: Vec<(u64, u64)>,
    pub data_pages: u64,
    pub data_bytes: u64,
    /// Nodes on the way from the manifest to a data page.
    pub height: u8,
    pub index_bytes: u64,
    pub btree_bytes: u64,
    pub flat_bytes: u64,
    pub filter_bytes: u64,
    /// Bytes of the manifest, which is always in memory.
    pub manifest_bytes: u64,
    /// How long it took to make the database.
    pub nanos: u64,
}

impl Shape {
    /// The sizes in `stats`.
    pub fn of(stats: &TableStats) -> Self {
        Self {
            rows: stats.rows,
            files: stats.files,
            file_bytes: stats.file_bytes,
            levels: stats.levels.iter().map(|level| (level.level as u64, level.files)).collect(),
            data_pages: stats.data_pages,
            data_bytes: stats.data_bytes,
            height: stats.index_height,
            index_bytes: stats.index_bytes,
            btree_bytes: stats.btree_bytes,
            flat_bytes: stats.flat_bytes,
            filter_bytes: stats.filter_bytes,
            ..Self::default()
        }
    }

    /// The sizes of `table` in the database in `place`.
    pub fn read(place: &Path, table: &str) -> Result<Self, Failure> {
        let db = Database::builder(place).read_only(true).open().map_err(broken)?;
        let stats = db.table(table).and_then(|table| table.stats()).map_err(broken)?;
        Ok(Self {
            manifest_bytes: db.metrics().memory().manifest_bytes,
            least_file_bytes: file_bytes(place)?.into_iter().min().unwrap_or(0),
            ..Self::of(&stats)
        })
    }
}

/// A complete, closed database.
#[derive(Debug)]
pub struct Made {
    pub(crate) place: PathBuf,
}

impl Made {
    /// The directory.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A copy that may be written to.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be linked or copied.
    pub fn copy(&self) -> Result<Copy, Failure> {
        let mut name = self.place.file_name().expect("it has a name").to_owned();
        name.push(".copy");
        let place = self.place.with_file_name(name);
        remove(&place)?;
        copy(&self.place, &place)?;
        Ok(Copy { place })
    }
}

/// The lengths of the SSTs in `place`, in bytes.
fn file_bytes(place: &Path) -> Result<Vec<u64>, Failure> {
    let cannot = |error: std::io::Error| failure(&error, "read", place);
    let mut lengths = Vec::new();
    for entry in fs::read_dir(place).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if has_rows(&entry.path()) {
            lengths.push(entry.metadata().map_err(cannot)?.len());
        }
    }
    Ok(lengths)
}

/// A copy of a database, which is removed on drop.
#[derive(Debug)]
pub struct Copy {
    place: PathBuf,
}

impl Copy {
    /// The directory.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Whatever stays is removed before the next copy, or with all databases at the end.
        fs::remove_dir_all(&self.place).unwrap_or_default();
    }
}

/// Whether a file is an SST, which never changes.
fn has_rows(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst")
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir(to).map_err(|error| failure(&error, "make", to))?;
    let cannot = |error: std::io::Error| failure(&error, "read", from);
    for entry in fs::read_dir(from).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(cannot)?.is_dir() {
            copy(&path, &target)?;
        } else if has_rows(&path) {
            fs::hard_link(&path, &target).map_err(|error| failure(&error, "link", &path))?;
        } else {
            fs::copy(&path, &target).map_err(|error| failure(&error, "copy", &path))?;
        }
    }
    Ok(())
}

/// Removes a directory, if it exists.
///
/// # Errors
///
/// Fails if the directory cannot be removed.
pub fn remove(place: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failure(&error, "remove", place)),
        _ => Ok(()),
    }
}

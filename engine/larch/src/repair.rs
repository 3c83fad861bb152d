//! Salvages a damaged database into a new database. The damaged database is only read: the repair takes no lock
//! there, and writes and removes no files there. This module does not know how pages are read.
//!
//! The manifest says which files belong to the database, to which table each file belongs, which slice of the file
//! the table sees, and after which commit each import came. It is read up to its first damage. If the manifest is
//! damaged or missing, all SSTs in the directory are used, and the footer of each SST names its table. Logs are
//! replayed up to their first damage. Levels do not matter: for each key, the repair saves the newest version in any
//! file or log, unless a newer range erase hides it.
//!
//! An unreadable page is skipped together with the rows below it, and listed in the report. If only a value or a
//! part of a row is in such a page, only this row is skipped. If an erase or a version is lost, older versions that
//! it had hidden may become visible again.

mod damaged;
mod report;
mod salvage;
mod save;

pub use report::{Loss, RepairReport};

use crate::base::error::{Error, Result};
use crate::base::watch::{GoOn, Progress, Watch};
use crate::files::outside::check_outside_of;
use crate::handle::database::Database;
use crate::write::define::check_new_name;
use damaged::DamagedDatabase;
use os::Machine;
use save::save_table;
use sst::Compression;
use std::path::Path;

/// Write buffer of the new database, in bytes: large enough for values that were written with any write buffer.
const WRITE_BUFFER_BYTES: u64 = 8 << 30;

/// Saves everything that can be read of the database in `damaged` into a new database in the directory `new`, which
/// must be empty or not exist. No process may write to `damaged` meanwhile; the repair writes nothing there. `watch`
/// is called with the number of rows saved so far, and decides whether to go on.
///
/// For each key, the repair saves the newest version that can be read, and no older versions. It reads all files
/// and logs, and holds the rows of all logs in memory. It needs disk space for about two copies of the rows.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let (damaged, new) = (directory.path().join("damaged"), directory.path().join("new"));
/// larch::Database::open(&damaged)?.table("fruit")?.insert("apple", "red")?;
/// let report = larch::repair::repair(&damaged, &new, |_| {})?;
/// assert!(report.lost.is_empty() && report.rows == 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::RepairTarget`] if `new` is not empty; [`Error::WithinDatabase`] if `new` is inside `damaged` or inside
/// another database; [`Error::NotADatabase`] if `damaged` has no file of a database; [`Error::Cancelled`] if `watch`
/// ends the repair; [`Error::BadOptions`] if the program was built without the features `lz4` or `zstd`; an error of
/// opening or writing the new database. After an error, `new` may hold some of the rows. Damage is not an error: the
/// report lists it.
pub fn repair<G: GoOn>(
    damaged: impl AsRef<Path>,
    new: impl AsRef<Path>,
    watch: impl FnMut(Progress) -> G,
) -> Result<RepairReport> {
    repair_on(&Machine::real(), damaged.as_ref(), new.as_ref(), watch)
}

/// The same as [`repair`], but on the given machine, for example a simulated one.
///
/// # Errors
///
/// The errors of [`repair`].
pub fn repair_on<G: GoOn>(
    machine: &Machine,
    damaged: &Path,
    new: &Path,
    watch: impl FnMut(Progress) -> G,
) -> Result<RepairReport> {
    let watch = Watch::new("the repair", watch);
    // A file does not say whether its pages are packed with LZ4, so without the codec, sound pages would count as
    // lost.
    if let Some(feature) = [Compression::Lz4, Compression::ZSTD].into_iter().find_map(Compression::missing_feature) {
        return Err(Error::BadOptions(format!(
            "a repair may need every codec, and this program was built without feature {feature} of larch-db; build it \
             with that feature"
        )));
    }
    let disk = &machine.disk;
    let is_there = disk.exists(new).map_err(|error| Error::io("look for", new, error))?;
    if is_there && !disk.list(new).map_err(|error| Error::io("list", new, error))?.is_empty() {
        return Err(Error::RepairTarget(new.to_owned()));
    }
    check_outside_of(&**disk, new, damaged)?;
    let mut report = RepairReport::default();
    let mut source = DamagedDatabase::gather(machine, damaged, &mut report)?;
    source.replay_logs(machine, damaged, &mut report);
    let db = Database::builder(new).machine(machine.clone()).write_buffer_bytes(WRITE_BUFFER_BYTES).open()?;
    for (id, table) in &mut source.tables {
        // The name may come from the footer of a file. It may be invalid, or another table may have it already.
        if check_new_name(&table.name).is_err() || db.existing_table(&table.name)?.is_some() {
            let name = format!("table-{}", id.0);
            report.guesses.push(format!("a second table {:?} is named {name:?}", table.name));
            table.name = name;
        }
        let memtable = source.memory.table(*id).map(|memtable| &**memtable);
        save_table(&db, table, memtable, &source.cache, &mut report, &watch)?;
        report.tables += 1;
    }
    db.close()?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_is_refused_for_a_codec_that_the_build_lacks() {
        let (machine, _) = Machine::simulated(1);
        let db = Database::builder("damaged").machine(machine.clone()).open().expect("the disk works");
        db.table("t").and_then(|table| table.insert("key", "value")).expect("the disk works");
        db.close().expect("the disk works");
        let repaired = repair_on(&machine, Path::new("damaged"), Path::new("new"), |_| {});
        let has_all = cfg!(all(feature = "lz4", feature = "zstd"));
        match repaired {
            Ok(report) => assert!(has_all && report.rows == 1 && report.lost.is_empty()),
            Err(error) => assert!(!has_all && matches!(error, Error::BadOptions(_)), "{error}"),
        }
    }
}

//! Builds files without a database. Rows are sorted as in an import, but at the end, the files go into a list and not
//! into the manifest of a database. This module does not know which table will ingest the files.

use super::list::{BuiltFile, BuiltList};
use crate::base::error::{Error, Result};
use crate::base::options::{Options, TableOptions};
use crate::base::table::{TableId, TableInfo};
use crate::base::watch::{GoOn, Progress, Watch};
use crate::core::Core;
use crate::core::expiring::RowTimes;
use crate::core::files_only::open_empty;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::files::copied_file::read_file;
use crate::files::new_directory::NewDirectory;
use crate::import::sort::{ImportReport, RowSorter};
use crate::manifest::directory::names::LIST;
use os::Machine;
use os::sync::Arc;
use std::path::Path;

/// The name of this work in [`Error::Cancelled`].
const WORK: &str = "the building of files";

/// Builds files without a database, begun by [`Builder::build_files`](crate::Builder::build_files). Rows can be
/// added in any order, but ascending keys are fastest. [`FileBuilder::finish`] writes the list of the files, which
/// makes the directory valid. If the builder is dropped instead, everything that it has written is removed.
///
/// A builder needs as much memory and disk space as an [`Import`](crate::bulk::Import).
#[derive(Debug)]
#[must_use = "files do not count until they are finished"]
pub struct FileBuilder {
    // The sorter is dropped first, so that its files are removed before the directory.
    sorter: RowSorter,
    table: TableHandle,
    new: NewDirectory,
}

impl FileBuilder {
    /// Begins to build files in `directory`, for a table with the options `table`.
    pub(crate) fn begin(machine: Machine, directory: &Path, options: Options, table: TableOptions) -> Result<Self> {
        table.check_for(options.compat)?;
        options.check()?;
        let new = NewDirectory::begin(&machine.disk, directory)?;
        let machine = Machine { disk: new.place().disk.clone(), ..machine };
        let core = open_empty(machine, directory.to_owned(), options)?;
        let name = format!("of {}", directory.display());
        let info = TableInfo { id: TableId::ELSEWHERE, name, options: table, since: 0, index: None };
        let times = RowTimes::of(&info.options.expiry, &core.env.options.expiry_times);
        let table = TableHandle::new(DatabaseHandle::new(core), Arc::new(info));
        Ok(Self { sorter: RowSorter::new(&table, times), table, new })
    }

    fn core(&self) -> &Arc<Core> {
        self.table.core()
    }

    /// Adds a row. Rows can be added in any order, but ascending keys are fastest. If two rows have the same key, the
    /// later row replaces the earlier one. If the options [give times](TableOptions::expiry) to rows, the row gets one,
    /// which counts from this call.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`] if the options split values into column groups; [`Error::KeyTooLong`] or
    /// [`Error::ValueTooLong`] if the key or the value is too long; [`Error::BadRow`] or [`Error::NoExpiryTime`] if the
    /// options give times and the row can have none; an error if a file cannot be written. After a disk error, drop the
    /// builder.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.sorter.add(key, value)
    }

    /// Adds a row with a value in parts. There must be one part for each column group, see
    /// [`Table::insert_parts`](crate::Table::insert_parts).
    ///
    /// # Errors
    ///
    /// [`Error::PartCount`] if the number of parts differs from the number of groups; otherwise the errors of
    /// [`FileBuilder::add`].
    pub fn add_parts(&mut self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        self.sorter.add_parts(key, parts)
    }

    /// Writes the remaining rows, and then the list of all files, durably. `watch` is told how many bytes of a merge
    /// are done, and then how many bytes of the files were read again for their checksums. Each time, it decides
    /// whether to go on.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; an error if a file cannot be written or read. After an error,
    /// all files are removed.
    pub fn finish<G: GoOn>(self, watch: impl FnMut(Progress) -> G) -> Result<ImportReport> {
        let watch = Watch::new(WORK, watch);
        let core = self.core().clone();
        let Self { sorter, table, new } = self;
        let (mut run, report) = sorter.finish(&watch)?;
        let (disk, mut done, mut files) = (&core.env.machine.disk, 0, Vec::new());
        for file in &run.files {
            let content = read_file(&**disk, file.path(), &watch, &mut |bytes| {
                done += bytes;
                watch.tell(done, report.bytes);
            })?;
            if content.bytes != file.bytes() {
                let why = format!("it has {} bytes, and {} were written", content.bytes, file.bytes());
                return Err(Error::BadBuiltFiles { file: file.path().to_owned(), why });
            }
            let (number, meta) = (file.number, file.sst.meta.clone());
            files.push(BuiltFile { number, checksum: content.checksum, meta });
        }
        let (id, compat) = (core.views.newest().files.database, core.env.options.compat.to_string());
        let list = BuiltList { id, compat, options: table.identity.options.clone(), files };
        // If the last step fails and cannot be undone, the directory may be valid and need the files, so they must
        // not be removed here. In all other cases `new` removes them.
        run.take_fresh().take_paths();
        new.finish_as(LIST, &list.encode())?;
        Ok(report)
    }
}

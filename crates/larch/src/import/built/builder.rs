//! Builds files without a database: rows are sorted as by an import, and the last step is a list instead of an edit. It
//! does not know which table takes the files in.

use super::list::{BuiltFile, BuiltList};
use crate::base::error::{Error, Result};
use crate::base::options::{Options, TableOptions};
use crate::base::table::{TableId, TableInfo};
use crate::base::watch::{GoOn, Progress, Watch};
use crate::core::Core;
use crate::core::files_only::open_empty;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::files::copied_file::read_file;
use crate::files::new_directory::NewDirectory;
use crate::import::sort::{ImportReport, RowSorter};
use crate::manifest::directory::names::LIST;
use os::Machine;
use os::sync::Arc;
use std::path::Path;

/// The name of the work in the error about its end.
const WORK: &str = "the building of files";

/// Files that are being built without a database, made by [`Builder::build_files`](crate::Builder::build_files). Rows
/// are added in any order; ascending keys are fastest. [`FileBuilder::finish`] writes the list of the files, which
/// makes the directory count. If it is dropped before, what was written is removed.
///
/// It takes memory and disk as an [`Import`](crate::bulk::Import) does.
#[derive(Debug)]
#[must_use = "files do not count until they are finished"]
pub struct FileBuilder {
    // It removes its files before the directory is removed.
    sorter: RowSorter,
    table: TableHandle,
    new: NewDirectory,
}

impl FileBuilder {
    /// Begins in `directory`, for a table that is stored as `table` says.
    pub(crate) fn begin(machine: Machine, directory: &Path, options: Options, table: TableOptions) -> Result<Self> {
        table.check_for(options.compat)?;
        options.check()?;
        let new = NewDirectory::begin(&machine.disk, directory)?;
        let machine = Machine { disk: new.place().disk.clone(), ..machine };
        let core = open_empty(machine, directory.to_owned(), options)?;
        let name = format!("of {}", directory.display());
        let info = TableInfo { id: TableId::ELSEWHERE, name, options: table, since: 0, index: None };
        let table = TableHandle::new(DatabaseHandle::new(core), Arc::new(info));
        Ok(Self { sorter: RowSorter::new(&table), table, new })
    }

    fn core(&self) -> &Arc<Core> {
        self.table.core()
    }

    /// Adds a row. Rows may come in any order; ascending keys are fastest. A later row replaces an earlier one with the
    /// same key.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`] if values are split into column groups; [`Error::KeyTooLong`], [`Error::ValueTooLong`];
    /// a file could not be written. After an error of the disk, drop the builder.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.sorter.add(key, value)
    }

    /// Adds a row with a value in parts: one for each column group, see
    /// [`Table::insert_parts`](crate::Table::insert_parts).
    ///
    /// # Errors
    ///
    /// [`Error::PartCount`] if the parts are not one for each group; otherwise as [`FileBuilder::add`].
    pub fn add_parts(&mut self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        self.sorter.add_parts(key, parts)
    }

    /// Writes what is left and the list of all files. When the call returns, they are durable. `watch` sees how
    /// many bytes of a merge are done, and then how many of the files are read once for their checksums. It says whether
    /// to go on.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends it; a file could not be written or read. Then nothing is left of the files.
    pub fn finish<G: GoOn>(self, mut watch: impl FnMut(Progress) -> G) -> Result<ImportReport> {
        let mut goes_on = |progress| watch(progress).goes_on();
        let watch = Watch::new(WORK, &mut goes_on);
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
        // If the last step fails and cannot be taken back, the directory is whole and needs the files. Otherwise
        // `new` removes them.
        run.take_fresh().take_paths();
        new.finish_as(LIST, &list.encode())?;
        Ok(report)
    }
}

//! Writes SSTs for RocksDB to ingest. This module knows neither the database nor the column family.

use super::broken;
use harness::Failure;
use rocksdb::{Options, SstFileWriter};
use std::fs;
use std::path::{Path, PathBuf};

/// Size of the files, the same as that of compactions.
const FILE_BYTES: u64 = 64 << 20;

/// Rows between two checks of the file size, because a check costs more than writing a row.
const LOOK_ROWS: u64 = 1024;

/// Writes rows, which must come in key order, to as many files as they need. On drop, removes the files that were
/// not ingested.
pub struct SortedFiles<'o> {
    options: &'o Options,
    folder: &'o Path,
    name: String,
    file: Option<SstFileWriter<'o>>,
    paths: Vec<PathBuf>,
    rows: u64,
}

impl<'o> SortedFiles<'o> {
    /// A writer of files in `folder` whose names begin with `name`. They replace files with these names that a crash
    /// has left.
    pub fn new(options: &'o Options, folder: &'o Path, name: impl Into<String>) -> Self {
        Self { options, folder, name: name.into(), file: None, paths: Vec::new(), rows: 0 }
    }

    /// Adds the next row.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let path = self.folder.join(format!("{}-{}.sst", self.name, self.paths.len()));
                let file = open(self.options, &path)?;
                self.paths.push(path);
                file
            }
        };
        file.put(key, value).map_err(broken)?;
        self.rows += 1;
        if self.rows.is_multiple_of(LOOK_ROWS) && file.file_size() >= FILE_BYTES {
            file.finish().map_err(broken)?;
        } else {
            self.file = Some(file);
        }
        Ok(())
    }

    /// Finishes the last file and returns all paths. The files must be ingested before this value is dropped.
    pub fn finish(&mut self) -> Result<&[PathBuf], Failure> {
        if let Some(mut file) = self.file.take() {
            file.finish().map_err(broken)?;
        }
        Ok(&self.paths)
    }

    /// Rows added so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Opens a file for writing. The writer refers to `options`, which must live as long as it does.
fn open<'o>(options: &'o Options, path: &Path) -> Result<SstFileWriter<'o>, Failure> {
    let file = SstFileWriter::create(options);
    file.open(path).map_err(broken)?;
    Ok(file)
}

impl Drop for SortedFiles<'_> {
    fn drop(&mut self) {
        self.file = None;
        for path in &self.paths {
            // Ingested files were moved away, so failing to remove those is no error.
            fs::remove_file(path).ok();
        }
    }
}

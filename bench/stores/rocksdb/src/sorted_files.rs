//! Files of rows in key order, which RocksDB takes in unchanged. This module knows neither the database nor the
//! column family.

use super::broken;
use harness::Failure;
use rocksdb::{Options, SstFileWriter};
use std::fs;
use std::path::{Path, PathBuf};

/// The size of the files that are written here. Compactions write files of the same size.
const FILE_BYTES: u64 = 64 << 20;

/// How many rows are written between two checks of the file's size. A check costs more than writing a row.
const LOOK_ROWS: u64 = 1024;

/// Takes rows in ascending order of their keys, and writes them into the number of files that they need. When a
/// `SortedFiles` is dropped, it removes the files that RocksDB has not taken in.
pub struct SortedFiles<'o> {
    options: &'o Options,
    folder: &'o Path,
    name: String,
    file: Option<SstFileWriter<'o>>,
    paths: Vec<PathBuf>,
    rows: u64,
}

impl<'o> SortedFiles<'o> {
    /// Writes files in `folder` whose names begin with `name`. If a crash has left files of these names, the new
    /// files replace them.
    pub fn new(options: &'o Options, folder: &'o Path, name: impl Into<String>) -> Self {
        Self { options, folder, name: name.into(), file: None, paths: Vec::new(), rows: 0 }
    }

    /// Takes the next row.
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

    /// Ends the last file. RocksDB has to take the files in before this value is dropped.
    pub fn finish(&mut self) -> Result<&[PathBuf], Failure> {
        if let Some(mut file) = self.file.take() {
            file.finish().map_err(broken)?;
        }
        Ok(&self.paths)
    }

    /// How many rows were taken.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// A writer refers to the options with which it was opened, so the options must live as long as the writer.
fn open<'o>(options: &'o Options, path: &Path) -> Result<SstFileWriter<'o>, Failure> {
    let file = SstFileWriter::create(options);
    file.open(path).map_err(broken)?;
    Ok(file)
}

impl Drop for SortedFiles<'_> {
    fn drop(&mut self) {
        self.file = None;
        for path in &self.paths {
            // RocksDB has moved the files that it has taken in, so removing those fails, and this is no error.
            fs::remove_file(path).ok();
        }
    }
}

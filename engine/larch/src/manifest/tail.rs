//! Follows the file set of a database to which another process may be writing: reads the newest manifest, and later
//! the edits that were appended to it and the manifests that have replaced it. This module does not know what the
//! edits mean.
//!
//! Not thread safe: one thread at a time uses a tail.

use super::db_file::FileOpener;
use super::directory::position::Position;
use super::file_set::FileSet;
use super::log::{ManifestLog, apply_next};
use crate::base::error::Result;
use crate::base::record::{LogError, LogKind, RecordReader};
use os::Machine;
use std::path::{Path, PathBuf};

/// A file set, and the position in the manifest at which reading will continue.
#[derive(Debug)]
pub struct ManifestTail {
    path: PathBuf,
    reader: RecordReader,
    files: FileSet,
}

impl ManifestTail {
    /// Reads the newest manifest, to which another process may append meanwhile, or which it may replace and
    /// remove.
    ///
    /// # Errors
    ///
    /// An error if the manifest cannot be read.
    pub fn open(machine: &Machine, directory: &Path, opener: &FileOpener) -> Result<Self> {
        loop {
            let path = ManifestLog::named(machine, directory)?;
            // Edits that are appended during the read may be missing. The result is then the file set of a moment
            // ago.
            let error = match Self::read(machine, &path, opener) {
                Ok(tail) => return Ok(tail),
                Err(error) => error,
            };
            // A writer removes a manifest only after `CURRENT` names the next one. So if `CURRENT` still names this
            // one, the error has another cause.
            if ManifestLog::named(machine, directory)? == path {
                ManifestLog::check_there(machine, &path)?;
                return Err(error);
            }
        }
    }

    fn read(machine: &Machine, path: &Path, opener: &FileOpener) -> Result<Self> {
        let mut reader = RecordReader::open(&*machine.disk, path, LogKind::Manifest, None)?;
        let mut files = FileSet::default();
        if apply_next(&mut files, &mut reader, opener)? == 0 {
            return Err(LogError::corrupt(path, 0, "it has no records, but CURRENT names it").into());
        }
        Ok(Self { path: path.to_owned(), reader, files })
    }

    /// Applies the edits that the writer has appended since the last call. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// An error if a manifest cannot be read. The file set may then have only some of the new edits, so this tail
    /// must not be used any more.
    pub fn look_again(&mut self, machine: &Machine, directory: &Path, opener: &FileOpener) -> Result<bool> {
        self.reader.look_again()?;
        let records = apply_next(&mut self.files, &mut self.reader, opener)?;
        // The next manifest begins with the file set that this manifest describes.
        if ManifestLog::named(machine, directory)? == self.path {
            return Ok(records > 0);
        }
        *self = Self::open(machine, directory, &opener.knowing(self.files.files_by_number()))?;
        Ok(true)
    }

    /// The position up to which edits were applied.
    pub fn position(&self) -> Position {
        Position { manifest: self.reader.header().map_or(0, |header| header.number), end: self.reader.end() }
    }

    /// The file set.
    pub fn files(&self) -> &FileSet {
        &self.files
    }

    /// Gives up the tail and returns its file set.
    pub fn into_files(self) -> FileSet {
        self.files
    }
}

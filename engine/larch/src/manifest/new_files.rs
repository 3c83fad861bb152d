//! Files that were written and are not part of the database yet.

use super::directory::fresh::FreshFiles;
use super::directory::place::Place;
use super::edit::NewFile;

/// Finished files that are not part of the database yet.
pub struct NewFiles {
    /// For each file, everything that the manifest says about it.
    pub files: Vec<NewFile>,
    /// When this field is dropped, it removes the files from the disk, unless they were installed.
    pub fresh: FreshFiles,
}

impl NewFiles {
    /// No files yet.
    pub fn none(place: &Place) -> Self {
        Self { files: Vec::new(), fresh: FreshFiles::new(&place.leftovers) }
    }

    /// Adds all files of `other`.
    pub fn append(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.fresh.append(other.fresh);
    }

    /// The length of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.meta.file_bytes).sum()
    }
}

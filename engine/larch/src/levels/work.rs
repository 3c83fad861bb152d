//! Describes a merge to do: its inputs, and everything that decides how the outputs are made. This module does not
//! know why the merge was picked, nor which process does it.

use super::pick;
use crate::base::event::CompactionReason;
use crate::base::options::LevelOptions;
use crate::base::table::TableInfo;
use crate::manifest::{DbFile, Level, TableFiles};
use os::sync::Arc;
use sst::KeyBounds;

/// A merge of files of one table.
#[derive(Debug)]
pub struct MergeWork {
    /// The table.
    pub table: Arc<TableInfo>,
    /// Level and number of each input.
    pub inputs: Vec<(usize, u64)>,
    /// The level of the outputs.
    pub to: usize,
    /// Why the files are merged.
    pub reason: CompactionReason,
    /// The inputs in groups, newest first. The files of a group do not overlap each other.
    pub sources: Vec<Level>,
    /// Whether no deeper level has keys in the key range of the inputs.
    pub bottom: bool,
    /// Target size of an output, in bytes.
    pub file_bytes: u64,
}

impl MergeWork {
    /// The merge of `inputs`, which must not be empty.
    pub fn of(
        table: &TableFiles,
        (inputs, to, reason): (&[(usize, u64)], usize, CompactionReason),
        options: &LevelOptions,
    ) -> Self {
        let is_input = |level: usize, file: &DbFile| inputs.contains(&(level, file.number));
        let mut sources: Vec<Level> = Vec::new();
        for (level, files) in table.levels.iter().enumerate() {
            let files: Vec<Arc<DbFile>> = files.iter().filter(|file| is_input(level, file)).cloned().collect();
            match level {
                0 => sources.extend(files.into_iter().map(|file| Arc::new(vec![file]))),
                _ if files.is_empty() => {}
                _ => sources.push(Arc::new(files)),
            }
        }
        let (base, _) = pick::targets(table, options);
        let file_bytes = pick::file_bytes(to, base, options);
        let inputs = inputs.to_vec();
        let mut work = Self { table: table.info.clone(), inputs, to, reason, sources, bottom: true, file_bytes };
        let bounds = work.bounds().expect("a merge has inputs");
        work.bottom = table.levels[to + 1..].iter().flat_map(|l| l.iter()).all(|f| !f.sst.bounds().overlaps(&bounds));
        work
    }

    /// All files that are merged.
    pub fn files(&self) -> impl Iterator<Item = &Arc<DbFile>> {
        self.sources.iter().flat_map(|level| level.iter())
    }

    /// The bounds of all files together; `None` if there are no files.
    pub fn bounds(&self) -> Option<KeyBounds> {
        self.files().map(|file| file.sst.bounds().clone()).reduce(|a, b| a.union(&b))
    }

    /// The bytes of all files that are merged.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes()).sum()
    }
}

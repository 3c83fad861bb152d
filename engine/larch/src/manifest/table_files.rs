//! The files of a table, by level. This module does not know other tables.

use super::db_file::DbFile;
use super::level_bounds::LevelBounds;
use crate::base::table::{LEVELS, TableInfo};
use os::sync::{Arc, OnceLock};

/// The files of one level, shared with cursors.
pub type Level = Arc<Vec<Arc<DbFile>>>;

/// The files of a table.
#[derive(Clone, Debug)]
pub struct TableFiles {
    /// The table.
    pub info: Arc<TableInfo>,
    /// The levels of the table.
    pub levels: [Level; LEVELS],
    /// The bounds of the files in each level except level 0, computed by the first read that needs them.
    bounds: [OnceLock<Arc<LevelBounds>>; LEVELS],
}

impl TableFiles {
    /// A table without files.
    pub fn new(info: Arc<TableInfo>) -> Self {
        Self { info, levels: Default::default(), bounds: Default::default() }
    }

    /// The same files, as those of the table `info`.
    pub fn of(self, info: TableInfo) -> Self {
        Self { info: Arc::new(info), ..self }
    }

    /// All files with their levels, from level 0 down.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<DbFile>)> {
        self.levels.iter().enumerate().flat_map(|(level, files)| files.iter().map(move |file| (level, file)))
    }

    /// The bytes that the table sees in the files of `level`.
    pub fn level_bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|file| file.sst.visible_bytes()).sum()
    }

    /// The files that may have `key` according to their bounds, newest first.
    #[inline]
    pub fn files_with_key(&self, key: &[u8]) -> impl Iterator<Item = &Arc<DbFile>> {
        let (level0, deeper) = self.levels.split_first().expect("a table has levels");
        let deeper = deeper.iter().zip(&self.bounds[1..]).filter(|(files, _)| !files.is_empty());
        let deeper = deeper.flat_map(move |(files, bounds)| {
            let bounds = bounds.get_or_init(|| Arc::new(LevelBounds::of(files)));
            match bounds.around(key) {
                (places, true) => files[places].iter(),
                (places, false) => files_with_key(&files[places], key),
            }
        });
        level0.iter().filter(move |file| file.may_contain(key)).chain(deeper)
    }

    pub(super) fn level_mut(&mut self, level: u8) -> &mut Vec<Arc<DbFile>> {
        let level = usize::from(level);
        self.bounds[level].take();
        Arc::make_mut(&mut self.levels[level])
    }
}

/// The files of `level`, which is not 0, that may have `key` according to their bounds: at most one, except where
/// neighbours share a bound because long bounds were cut.
#[inline]
fn files_with_key<'a>(level: &'a [Arc<DbFile>], key: &[u8]) -> std::slice::Iter<'a, Arc<DbFile>> {
    let start = level.partition_point(|file| file.sst.bounds().high.as_deref().is_some_and(|high| high < key));
    let end = level[start..].partition_point(|file| file.sst.bounds().low.as_slice() <= key);
    level[start..start + end].iter()
}

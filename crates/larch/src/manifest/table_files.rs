//! The files of a table, by level. It does not know other tables.

use super::db_file::DbFile;
use super::table_info::{LEVELS, TableInfo};
use os::sync::Arc;

/// Files of one level, shared with cursors.
pub type Level = Arc<Vec<Arc<DbFile>>>;

/// The files of a table.
#[derive(Clone, Debug)]
pub struct TableFiles {
    /// The table.
    pub info: Arc<TableInfo>,
    /// Its levels.
    pub levels: [Level; LEVELS],
}

impl TableFiles {
    /// All files with their levels, from level 0 down.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<DbFile>)> {
        self.levels.iter().enumerate().flat_map(|(level, files)| files.iter().map(move |file| (level, file)))
    }

    /// The bytes of a level that the table sees.
    pub fn level_bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|file| file.sst.visible_bytes()).sum()
    }

    pub(super) fn level_mut(&mut self, level: u8) -> &mut Vec<Arc<DbFile>> {
        Arc::make_mut(&mut self.levels[usize::from(level)])
    }
}

/// The files of `level` (not 0) that may hold `key` by their bounds: at most one, or several if bounds were cut to the same
/// bytes.
pub fn files_with_key<'a>(level: &'a [Arc<DbFile>], key: &[u8]) -> impl Iterator<Item = &'a Arc<DbFile>> {
    let start = level.partition_point(|file| file.sst.bounds().high.as_deref().is_some_and(|high| high < key));
    let end = level[start..].partition_point(|file| file.sst.bounds().low.as_slice() <= key);
    level[start..start + end].iter()
}

//! The data on which the index operations are timed: a table of several level-0 files with overlapping keys. Each
//! file has both a B-tree and a flat index.

use crate::rows::{HOT_BYTES, Key, key, mix, value};
use crate::{Extent, Result};
use harness::report::text::grouped;
use kit::Scratch;
use larch::options::{LevelOptions, PageIndexKind};
use larch::{Database, Durability, Selection, Table, TableOptions};
use os::Access;
use os::Machine;
use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session, retry};
use serde::{Deserialize, Serialize};
use sst::{Sst, SstCursor, TreeKind, Version};
use std::fmt;
use std::path::{Path, PathBuf};

const TABLE: &str = "t";
const SHAPE_FILE: &str = "shape.json";
/// So large that nothing is evicted.
const CACHE_BYTES: u64 = 2 << 30;
/// So large that all rows of a file are flushed together.
const WRITE_BUFFER_BYTES: u64 = 4 << 30;
/// Rows in one commit.
const BATCH_ROWS: u64 = 10_000;

/// The shape of the data.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Shape {
    /// Number of keys.
    pub rows: u64,
    /// Number of files, all on level 0. Each row is in a random one of them.
    pub files: u64,
    /// Whether values are split over two column groups.
    pub groups: bool,
    /// Whether seven of ten rows have an older version, too.
    pub history: bool,
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let history = if self.history { "of 0.7 of the rows" } else { "none" };
        let (rows, groups) = (grouped(self.rows), self.group_names().len());
        write!(out, "rows {rows}, files {}, column groups {groups}, older versions {history}", self.files)
    }
}

impl Shape {
    /// All shapes that are measured.
    pub fn all(extent: Extent) -> Vec<Self> {
        let mut shapes = Vec::new();
        for history in [false, true] {
            for groups in [false, true] {
                for files in [1, 4, 10] {
                    let rows = extent.of(if history { 300_000 } else { 1_000_000 });
                    shapes.push(Self { rows, files, groups, history });
                }
            }
        }
        shapes
    }

    /// The file that holds row `number`.
    pub fn file_of(&self, number: u64) -> u64 {
        mix(number ^ 0xF11E) % self.files
    }

    fn has_older(&self, number: u64) -> bool {
        self.history && mix(number ^ 0x01D) % 10 < 7
    }

    fn group_names(&self) -> &'static [&'static str] {
        if self.groups { &["hot", "cold"] } else { &["all"] }
    }

    /// Length of the value's first part.
    fn cut(&self) -> usize {
        if self.groups { HOT_BYTES } else { value(0).len() }
    }
}

/// A data set on disk.
pub struct DataSet {
    /// The shape of the data.
    pub shape: Shape,
    directory: PathBuf,
}

/// A data set, opened to read one kind of index.
pub struct Opened {
    /// The shape of the data.
    pub shape: Shape,
    /// The table, for operations over several files.
    pub rows: Selection,
    /// The same files, opened without the database, in the order of [`Shape::file_of`].
    pub files: Vec<Arc<Sst>>,
    /// A session for reading `files`.
    pub session: Session,
    /// Keeps the database open.
    _database: Database,
}

impl DataSet {
    /// Writes a data set.
    pub fn build(scratch: &Scratch, shape: Shape) -> Result<Self> {
        let directory = scratch.join("data");
        let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
        let database = Database::builder(&directory)
            .write_buffer_bytes(WRITE_BUFFER_BYTES)
            .durability(Durability::Buffered)
            .levels(levels)
            .open()?;
        let groups = shape.group_names().iter().map(|name| name.to_string()).collect();
        let options = TableOptions { index: PageIndexKind::Both, groups, ..TableOptions::default() };
        let table = database.table_with(TABLE, options)?;
        for file in 0..shape.files {
            let numbers = || (0..shape.rows).filter(|&number| shape.file_of(number) == file);
            let older: Vec<u64> = numbers().filter(|&number| shape.has_older(number)).collect();
            // Older versions have other values, so that reading the wrong version is noticed.
            insert(&database, &table, shape, &older, |number| value(!number))?;
            // The snapshot keeps the older versions alive through the flush.
            let snapshot = database.snapshot();
            insert(&database, &table, shape, &numbers().collect::<Vec<_>>(), value)?;
            database.flush()?;
            drop(snapshot);
        }
        let stats = table.stats()?;
        if (stats.rows, stats.files) != (shape.rows, shape.files) || (stats.history_rows > 0) != shape.history {
            return Err(format!("the data came out as {stats:?}").into());
        }
        drop(table);
        database.close()?;
        std::fs::write(directory.join(SHAPE_FILE), serde_json::to_vec(&shape)?)?;
        Ok(Self { shape, directory })
    }

    /// A data set that was written before.
    pub fn at(directory: &Path) -> Result<Self> {
        let shape = serde_json::from_slice(&std::fs::read(directory.join(SHAPE_FILE))?)?;
        Ok(Self { shape, directory: directory.to_owned() })
    }

    /// The directory of the data set.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Opens the data for reading, by the flat index with `prefer_flat` and otherwise by the B-tree.
    pub fn open(&self, prefer_flat: bool) -> Result<Opened> {
        let database = Database::builder(&self.directory)
            .read_only(true)
            .cache_bytes(CACHE_BYTES)
            .prefer_flat_index(prefer_flat)
            .open()?;
        let table = database.existing_table(TABLE)?.ok_or("the table is gone")?;
        let rows = table.select(self.shape.group_names())?;
        let disk = Machine::real().disk;
        let cache = PageCache::new(CACHE_BYTES, 16, sst::validate);
        let mut paths: Vec<PathBuf> = disk
            .list(&self.directory)?
            .into_iter()
            .filter(|entry| entry.name.ends_with(".sst"))
            .map(|entry| self.directory.join(entry.name))
            .collect();
        // File names begin with rising numbers.
        paths.sort();
        let open = |path: PathBuf| -> Result<Arc<Sst>> {
            let meta = sst::read_footer(&*disk.open(&path, Access::Read)?, &path)?;
            let file = cache.register(path, meta.file_id, disk.clone());
            Ok(Arc::new(Sst::new(file, meta, 0, prefer_flat)))
        };
        let files = paths.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        let session = Session::new(&cache, Reason::Point, Admit::Keep);
        Ok(Opened { shape: self.shape, rows, files, session, _database: database })
    }
}

impl Opened {
    /// The file that holds row `number`.
    pub fn file_of(&self, number: u64) -> &Arc<Sst> {
        &self.files[self.shape.file_of(number) as usize]
    }

    /// The height of the index (the greatest of all files), the bytes of the index, and the bytes of data pages with
    /// newest versions. Bytes are sums over all files and groups.
    pub fn index(&self) -> (u8, u64, u64) {
        let trees =
            || self.files.iter().flat_map(|sst| sst.meta.trees().map(|(kind, tree)| (kind, tree, sst.prefer_flat)));
        let roots = || trees().filter(|(kind, ..)| *kind == TreeKind::Main).map(|(_, tree, flat)| tree.root(flat));
        let height = roots().map(|root| root.height).max().unwrap_or(0);
        let index = trees().map(|(_, tree, flat)| tree.root(flat).index_bytes).sum();
        (height, index, trees().map(|(_, tree, _)| tree.totals.bytes).sum())
    }

    /// A version at which a reader of `file` sees the older version of each row that has one. Within a file, all
    /// older versions were committed before all newest ones.
    pub fn older_of(&self, file: u64) -> Version {
        Version(self.files[file as usize].meta.oldest.0 + self.older_commits(file) - 1)
    }

    fn older_commits(&self, file: u64) -> u64 {
        let of_file = |number: &u64| self.shape.file_of(*number) == file && self.shape.has_older(*number);
        ((0..self.shape.rows).filter(of_file).count() as u64).div_ceil(BATCH_ROWS)
    }

    /// Whether row `number` has an older version.
    pub fn has_older(&self, number: u64) -> bool {
        self.shape.has_older(number)
    }

    /// Reads all pages into memory: through the database, and through the files, which have a cache of their own.
    pub fn warm(&self) -> Result<()> {
        let mut rows = self.rows.iter();
        let mut count = 0;
        while rows.next_row()?.is_some() {
            count += 1;
        }
        if count != self.shape.rows {
            return Err(format!("{count} rows of {} were found", self.shape.rows).into());
        }
        let mut found = 0;
        for sst in &self.files {
            let mut cursor = SstCursor::new(sst.clone());
            let mut there = retry(&self.session, || cursor.seek_first(&self.session))?;
            while there {
                found += 1;
                let mut older = retry(&self.session, || cursor.first_older(&self.session))?;
                while older {
                    older = retry(&self.session, || cursor.next_older(&self.session))?;
                }
                there = retry(&self.session, || cursor.next(&self.session))?;
            }
        }
        if found != self.shape.rows {
            return Err(format!("{found} rows of {} were found in the files", self.shape.rows).into());
        }
        Ok(())
    }
}

fn insert<const N: usize>(
    database: &Database,
    table: &Table,
    shape: Shape,
    numbers: &[u64],
    value: impl Fn(u64) -> [u8; N],
) -> Result<()> {
    for numbers in numbers.chunks(BATCH_ROWS as usize) {
        let mut batch = database.batch();
        for &number in numbers {
            let (key, value): (Key, _) = (key(number), value(number));
            let (hot, cold) = value.split_at(shape.cut());
            let parts = if shape.groups { vec![hot, cold] } else { vec![hot] };
            batch.insert_parts(table, key, &parts);
        }
        batch.commit()?;
    }
    Ok(())
}

//! Saving what can be read of a damaged database into a new one. The damaged one is only read: no lock is taken, nothing is
//! written or removed there.
//!
//! What is known comes from three places. The manifest says which files count, of which table they are, what is seen of
//! them and where imports stand in the order of commits; it is read up to its first damage. If it is damaged or gone, every
//! SST in the directory counts, and says in its footer which table it was written for. Logs are replayed as far as they
//! hold. Levels do not matter: of each key the newest version in any file or log wins, and range erases hide what is older.
//!
//! A page that cannot be read is passed over with the rows below it, and listed. A row whose value or part lies in such a
//! page is passed over alone. What is older and was hidden by what is lost may show again.

pub mod salvage;

use crate::error::{Error, Result};
use crate::files::leftovers::Leftovers;
use crate::files::origin::{self, FileOrigin};
use crate::handle::database::Database;
use crate::handle::table::Table;
use crate::log::wal::LogReader;
use crate::manifest::db_file::{EarlyFiles, FileOpener, sst_name};
use crate::manifest::{DbFile, FileSet, ManifestLog, TableId};
use crate::memtable::Memtable;
use crate::memtable::set::MemSet;
use crate::open::{ListedFile, list};
use crate::options::TableOptions;
use crate::parts::Slices;
use crate::tables::define::check_name;
use crate::write::writer::{apply, log_path};
use os::sync::Arc;
use os::{Access, Machine};
use pages::PageCache;
use salvage::{Loss, Salvage, SalvagedRow};
use sst::{RangeErase, RowKind, Version};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::{Path, PathBuf};

/// Memory for pages of the damaged database, in bytes: index nodes of many files, and the pages being read.
const CACHE_BYTES: u64 = 64 << 20;

/// Descriptors of the damaged database at a time.
const OPEN_FILES: usize = 256;

/// Room for values that were written with any write buffer.
const WRITE_BUFFER_BYTES: u64 = 8 << 30;

/// What a repair saved and what it could not.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Tables in the new database.
    pub tables: u64,
    /// Rows in the new database.
    pub rows: u64,
    /// SSTs that were read.
    pub files: u64,
    /// Commits that were replayed from logs.
    pub commits: u64,
    /// What could not be read; empty if nothing was lost.
    pub lost: Vec<Loss>,
    /// What had to be guessed: names, places in the order of commits, rows that may have been erased.
    pub guesses: Vec<String>,
}

/// Saves what can be read of the database in `damaged` into a new one in `new`, which must not exist or be empty. Nobody
/// may write to `damaged` meanwhile, and nothing is written there. `progress` is told how many rows were saved.
///
/// History is not saved: of each key the newest version that can be read.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let (damaged, new) = (directory.path().join("damaged"), directory.path().join("new"));
/// larch::Database::open(&damaged)?.table("fruit")?.insert("apple", "red")?;
/// let report = larch::repair(&damaged, &new, &mut |_| {})?;
/// assert!(report.lost.is_empty() && report.rows == 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::RepairTarget`] if there is something in `new`; [`Error::NotADatabase`] if `damaged` has no file of a database; what
/// writing the new database meets. Damage is no error: it is in the report.
pub fn repair(damaged: impl AsRef<Path>, new: impl AsRef<Path>, progress: &mut dyn FnMut(u64)) -> Result<RepairReport> {
    repair_on(&Machine::real(), damaged.as_ref(), new.as_ref(), progress)
}

/// As [`repair`], on any machine.
///
/// # Errors
///
/// As [`repair`].
pub fn repair_on(machine: &Machine, damaged: &Path, new: &Path, progress: &mut dyn FnMut(u64)) -> Result<RepairReport> {
    let disk = &machine.disk;
    let is_there = disk.exists(new).map_err(|error| Error::io("look for", new, error))?;
    if is_there && !disk.list(new).map_err(|error| Error::io("list", new, error))?.is_empty() {
        return Err(Error::RepairTarget(new.to_owned()));
    }
    let mut report = RepairReport::default();
    let mut found = DamagedDatabase::gather(machine, damaged, &mut report)?;
    found.replay_logs(machine, damaged, &mut report)?;
    let db = Database::builder(new).machine(machine.clone()).write_buffer_bytes(WRITE_BUFFER_BYTES).open()?;
    for (id, source) in &mut found.tables {
        // What a footer says is not what a manifest says: a name may be none, or that of another table.
        if check_name(&source.name).is_err() || db.existing_table(&source.name)?.is_some() {
            let name = format!("table-{}", id.0);
            report.guesses.push(format!("a second table {:?} is named {name:?}", source.name));
            source.name = name;
        }
        let memtable = found.memory.table(*id);
        save_table(&db, source, memtable.as_deref(), &found.cache, &mut report, progress)?;
        report.tables += 1;
    }
    db.close()?;
    Ok(report)
}

/// A table and where its rows are.
struct DamagedTable {
    name: String,
    options: TableOptions,
    files: Vec<Arc<DbFile>>,
}

/// What the damaged database has.
struct DamagedDatabase {
    tables: BTreeMap<TableId, DamagedTable>,
    /// Whether the manifest says everything: tables and files that it does not name are none.
    is_whole: bool,
    /// Logs from here on are not in files.
    oldest_log: u64,
    memory: MemSet,
    cache: Arc<PageCache>,
    logs: Vec<u64>,
}

impl DamagedDatabase {
    fn gather(machine: &Machine, damaged: &Path, report: &mut RepairReport) -> Result<Self> {
        if !machine.disk.exists(damaged).map_err(|error| Error::io("look for", damaged, error))? {
            return Err(Error::NotADatabase(damaged.to_owned()));
        }
        let listed = list(machine, damaged)?;
        if listed.is_empty() {
            return Err(Error::NotADatabase(damaged.to_owned()));
        }
        let cache = PageCache::new(CACHE_BYTES, OPEN_FILES, sst::validate);
        let opener = FileOpener {
            directory: damaged.to_owned(),
            machine: machine.clone(),
            cache: cache.clone(),
            prefer_flat: false,
            early: EarlyFiles::default(),
            known: Arc::default(),
            leftovers: Leftovers::new(machine.disk.clone()),
        };
        let (set, is_whole) = manifest(machine, damaged, &listed, &opener, report);
        let mut tables = BTreeMap::new();
        for table in set.tables.values() {
            let mut files = Vec::new();
            for (_, file) in table.files() {
                if machine.disk.exists(file.path()).unwrap_or(false) {
                    files.push(file.clone());
                } else if is_whole {
                    report.lost.push(lost_file(file, &table.info.name, "it is missing"));
                }
            }
            let (name, options) = (table.info.name.clone(), table.info.options.clone());
            tables.insert(table.info.id, DamagedTable { name, options, files });
        }
        let logs = listed.iter().filter_map(|name| match name {
            ListedFile::Log(number) => Some(*number),
            _ => None,
        });
        let mut found =
            Self { tables, is_whole, oldest_log: set.oldest_log, memory: MemSet::new(0), cache, logs: logs.collect() };
        if !is_whole {
            found.adopt(machine, &listed, &set, &opener, report);
        }
        Ok(found)
    }

    /// Takes the SSTs that no manifest names, each for the table that its footer names.
    fn adopt(
        &mut self,
        machine: &Machine,
        listed: &[ListedFile],
        set: &FileSet,
        opener: &FileOpener,
        report: &mut RepairReport,
    ) {
        let named: BTreeSet<String> = set
            .tables
            .values()
            .flat_map(|table| table.files())
            .map(|(_, file)| sst_name(file.number, file.epoch))
            .collect();
        let mut newest_before = 0;
        for name in listed {
            let ListedFile::Sst(name, number) = name else { continue };
            if named.contains(name) {
                continue;
            }
            let path = opener.directory.join(name);
            let file = machine.disk.open(&path, Access::Read).map_err(|error| Error::io("open", &path, error));
            let read = file.and_then(|file| Ok(sst::read_origin(&*file, &path)?));
            let (meta, origin) = match read {
                Ok(read) => read,
                Err(error) => {
                    let (keys, rows) = (None, 0);
                    report.lost.push(Loss { file: path, table: None, keys, rows, why: error.to_string() });
                    continue;
                }
            };
            let FileOrigin { table, name: table_name, groups } = origin::decode(&origin);
            let id = TableId(table.unwrap_or(0));
            // An import holds version 0 throughout: its place was in the manifest. It came after what was in files then.
            let is_import = meta.newest == Version(0) && meta.rows() > 0;
            let offset = if is_import { newest_before } else { 0 };
            if is_import {
                report.guesses.push(format!(
                    "{name} was imported; it is taken as newer than files with smaller numbers, and older than the others"
                ));
            }
            newest_before = newest_before.max(if meta.newest == Version::MAX { 0 } else { meta.newest.0 });
            let epoch = name.trim_end_matches(".sst").split('-').nth(1).and_then(|epoch| epoch.parse().ok());
            let group_count = meta.groups.len();
            let source = self.tables.entry(id).or_insert_with(|| {
                let name = table_name.unwrap_or_else(|| format!("table-{}", id.0));
                let groups = groups.unwrap_or_else(|| match group_count {
                    0 => Vec::new(),
                    more => (0..=more).map(|group| format!("group-{group}")).collect(),
                });
                report
                    .guesses
                    .push(format!("table {name:?} is known from the footers of its files; its options are not"));
                let options = TableOptions { groups, ..TableOptions::default() };
                let options = if options.check().is_ok() { options } else { TableOptions::default() };
                DamagedTable { name, options, files: Vec::new() }
            });
            if source.options.groups.len().max(1) != 1 + group_count {
                let why = format!(
                    "its rows have {} parts, those of the table {}",
                    1 + group_count,
                    source.options.groups.len()
                );
                let (table, keys, rows) = (Some(source.name.clone()), None, meta.rows());
                report.lost.push(Loss { file: path, table, keys, rows, why });
                continue;
            }
            source.files.push(opener.open(*number, epoch.unwrap_or(0), offset, meta));
        }
    }

    /// Puts the commits of all logs that are needed in memory, each log as far as it holds.
    fn replay_logs(&mut self, machine: &Machine, damaged: &Path, report: &mut RepairReport) -> Result<()> {
        for &number in self.logs.iter().filter(|number| **number >= self.oldest_log) {
            let path = log_path(damaged, number);
            let mut last = None;
            let outcome = LogReader::open(&*machine.disk, &path, None).and_then(|mut reader| {
                while let Some(commit) = reader.next_commit()? {
                    last = Some(commit.version);
                    report.commits += 1;
                    apply(&self.memory, commit.version, commit.ops);
                }
                Ok(())
            });
            if let Err(error) = outcome {
                let after = last
                    .map_or("all its commits".to_owned(), |version: Version| format!("commits after {}", version.0));
                let why = format!("{after} are lost: {error}");
                report.lost.push(Loss { file: path, table: None, keys: None, rows: 0, why });
            }
        }
        for (id, _) in self.memory.all() {
            // A manifest that is whole does not know tables that were dropped since.
            if !self.is_whole && !self.tables.contains_key(&id) {
                let name = format!("table-{}", id.0);
                report
                    .guesses
                    .push(format!("table {name:?} is known from the log alone; neither name nor options are"));
                self.tables.insert(id, DamagedTable { name, options: TableOptions::default(), files: Vec::new() });
            }
        }
        Ok(())
    }
}

/// What the manifest says up to its first damage, and whether that is all of it. Nothing is lost by a manifest alone: its
/// files are there, so damage of it is a guess about them.
fn manifest(
    machine: &Machine,
    damaged: &Path,
    listed: &[ListedFile],
    opener: &FileOpener,
    report: &mut RepairReport,
) -> (FileSet, bool) {
    let newest = listed.iter().filter_map(|name| match name {
        ListedFile::Manifest(number) => Some(*number),
        _ => None,
    });
    let named = ManifestLog::current(machine, damaged);
    let path = match (&named, newest.max()) {
        (Ok(path), _) => path.clone(),
        (Err(error), Some(number)) => {
            report.guesses.push(format!("{error}; the manifest with the greatest number is read"));
            damaged.join(crate::manifest::log::manifest_name(number))
        }
        (Err(error), None) => {
            report.guesses.push(format!("{error}; files are found by their footers"));
            return (FileSet::default(), false);
        }
    };
    let (set, damage) = ManifestLog::read_to_damage(machine, &path, opener);
    match damage {
        None => (set, named.is_ok()),
        Some(error) => {
            report.guesses.push(format!(
                "{error}; every SST in the directory is read: rows that were erased or cut off after this may be back"
            ));
            (set, false)
        }
    }
}

fn lost_file(file: &DbFile, table: &str, why: &str) -> Loss {
    let bounds = file.sst.bounds();
    Loss {
        file: file.path().to_owned(),
        table: Some(table.to_owned()),
        keys: Some((bounds.low.clone(), bounds.high.clone())),
        rows: file.sst.rows().count(),
        why: format!("{}: {why}", file.path().display()),
    }
}

/// Versions of rows of one source, by key.
enum RowSource<'a> {
    File(Box<Salvage>),
    Memory(std::iter::Peekable<Box<dyn Iterator<Item = SalvagedRow> + 'a>>),
}

impl RowSource<'_> {
    fn next(&mut self) -> Option<SalvagedRow> {
        match self {
            Self::File(salvage) => salvage.next(),
            Self::Memory(rows) => {
                let newest = rows.next()?;
                while rows.next_if(|older| older.key == newest.key).is_some() {}
                Some(newest)
            }
        }
    }
}

fn save_table(
    db: &Database,
    source: &DamagedTable,
    memtable: Option<&Memtable>,
    cache: &Arc<PageCache>,
    report: &mut RepairReport,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let table: Table = db.table_with(&source.name, source.options.clone())?;
    let groups = source.options.groups.len().max(1);
    let cutter = Memtable::new();
    let mut erases: Vec<RangeErase> = Vec::new();
    let mut sources: Vec<RowSource<'_>> = Vec::new();
    for file in &source.files {
        let mut salvage = Salvage::new(file.clone(), cache.clone(), groups);
        erases.extend(salvage.range_erases());
        sources.push(RowSource::File(Box::new(salvage)));
        report.files += 1;
    }
    let mut bad_values = Vec::new();
    if let Some(memtable) = memtable {
        erases.extend(
            memtable.range_erases().map(|erase| RangeErase { keys: erase.keys.to_vecs(), versions: erase.versions }),
        );
        for row in memtable.all_versions() {
            if row.kind() == RowKind::Put && Slices::of(row.value(), groups).is_none() {
                let (table, key) = (source.name.clone(), row.key().into());
                bad_values.push((row.key().to_vec(), Error::BadParts { table, key, parts: groups }));
            }
        }
        let rows = memtable.all_versions().filter_map(|row| {
            let parts = match row.kind() {
                RowKind::Put => {
                    Slices::of(row.value(), groups).map(|parts| Some(parts.iter().map(|part| part.to_vec()).collect()))
                }
                _ => Some(None),
            };
            Some(SalvagedRow { key: row.key().to_vec(), version: row.version(), parts: parts? })
        });
        let rows: Box<dyn Iterator<Item = SalvagedRow>> = Box::new(rows);
        sources.push(RowSource::Memory(rows.peekable()));
    }
    // A memtable cuts them, oldest first.
    let mut by_age: Vec<(Version, usize)> =
        erases.iter().enumerate().filter_map(|(i, erase)| Some((*erase.versions.first()?, i))).collect();
    by_age.sort_unstable();
    for (version, i) in by_age {
        let keys = &erases[i].keys;
        cutter.remove_range(&keys.start, keys.end.as_deref().unwrap_or_default(), version);
    }
    drop(erases);
    let mut import = table.import()?;
    let mut heap = BinaryHeap::new();
    let mut heads: Vec<Option<SalvagedRow>> = Vec::new();
    for (i, rows) in sources.iter_mut().enumerate() {
        let head = rows.next();
        heap.extend(head.as_ref().map(|row| Reverse((row.key.clone(), Reverse(row.version), i))));
        heads.push(head);
    }
    let mut last: Option<Vec<u8>> = None;
    while let Some(Reverse((key, Reverse(version), i))) = heap.pop() {
        let candidate = heads[i].take().expect("it is in the heap");
        heads[i] = sources[i].next();
        heap.extend(heads[i].as_ref().map(|row| Reverse((row.key.clone(), Reverse(row.version), i))));
        if last.as_ref() == Some(&key) {
            continue;
        }
        let is_hidden = cutter.cover(&key, Version::MAX).is_some_and(|erased| erased > version);
        if let Some(parts) = candidate.parts.filter(|_| !is_hidden) {
            let added = if source.options.groups.is_empty() {
                import.add(&key, &parts[0])
            } else {
                import.add_parts(&key, &parts)
            };
            match added {
                Ok(()) => report.rows += 1,
                Err(error @ (Error::ValueTooLong { .. } | Error::KeyTooLong { .. })) => {
                    bad_values.push((key.clone(), error))
                }
                Err(error) => return Err(error),
            }
            if report.rows.is_multiple_of(1 << 12) {
                progress(report.rows);
            }
        }
        last = Some(key);
    }
    import.finish(&mut |_, _| {})?;
    for rows in sources {
        if let RowSource::File(salvage) = rows {
            let name = &source.name;
            report.lost.extend(salvage.lost.into_iter().map(|loss| Loss { table: Some(name.clone()), ..loss }));
        }
    }
    for (key, error) in bad_values {
        let (file, table) = (PathBuf::new(), Some(source.name.clone()));
        report.lost.push(Loss { file, table, keys: Some((key.clone(), Some(key))), rows: 1, why: error.to_string() });
    }
    progress(report.rows);
    Ok(())
}

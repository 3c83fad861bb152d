//! Finds what a damaged database contains: its tables, their files, and the rows in its logs. This module reads no
//! pages with rows.

use super::report::{Loss, RepairReport};
use crate::base::error::{Error, Result};
use crate::base::options::TableOptions;
use crate::base::record::Previous;
use crate::base::table::TableId;
use crate::core::writer::{apply, log_path};
use crate::log::LogReader;
use crate::manifest::db_file::{EarlyFiles, FileOpener, sst_name};
use crate::manifest::directory::leftovers::Leftovers;
use crate::manifest::directory::listing::{ListedFile, list};
use crate::manifest::log::manifest_name;
use crate::manifest::origin::FileOrigin;
use crate::manifest::{DbFile, FileSet, ManifestLog, origin};
use crate::memtable::set::MemSet;
use os::sync::Arc;
use os::{Access, Machine};
use pages::PageCache;
use sst::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Memory for pages of the damaged database: enough for index nodes of many files, and for the pages being read.
const CACHE_BYTES: u64 = 64 << 20;

/// The most files of the damaged database that are open at the same time.
const OPEN_FILES: usize = 256;

/// A table of the damaged database, with its files.
pub struct DamagedTable {
    pub name: String,
    pub options: TableOptions,
    pub files: Vec<Arc<DbFile>>,
}

/// The tables, files and logs of the damaged database.
pub struct DamagedDatabase {
    pub tables: BTreeMap<TableId, DamagedTable>,
    /// The tables of entries of indexes, which a repair leaves out.
    indexes: BTreeSet<TableId>,
    /// Whether the manifest is undamaged, so that it names all tables and files of the database.
    is_whole: bool,
    /// The number of the oldest log that is needed. The rows of older logs are in files.
    oldest_log: u64,
    /// The rows of the logs.
    pub memory: MemSet,
    /// The cache for pages of the damaged database.
    pub cache: Arc<PageCache>,
    logs: Vec<u64>,
}

impl DamagedDatabase {
    /// Finds the tables and files: those in the manifest, and if it is damaged, also those that footers of SSTs name.
    ///
    /// # Errors
    ///
    /// [`Error::NotADatabase`] if `damaged` has no file of a database; an error if the directory cannot be listed.
    pub fn gather(machine: &Machine, damaged: &Path, report: &mut RepairReport) -> Result<Self> {
        if !machine.disk.exists(damaged).map_err(|error| Error::io("look for", damaged, error))? {
            return Err(Error::NotADatabase(damaged.to_owned()));
        }
        let listed = list(&*machine.disk, damaged)?;
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
        let (mut tables, mut indexes) = (BTreeMap::new(), BTreeSet::new());
        for table in set.tables.values() {
            if let Some(index) = &table.info.index {
                let of = set.tables.get(&index.table).map_or("?", |of| &of.info.name);
                report.guesses.push(format!(
                    "the index {} of table {of} is not in the new database; create it again",
                    index.name
                ));
                indexes.insert(table.info.id);
                continue;
            }
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
        let mut found = Self {
            tables,
            indexes,
            is_whole,
            oldest_log: set.oldest_log,
            memory: MemSet::new(0, Arc::default()),
            cache,
            logs: logs.collect(),
        };
        if !is_whole {
            found.adopt(machine, &listed, &set, &opener, report);
        }
        Ok(found)
    }

    /// Adds the SSTs that the manifest does not name to the tables that their footers name.
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
        let mut built_ids: BTreeMap<u64, TableId> = BTreeMap::new();
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
            let FileOrigin { table, name: table_name, groups, index_of, is_run, built } = origin::decode(&origin);
            let (id, table_name) = match built {
                // Tables of a database never have the greatest ids. Here, files that were built elsewhere get tables
                // with these ids, the greatest one first.
                Some(built) => {
                    let next = TableId(TableId::ELSEWHERE.0 - built_ids.len() as u32);
                    (*built_ids.entry(built).or_insert(next), Some(format!("built-{built:016x}")))
                }
                None => (TableId(table.unwrap_or(0)), table_name),
            };
            if built.is_some() {
                report.guesses.push(format!(
                    "{name} was built elsewhere and does not say for which table; its rows are in one with the files that were \
                     built with it"
                ));
            }
            if is_run {
                report
                    .guesses
                    .push(format!("{name} has writes of a transaction that did not commit; they are left out"));
                continue;
            }
            if index_of.is_some() {
                if self.indexes.insert(id) {
                    let index = table_name.unwrap_or_else(|| "?".to_owned());
                    report.guesses.push(format!("an index {index} is not in the new database; create it again"));
                }
                continue;
            }
            // The rows of an import have version 0 in the file, because only the manifest had their version. The
            // import is taken as newer than all files with smaller numbers.
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
            let source =
                self.tables.entry(id).or_insert_with(|| from_footer(id, table_name, groups, group_count, report));
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

    /// Replays all logs that are needed into `memory`, each up to its first damage.
    pub fn replay_logs(&mut self, machine: &Machine, damaged: &Path, report: &mut RepairReport) {
        let open = |number| LogReader::open(&*machine.disk, &log_path(damaged, number), None);
        let needed: Vec<u64> = self.logs.iter().copied().filter(|number| *number >= self.oldest_log).collect();
        let previous: Vec<Option<Previous>> =
            needed.iter().map(|number| open(*number).ok().and_then(|log| log.previous())).collect();
        for (i, &number) in needed.iter().enumerate() {
            let (own, later) = (previous[i], &previous[i + 1..]);
            if later.iter().flatten().any(|later| later.drops(number, own)) {
                continue;
            }
            let mut last = None;
            let outcome = open(number).and_then(|mut reader| {
                while let Some(commit) = reader.next_commit()? {
                    last = Some(commit.version);
                    report.commits += 1;
                    self.memory.note_commit(commit.version, 0);
                    apply(&self.memory, commit.version, commit.ops.into(), 0);
                }
                Ok(reader.end())
            });
            match outcome {
                Ok(end) if later.iter().flatten().any(|next| next.number == number && end < next.end.at) => {
                    report.guesses.push(format!(
                        "log {number} ends too early, so commits may be missing between its commits and those of the next log"
                    ));
                }
                Ok(_) => {}
                Err(error) => {
                    let after = last.map_or("all its commits".to_owned(), |version: Version| {
                        format!("commits after {}", version.0)
                    });
                    let (why, file) = (format!("{after} are lost: {error}"), log_path(damaged, number));
                    report.lost.push(Loss { file, table: None, keys: None, rows: 0, why });
                }
            }
        }
        for (id, _) in self.memory.all() {
            // A table that an undamaged manifest does not name was dropped.
            if !self.is_whole && !self.tables.contains_key(&id) && !self.indexes.contains(&id) {
                let name = format!("table-{}", id.0);
                report
                    .guesses
                    .push(format!("table {name:?} is known from the log alone; neither name nor options are"));
                self.tables.insert(id, DamagedTable { name, options: TableOptions::default(), files: Vec::new() });
            }
        }
    }
}

/// Makes a table, without files, that is known only from the footer of a file.
fn from_footer(
    id: TableId,
    name: Option<String>,
    groups: Option<Vec<String>>,
    group_count: usize,
    report: &mut RepairReport,
) -> DamagedTable {
    let name = name.unwrap_or_else(|| format!("table-{}", id.0));
    let groups = groups.unwrap_or_else(|| match group_count {
        0 => Vec::new(),
        more => (0..=more).map(|group| format!("group-{group}")).collect(),
    });
    report.guesses.push(format!("table {name:?} is known from the footers of its files; its options are not"));
    let options = TableOptions { groups, ..TableOptions::default() };
    let options = if options.check().is_ok() { options } else { TableOptions::default() };
    DamagedTable { name, options, files: Vec::new() }
}

/// Reads the manifest up to its first damage. Returns its file set, and whether it is undamaged. Damage goes to the
/// guesses of the report, not to the losses, because the files with the rows are still there.
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
            damaged.join(manifest_name(number))
        }
        (Err(error), None) => {
            report.guesses.push(format!("{error}; files are found by their footers"));
            return (FileSet::default(), false);
        }
    };
    let (set, damage) = ManifestLog::read_to_damage(machine, &path, opener);
    let names: Vec<&str> = set.all_kept().map(|kept| kept.name.as_str()).collect();
    if !names.is_empty() || set.oldest_past().is_some() {
        let names = names.join(", ");
        report.guesses.push(format!(
            "the new database has the newest rows alone, and nothing of the past that was kept: {names}"
        ));
    }
    let subscriptions: Vec<&str> = set.subscribers().map(|subscriber| subscriber.name.as_str()).collect();
    if !subscriptions.is_empty() {
        let names = subscriptions.join(", ");
        report.guesses.push(format!(
            "the new database has no subscriptions; subscribe again, and copy what the readers need: {names}"
        ));
    }
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

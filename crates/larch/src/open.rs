//! Opening a database: manifest, then log, then serve. No page of any SST is read.

use crate::background::{BackgroundClose, jobs};
use crate::core::Core;
use crate::core::environment::Environment;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::files::leftovers::Leftovers;
use crate::files::output::NewFiles;
use crate::log::record::{LogError, Previous};
use crate::log::wal::LogReader;
use crate::manifest::db_file::{EarlyFiles, FileOpener, sst_name};
use crate::manifest::log::manifest_name;
use crate::manifest::{Edit, FileSet, ManifestLog};
use crate::memtable::set::MemSet;
use crate::options::Options;
use crate::read::View;
use crate::write::batch::{BatchOps, Op};
use crate::write::flush;
use crate::write::writer::{Writer, apply, log_path};
use os::sync::Arc;
use os::{Access, Lock, Machine};
use pages::PageCache;
use sst::Version;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

const LOCK: &str = "LOCK";

/// Opens the database in `directory`.
pub fn open(
    machine: Machine,
    directory: PathBuf,
    options: Options,
    cache: Option<&Arc<PageCache>>,
) -> Result<Arc<Core>> {
    let is_own = cache.is_none();
    let new_cache = || PageCache::new(options.cache_bytes, options.open_files, sst::validate);
    let cache = cache.map_or_else(new_cache, Arc::clone);
    if let Some(bytes) = options.in_memory_bytes.filter(|_| is_own) {
        cache.set_kept_bytes(bytes);
    }
    let opener = FileOpener {
        directory: directory.clone(),
        machine: machine.clone(),
        cache,
        prefer_flat: options.prefer_flat_index,
        early: EarlyFiles::default(),
        known: Arc::default(),
        leftovers: Leftovers::new(machine.disk.clone()),
    };
    options.check()?;
    // For a writer this only saves making a directory in vain: what counts is what it finds under the lock.
    if (options.read_only || !options.create) && !ManifestLog::exists(&machine, &directory)? {
        return Err(Error::NotADatabase(directory));
    }
    if options.read_only {
        open_read_only(machine, directory, options, opener)
    } else {
        open_writer(machine, directory, options, opener)
    }
}

/// Shows what the manifest says: no lock, no threads, no log. Commits that are not in files yet are not seen.
fn open_read_only(machine: Machine, directory: PathBuf, options: Options, opener: FileOpener) -> Result<Arc<Core>> {
    let files = ManifestLog::read_newest(&machine, &directory, &opener)?;
    let visible = files.flushed_version;
    let view = View { generation: 0, memory: Vec::new(), files: Arc::new(files) };
    let env = Environment::new(machine, directory, options, opener, view.files.epoch);
    Ok(Arc::new(Core::new(env, None, view, visible)))
}

fn open_writer(machine: Machine, directory: PathBuf, options: Options, opener: FileOpener) -> Result<Arc<Core>> {
    let begin_time = machine.clock.now();
    // Before anything is made: writers would wait for ever for flushes that nobody does.
    machine.threads.start().map_err(|error| Error::NoThreads(error.to_string()))?;
    machine.disk.create_dir(&directory).map_err(|error| Error::io("create", &directory, error))?;
    let lock = lock(&machine, &directory)?;
    let listed = list(&machine, &directory)?;
    let mut files = if ManifestLog::exists(&machine, &directory)? {
        ManifestLog::read(&machine, &ManifestLog::current(&machine, &directory)?, &opener)?
    } else if listed.iter().any(|name| !matches!(name, ListedFile::Manifest(_))) {
        // An unfinished creation leaves manifests only.
        return Err(ManifestLog::current_is_missing(&directory));
    } else if !options.create {
        return Err(Error::NotADatabase(directory));
    } else {
        FileSet::new(machine.random.next_u64())
    };
    files.check_readable_by(options.compat)?;
    files.written_for = Some(options.compat.to_string());
    files.epoch += 1;
    // Numbers that an unfinished writer may have used are skipped, so that its left-overs are never overwritten.
    files.next_number =
        listed.iter().filter_map(ListedFile::number).map(|number| number + 1).fold(files.next_number, u64::max);
    let last = files.last_version;
    let view = View { generation: 0, memory: Vec::new(), files: Arc::new(files) };
    let env = Environment::new(machine, directory, options, opener, view.files.epoch);
    let core = Arc::new(Core::new(env, Some(lock), view, last));
    let recovered = replay(&core, &listed)?;
    let (logs, commits, recovered_files) = (recovered.logs, recovered.commits, recovered.files.files.len() as u64);
    let (manifest, log) = begin(&core, recovered)?;
    remove_orphans(&core, listed, manifest, log);
    // Without it puts will say that the disk is full.
    core.writes.reserve.fill().ok();
    core.env.report(|| Event::Opened {
        files: core.views.newest().files.tables.values().map(|table| table.files().count() as u64).sum(),
        logs,
        commits,
        recovered_files,
        version: core.views.visible(),
        time: core.env.machine.clock.now() - begin_time,
    });
    jobs::begin(&core);
    core.warm_kept_tables();
    if core.env.options.warm_from_last {
        core.background.warmth.request_state();
        core.background.wake_warm();
    }
    Ok(core)
}

/// Takes the lock of the directory, once it was let go if a close in this process is about to do so.
fn lock(machine: &Machine, directory: &std::path::Path) -> Result<Box<dyn Lock>> {
    let path = directory.join(LOCK);
    loop {
        let seen = BackgroundClose::ended();
        match machine.disk.lock(&path) {
            Ok(lock) => return Ok(lock),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !BackgroundClose::wait_for_next(seen) {
                    return Err(Error::Locked(directory.to_owned()));
                }
            }
            Err(error) => return Err(Error::io("lock", &path, error)),
        }
    }
}

/// Starts a manifest and a log, and takes the recovered files in; the numbers of both.
fn begin(core: &Arc<Core>, recovered: Recovered) -> Result<(u64, u64)> {
    let (manifest_number, log_number) = (core.writes.new_number(), core.writes.new_number());
    let mut files = FileSet::clone(&core.views.newest().files);
    files.next_number = log_number + 1;
    let newest = recovered.newest.max(files.last_version);
    let compat = core.env.options.compat;
    let manifest = ManifestLog::create(&core.env.log_machine, &core.env.directory, manifest_number, &files, compat)?;
    let active = Arc::new(MemSet::new(log_number));
    let (previous, next) = (recovered.previous, Version(newest.0 + 1));
    let writer = Writer::create(&core.env.log_machine, &core.env.directory, active.clone(), previous, next)?;
    *core.writes.manifest.lock() = Some(manifest);
    *core.writes.writer.lock() = Some(writer);
    core.views.change(|view| {
        view.files = Arc::new(files);
        view.memory = vec![active];
    });
    core.views.publish(newest);
    let NewFiles { files, fresh } = recovered.files;
    let mut edits: Vec<Edit> = files.into_iter().map(Edit::AddFile).collect();
    edits.extend([Edit::OldestLog(log_number), Edit::LastVersion(newest), Edit::FlushedVersion(newest)]);
    core.install(&edits, fresh, |_| {})?;
    Ok((manifest_number, log_number))
}

struct Recovered {
    /// Files with the recovered rows, for level 0.
    files: NewFiles,
    newest: Version,
    /// The last log, for the header of the next.
    previous: Option<Previous>,
    /// How many logs there were, and commits in them.
    logs: u64,
    commits: u64,
}

/// Reads the logs that are not in files yet, oldest first.
///
/// Rows go to level 0 as soon as they fill half of the write buffer, so that a log of any length is read in bounded
/// memory.
fn replay(core: &Arc<Core>, listed: &[ListedFile]) -> Result<Recovered> {
    let (machine, directory, files) = (&core.env.machine, &core.env.directory, &core.views.newest().files);
    let numbers: Vec<u64> = listed
        .iter()
        .filter_map(|name| match name {
            ListedFile::Log(number) if *number >= files.oldest_log => Some(*number),
            _ => None,
        })
        .collect();
    let numbers = used(machine, directory, numbers)?;
    if files.oldest_log > 0 && numbers.first() != Some(&files.oldest_log) {
        let path = log_path(directory, files.oldest_log);
        return Err(LogError::corrupt(&path, 0, "it is missing, but the manifest needs it").into());
    }
    let mut recovered = Recovered {
        files: NewFiles::none(&core.env),
        newest: Version(0),
        previous: None,
        logs: numbers.len() as u64,
        commits: 0,
    };
    for (i, &number) in numbers.iter().enumerate() {
        // A log's successor says where it ended.
        let known_end = match numbers.get(i + 1) {
            Some(&next) => named_end(machine, directory, next, number)?,
            None => None,
        };
        let path = log_path(directory, number);
        let mut reader = LogReader::open(&*machine.disk, &path, known_end)?;
        if let Some(previous) = reader.header().and_then(|header| header.previous) {
            let is_here = previous.number < files.oldest_log || (i > 0 && numbers[i - 1] == previous.number);
            if !is_here {
                let why = format!("it continues log {}, which is missing", previous.number);
                return Err(LogError::corrupt(&path, 0, why).into());
            }
        }
        let mut memory = MemSet::new(number);
        while let Some(commit) = reader.next_commit()? {
            let (version, ops) = (commit.version, commit.ops);
            if version <= recovered.newest {
                let why = format!("commit {} comes after commit {}", version.0, recovered.newest.0);
                return Err(LogError::corrupt(&path, commit.offset, why).into());
            }
            recovered.newest = version;
            recovered.commits += 1;
            apply(&memory, version, &known_tables(ops, files));
            if memory.bytes() > core.env.options.write_buffer_bytes / 2 {
                recovered.files.append(flush::write_files(core, &memory)?);
                memory = MemSet::new(number);
            }
        }
        rewrite_tail(machine, &path, reader.proven_end()..reader.end())?;
        recovered.previous = Some(Previous { number, end: reader.end() });
        recovered.files.append(flush::write_files(core, &memory)?);
    }
    Ok(recovered)
}

/// The logs that commits may be in. Nothing was ever in the others: their creation was not finished, or it was given up
/// after an error, so that the next log does not continue them.
fn used(machine: &Machine, directory: &Path, numbers: Vec<u64>) -> Result<Vec<u64>> {
    let open = |number| LogReader::open(&*machine.disk, &log_path(directory, number), None);
    let mut used: Vec<u64> = Vec::new();
    for number in numbers {
        let Some(header) = open(number)?.header().copied() else { continue };
        if let Some(previous) = header.previous {
            while let Some(&last) = used.last()
                && last > previous.number
                && open(last)?.next_commit()?.is_none()
            {
                used.pop();
            }
        }
        used.push(number);
    }
    Ok(used)
}

/// What [`rewrite_tail`] holds in memory of a log.
const REWRITE_BYTES: u64 = 1 << 20;

/// Cuts a log off at `tail.end` and makes the rest durable, so that the next log may say that it is.
///
/// The tail is what was never proven to be durable. If an earlier process failed to sync it, the system may have given up
/// writing it and still show it, and a sync would then succeed without saving it. So the tail is written again first.
fn rewrite_tail(machine: &Machine, path: &Path, tail: Range<u64>) -> Result<()> {
    let io = |action| move |error| Error::io(action, path, error);
    let file = machine.disk.open(path, Access::Write).map_err(io("open"))?;
    file.set_len(tail.end).map_err(io("cut"))?;
    let mut bytes = vec![0; REWRITE_BYTES.min(tail.end - tail.start) as usize];
    let mut at = tail.start;
    while at < tail.end {
        let wanted = (tail.end - at).min(REWRITE_BYTES) as usize;
        let read = file.read_at(&mut bytes[..wanted], at).map_err(io("read"))?;
        if read == 0 {
            return Err(LogError::corrupt(path, at, "the file became shorter while it was recovered").into());
        }
        file.write_at(&bytes[..read], at).map_err(io("write"))?;
        at += read as u64;
    }
    file.sync().map_err(io("sync"))
}

/// Where log `next` says that log `number` ended, if it continues it.
fn named_end(machine: &Machine, directory: &Path, next: u64, number: u64) -> Result<Option<u64>> {
    let reader = LogReader::open(&*machine.disk, &log_path(directory, next), None)?;
    let previous = reader.header().and_then(|header| header.previous);
    Ok(previous.filter(|previous| previous.number == number).map(|previous| previous.end))
}

/// The ops of tables that still exist.
fn known_tables(ops: &BatchOps, files: &FileSet) -> BatchOps {
    let known = |table: u32| files.tables.contains_key(&crate::manifest::TableId(table));
    if ops.iter().all(|(table, _)| known(table)) {
        return ops.clone();
    }
    let mut kept = BatchOps::new();
    for (table, op) in ops.iter().filter(|(table, _)| known(*table)) {
        match op {
            Op::Put { key, value } => kept.put(table, key, value),
            Op::Erase { key } => kept.erase(table, key),
            Op::RangeErase { start, end } => kept.range_erase(table, start, end),
        }
    }
    kept
}

/// A file of the database by its name.
pub enum ListedFile {
    Sst(String, u64),
    Log(u64),
    Manifest(u64),
}

impl ListedFile {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Sst(_, number) | Self::Log(number) | Self::Manifest(number) => Some(*number),
        }
    }
}

/// The files in `directory` that are ours, by number.
pub fn list(machine: &Machine, directory: &Path) -> Result<Vec<ListedFile>> {
    let entries = machine.disk.list(directory).map_err(|error| Error::io("list", directory, error))?;
    let parse = |name: String| {
        if let Some(number) = name.strip_suffix(".log") {
            return number.parse().ok().map(ListedFile::Log);
        }
        if let Some(number) = name.strip_prefix("MANIFEST-") {
            return number.parse().ok().map(ListedFile::Manifest);
        }
        let number = name.strip_suffix(".sst")?.split('-').next()?.parse().ok()?;
        Some(ListedFile::Sst(name, number))
    };
    let mut listed: Vec<ListedFile> = entries.into_iter().filter_map(|entry| parse(entry.name)).collect();
    listed.sort_by_key(ListedFile::number);
    Ok(listed)
}

/// Removes what an unfinished writer left of the files `listed`: those no manifest names, older manifests and logs.
fn remove_orphans(core: &Core, listed: Vec<ListedFile>, manifest: u64, log: u64) {
    let view = core.views.newest();
    let live: BTreeSet<String> = view
        .files
        .tables
        .values()
        .flat_map(|table| table.files())
        .map(|(_, file)| sst_name(file.number, file.epoch))
        .collect();
    for listed in listed {
        let path = match listed {
            ListedFile::Sst(name, _) if !live.contains(&name) => core.env.directory.join(name),
            ListedFile::Log(number) if number < log => log_path(&core.env.directory, number),
            ListedFile::Manifest(number) if number < manifest => core.env.directory.join(manifest_name(number)),
            _ => continue,
        };
        core.env.opener.leftovers.remove(&path);
    }
}

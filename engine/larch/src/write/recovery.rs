//! Replays the logs whose commits are not in files yet. Their rows go to files of level 0, or to memory if the disk
//! is full. Of the manifest, this module knows only the file set that was read from it.

use crate::base::error::{Error, Result};
use crate::base::ops::{BatchOps, Op};
use crate::base::record::{Header, KnownEnd, LogError, Previous, rewrite_tail};
use crate::base::table::TableId;
use crate::core::Core;
use crate::core::writer::{apply, log_path};
use crate::log::{LogReader, chain, ends_too_early, named_end, oldest_is_missing};
use crate::manifest::FileSet;
use crate::manifest::directory::listing::ListedFile;
use crate::manifest::directory::place::Place;
use crate::manifest::new_files::NewFiles;
use crate::memtable::set::MemSet;
use crate::write::flush;
use os::Disk;
use os::sync::Arc;
use sst::Version;
use std::path::Path;

/// The result of a recovery. `R` holds the recovered rows, in files or in memory.
pub struct Recovered<R> {
    /// The recovered rows.
    pub rows: R,
    /// The version of the newest commit; 0 if there are no commits.
    pub newest: Version,
    /// The log that the next log will continue: usually the last log with commits, or the first log if none has
    /// any.
    pub previous: Option<Previous>,
    /// The numbers of the log `previous` and all logs before it, ascending. They are kept until their rows are in
    /// files.
    pub needed: Vec<u64>,
    /// The number of logs that were read.
    pub logs: u64,
    /// The number of commits in these logs.
    pub commits: u64,
}

/// Receives recovered commits in the order of their versions.
trait Sink {
    /// Receives a commit of a log.
    fn take(&mut self, version: Version, ops: &BatchOps) -> Result<()>;

    /// Called after the last commit of each log.
    fn end_log(&mut self) -> Result<()>;
}

/// Collects rows, and writes them to files of level 0 whenever they fill half of the write buffer, so that a long
/// log needs no more memory than a short one.
struct ToFiles<'c> {
    core: &'c Arc<Core>,
    place: &'c Place,
    files: NewFiles,
    memory: MemSet,
}

impl ToFiles<'_> {
    fn flush(&mut self) -> Result<()> {
        let memory = std::mem::replace(&mut self.memory, MemSet::new(0, Arc::default()));
        self.files.append(flush::write_files_to(self.core, &memory, &self.core.views.boundaries(), self.place)?);
        Ok(())
    }
}

impl Sink for ToFiles<'_> {
    fn take(&mut self, version: Version, ops: &BatchOps) -> Result<()> {
        self.memory.note_commit(version, 0);
        apply(&self.memory, version, ops.into(), 0);
        if self.memory.used_bytes() > self.core.env.options.write_buffer_bytes / 2 { self.flush() } else { Ok(()) }
    }

    fn end_log(&mut self) -> Result<()> {
        self.flush()
    }
}

impl Sink for MemSet {
    fn take(&mut self, version: Version, ops: &BatchOps) -> Result<()> {
        self.note_commit(version, 0);
        apply(self, version, ops.into(), 0);
        Ok(())
    }

    fn end_log(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Replays the logs among the `listed` files of `directory` whose rows are not in files yet, oldest first. Writes
/// their rows to files in `place`, which must be on the same disk.
///
/// # Errors
///
/// An error if a log that is needed is missing or corrupt, or if the disk fails. After an error, no new file is
/// left.
pub fn replay(core: &Arc<Core>, directory: &Path, listed: &[ListedFile], place: &Place) -> Result<Recovered<NewFiles>> {
    let (files, memory) = (NewFiles::none(place), MemSet::new(0, Arc::default()));
    read_logs(core, (&*place.disk, directory), listed, ToFiles { core, place, files, memory })
        .map(|recovered| recovered.with(|sink| sink.files))
}

/// Like [`replay`], but keeps the rows in memory. They need as much memory as when they were committed, which was
/// at most the write buffer of that time. All rows go to one set, so that its flush does not write rows of older
/// logs that newer logs erase.
///
/// # Errors
///
/// The errors of [`replay`], except for a full disk, because this call needs no disk space.
pub fn replay_to_memory(core: &Arc<Core>, listed: &[ListedFile]) -> Result<Recovered<MemSet>> {
    let disk = &*core.env.machine.disk;
    let functions = &core.env.options.merge_functions;
    let memory = MemSet::new(0, core.env.held.rows.clone()).with_filter().with_functions(functions);
    let mut recovered = read_logs(core, (disk, &core.env.directory), listed, memory)?;
    if let Some((&log, older)) = recovered.needed.split_last() {
        (recovered.rows.log, recovered.rows.older_logs) = (log, older.to_vec());
    }
    Ok(recovered)
}

impl<R> Recovered<R> {
    /// The same recovery, with its rows replaced by the result of `rows`.
    fn with<S>(self, rows: impl FnOnce(R) -> S) -> Recovered<S> {
        let Self { rows: old, newest, previous, needed, logs, commits } = self;
        Recovered { rows: rows(old), newest, previous, needed, logs, commits }
    }
}

fn read_logs<R: Sink>(
    core: &Core,
    (disk, directory): (&dyn Disk, &Path),
    listed: &[ListedFile],
    rows: R,
) -> Result<Recovered<R>> {
    let files = &core.views.newest().files;
    let numbers: Vec<u64> = listed
        .iter()
        .filter_map(|name| match name {
            ListedFile::Log(number) if *number >= files.oldest_log => Some(*number),
            _ => None,
        })
        .collect();
    let open = |number| LogReader::open(disk, &log_path(directory, number), None);
    let chain = chain(&numbers, files.oldest_log, open)?;
    if files.oldest_log > 0 && chain.first().map(|log| log.number) != Some(files.oldest_log) {
        return Err(oldest_is_missing(&log_path(directory, files.oldest_log)).into());
    }
    let (logs, newest) = (chain.len() as u64, Version(0));
    let mut recovered = Recovered { rows, newest, previous: None, needed: Vec::new(), logs, commits: 0 };
    for (i, log) in chain.iter().enumerate() {
        let number = log.number;
        let path = log_path(directory, number);
        if let Some(previous) = log.previous {
            let is_here = previous.number < files.oldest_log || (i > 0 && chain[i - 1].number == previous.number);
            if !is_here {
                let why = format!("it continues log {}, which is missing", previous.number);
                return Err(LogError::corrupt(&path, 0, why).into());
            }
        }
        let named_end = named_end(&chain[i..]);
        let mut reader = LogReader::open(disk, &path, named_end)?;
        if reader.header().is_some_and(Header::has_times) {
            check_release(core, &path)?;
            core.env.row_clock.note_times();
        }
        let before = recovered.commits;
        while let Some(commit) = reader.next_commit()? {
            let (version, ops) = (commit.version, commit.ops);
            if version <= recovered.newest {
                let why = format!("commit {} comes after commit {}", version.0, recovered.newest.0);
                return Err(LogError::corrupt(&path, commit.offset, why).into());
            }
            if ops.has_merges() && !core.env.options.compat.reads_merges() {
                let why = format!(
                    "{} has merges, which release {} cannot read; open the database once without compat",
                    path.display(),
                    core.env.options.compat
                );
                return Err(Error::BadOptions(why));
            }
            recovered.newest = version;
            recovered.commits += 1;
            recovered.rows.take(version, &known_tables(ops, files))?;
        }
        let is_short = named_end.is_some_and(|end| reader.end() < end.at);
        if is_short {
            // This log ends before the end that the next log names. So the next log is the newest, and began before
            // this one was durable.
            check_never_synced(disk, &path, reader.end(), &log_path(directory, chain[i + 1].number))?;
        }
        rewrite_tail(disk, &path, reader.proven_end()..reader.end())?;
        // Trailing logs without commits need not be continued, and can be removed. Otherwise they would pile up on
        // a disk that stays full.
        if i == 0 || recovered.commits > before || is_short {
            recovered.previous = Some(Previous { number, end: KnownEnd::durable(reader.end()) });
            recovered.needed = chain[..=i].iter().map(|log| log.number).collect();
        }
        recovered.rows.end_log()?;
        if is_short {
            // Drop the commits of the newest log, because commits before them were lost. The next log will continue
            // this one.
            break;
        }
    }
    Ok(recovered)
}

/// Returns an error if the rows with times of the log at `path` would have to go to files that an older release cannot
/// read.
fn check_release(core: &Core, path: &Path) -> Result<()> {
    let release = core.env.options.compat;
    if release.reads_times() {
        return Ok(());
    }
    let path = path.display();
    Err(Error::BadOptions(format!(
        "compat {release}: Larch {release} cannot read the rows that expire in {path}; open the database without compat"
    )))
}

/// The log at `path` ends at `end`, although the log `next` names a later end for it. Returns an error if `next` is
/// proven to have been synced, because that sync would have made the whole log at `path` durable first.
fn check_never_synced(disk: &dyn Disk, path: &Path, end: u64, next: &Path) -> Result<()> {
    match LogReader::open(disk, next, None)?.proof_of_sync()? {
        None => Ok(()),
        Some(proof) => Err(ends_too_early(path, end, next, &proof).into()),
    }
}

/// The `ops` on tables that still exist.
fn known_tables(ops: &BatchOps, files: &FileSet) -> BatchOps {
    let known = |table: u32| files.tables.contains_key(&TableId(table));
    if ops.iter().all(|(table, _)| known(table)) {
        return ops.clone();
    }
    let mut kept = BatchOps::new();
    for (table, op) in ops.iter().filter(|(table, _)| known(*table)) {
        match op {
            Op::Put { key, value, until } => kept.put_until(table, key, value, until),
            Op::Merge { key, operand } => kept.merge(table, key, operand),
            Op::Erase { key } => kept.erase(table, key),
            Op::RangeErase { start, end } => kept.range_erase(table, start, end),
        }
    }
    kept
}

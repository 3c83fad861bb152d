//! Recovers the commits that are in logs and not in files yet, as files of level 0. It does not know the manifest beyond the
//! file set that was read from it.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::files::listing::ListedFile;
use crate::files::output::{NewFiles, Place};
use crate::log::record::{KnownEnd, LogError, Previous};
use crate::log::wal::{LogReader, UsedLog, chain, oldest_is_missing};
use crate::manifest::{FileSet, TableId};
use crate::memtable::set::MemSet;
use crate::write::batch::{BatchOps, Op};
use crate::write::flush;
use crate::write::writer::{apply, log_path};
use os::sync::Arc;
use os::{Access, Disk};
use sst::Version;
use std::ops::Range;
use std::path::Path;

/// What was found in the logs.
pub struct Recovered {
    /// Files with the recovered rows, for level 0.
    pub files: NewFiles,
    /// The version of the newest commit; 0 if there was none.
    pub newest: Version,
    /// The last log, which the next log continues.
    pub previous: Option<Previous>,
    /// How many logs were read.
    pub logs: u64,
    /// How many commits were in them.
    pub commits: u64,
}

/// Reads those logs among the `listed` files of `directory` whose rows are not in files yet, from the oldest to the newest, and writes
/// files with their rows to `place`, which is on the same disk.
///
/// Rows are written to files of level 0 when they fill half of the write buffer, so that memory does not grow with the length
/// of a log.
///
/// # Errors
///
/// A log that is needed is missing or corrupt; what the disk refuses.
pub fn replay(core: &Arc<Core>, directory: &Path, listed: &[ListedFile], place: &Place) -> Result<Recovered> {
    let (disk, files) = (&*place.disk, &core.views.newest().files);
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
    let mut recovered = Recovered {
        files: NewFiles::none(place),
        newest: Version(0),
        previous: None,
        logs: chain.len() as u64,
        commits: 0,
    };
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
        let mut memory = MemSet::new(number, Arc::default());
        while let Some(commit) = reader.next_commit()? {
            let (version, ops) = (commit.version, commit.ops);
            if version <= recovered.newest {
                let why = format!("commit {} comes after commit {}", version.0, recovered.newest.0);
                return Err(LogError::corrupt(&path, commit.offset, why).into());
            }
            recovered.newest = version;
            recovered.commits += 1;
            memory.note_commit(version, 0);
            apply(&memory, version, &known_tables(ops, files), 0);
            if memory.used_bytes() > core.env.options.write_buffer_bytes / 2 {
                recovered.files.append(flush::write_files_to(core, &memory, &core.views.boundaries(), place)?);
                memory = MemSet::new(number, Arc::default());
            }
        }
        let is_short = named_end.is_some_and(|end| reader.end() < end.at);
        if is_short {
            // It is the log before the newest one, and was not durable when the newest one began.
            check_never_synced(disk, &path, reader.end(), &log_path(directory, chain[i + 1].number))?;
        }
        rewrite_tail(disk, &path, reader.proven_end()..reader.end())?;
        recovered.previous = Some(Previous { number, end: KnownEnd::durable(reader.end()) });
        recovered.files.append(flush::write_files_to(core, &memory, &core.views.boundaries(), place)?);
        if is_short {
            // The commits of the newest log come after commits that are lost. The next log continues this one.
            break;
        }
    }
    Ok(recovered)
}

/// Where the first log of `chain` ended, as the second one says.
fn named_end(chain: &[UsedLog]) -> Option<KnownEnd> {
    let [log, next, later @ ..] = chain else { return None };
    let end = next.previous.filter(|previous| previous.number == log.number)?.end;
    // A log ends only when it is durable that it has begun, and then the log before it is durable.
    Some(KnownEnd { is_durable: end.is_durable || !later.is_empty(), ..end })
}

/// Checks that nothing proves that log `next` was ever synced, and with it the log before it. That one, at `path`, ends at `end`, before
/// the place where `next` says that it ended.
fn check_never_synced(disk: &dyn Disk, path: &Path, end: u64, next: &Path) -> Result<()> {
    match LogReader::open(disk, next, None)?.proof_of_sync()? {
        None => Ok(()),
        Some(proof) => {
            let why = format!("the log ends too early: in {}, {proof}", next.display());
            Err(LogError::corrupt(path, end, why).into())
        }
    }
}

/// How many bytes [`rewrite_tail`] copies at once.
const REWRITE_BYTES: u64 = 1 << 20;

/// Cuts a log off at `tail.end` and makes the rest durable, because the next log will say that it is.
///
/// Nothing proves that the `tail` is durable. If an earlier process failed to sync it, the system may show it and yet never
/// write it, and a sync would succeed without saving it. So the tail is written again before the sync.
fn rewrite_tail(disk: &dyn Disk, path: &Path, tail: Range<u64>) -> Result<()> {
    let io = |action| move |error| Error::io(action, path, error);
    let file = disk.open(path, Access::Write).map_err(io("open"))?;
    file.set_len(tail.end).map_err(io("cut"))?;
    let mut bytes = vec![0; REWRITE_BYTES.min(tail.end - tail.start) as usize];
    let mut at = tail.start;
    while at < tail.end {
        let most = (tail.end - at).min(REWRITE_BYTES) as usize;
        let read = file.read_at(&mut bytes[..most], at).map_err(io("read"))?;
        if read == 0 {
            return Err(LogError::corrupt(path, at, "the file became shorter while it was recovered").into());
        }
        file.write_at(&bytes[..read], at).map_err(io("write"))?;
        at += read as u64;
    }
    file.sync().map_err(io("sync"))
}

/// The ops on tables that still exist.
fn known_tables(ops: &BatchOps, files: &FileSet) -> BatchOps {
    let known = |table: u32| files.tables.contains_key(&TableId(table));
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

//! Recovers the commits that are in logs and not in files yet, as files of level 0. It does not know the manifest beyond the
//! file set that was read from it.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::files::listing::ListedFile;
use crate::files::output::NewFiles;
use crate::log::record::{LogError, Previous};
use crate::log::wal::LogReader;
use crate::manifest::{FileSet, TableId};
use crate::memtable::set::MemSet;
use crate::write::batch::{BatchOps, Op};
use crate::write::flush;
use crate::write::writer::{apply, log_path};
use os::sync::Arc;
use os::{Access, Machine};
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

/// Reads the logs among the `listed` files whose rows are not in files yet, from the oldest to the newest.
///
/// Rows are written to files of level 0 when they fill half of the write buffer, so that memory does not grow with the length
/// of a log.
///
/// # Errors
///
/// A log that is needed is missing or corrupt; what the disk refuses.
pub fn replay(core: &Arc<Core>, listed: &[ListedFile]) -> Result<Recovered> {
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
        // The next log says where this one ended.
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
                recovered.files.append(flush::write_files(core, &memory)?);
                memory = MemSet::new(number, Arc::default());
            }
        }
        rewrite_tail(machine, &path, reader.proven_end()..reader.end())?;
        recovered.previous = Some(Previous { number, end: reader.end() });
        recovered.files.append(flush::write_files(core, &memory)?);
    }
    Ok(recovered)
}

/// The logs that may hold commits. The others never held any: their creation was not finished, or it failed, so that the next
/// log does not continue them.
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

/// How many bytes [`rewrite_tail`] copies at once.
const REWRITE_BYTES: u64 = 1 << 20;

/// Cuts a log off at `tail.end` and makes the rest durable, because the next log will say that it is.
///
/// Nothing proves that the `tail` is durable. If an earlier process failed to sync it, the system may show it and yet never
/// write it, and a sync would succeed without saving it. So the tail is written again before the sync.
fn rewrite_tail(machine: &Machine, path: &Path, tail: Range<u64>) -> Result<()> {
    let io = |action| move |error| Error::io(action, path, error);
    let file = machine.disk.open(path, Access::Write).map_err(io("open"))?;
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

/// Where log `next` says that log `number` ended, if `next` continues it.
fn named_end(machine: &Machine, directory: &Path, next: u64, number: u64) -> Result<Option<u64>> {
    let reader = LogReader::open(&*machine.disk, &log_path(directory, next), None)?;
    let previous = reader.header().and_then(|header| header.previous);
    Ok(previous.filter(|previous| previous.number == number).map(|previous| previous.end))
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

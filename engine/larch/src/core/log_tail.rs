//! Tails the logs of a database while its writer appends to them, and applies the commits to memory sets like those
//! of the writer. This module does not know files, or which commits readers see.
//!
//! ```text
//!   logs     17 ─────────▶ 23 ─────────▶ 31 ──…     each names the log that it continues, and where that one has ended
//!            read          read up to here
//!   memory   set of 17     set of 23
//! ```
//!
//! Versions are consecutive: one that no log has belongs to a change of tables, which is in the manifest.
//!
//! A tail is used by one thread at a time.

use super::writer::{apply, log_path};
use crate::base::ops::BatchOps;
use crate::base::record::{KnownEnd, LogError, Previous};
use crate::log::{LogReader, chain, ends_too_early, named_end};
use crate::memtable::row_memory::RowMemory;
use crate::memtable::set::MemSet;
use os::Disk;
use os::sync::Arc;
use sst::Version;
use std::io::ErrorKind;
use std::path::Path;

/// The logs of a writer, and how far they were read.
#[derive(Debug)]
pub struct LogTail {
    /// The logs without gaps, oldest first.
    logs: Vec<TailedLog>,
    /// The log that is being read, as an index of `logs`.
    at: usize,
    /// The version of the newest commit that was applied.
    newest: Version,
    /// A commit that was read but must not be applied yet.
    held: Option<(Version, BatchOps)>,
    rows: Arc<RowMemory>,
}

#[derive(Debug)]
struct TailedLog {
    number: u64,
    previous: Option<Previous>,
    reader: LogReader,
    memory: Arc<MemSet>,
    /// Whether this log was found to end before the end that the next log states for it.
    is_short: bool,
}

impl TailedLog {
    /// `end` is the end that the next log states for this log, if there is a next log.
    fn open(
        disk: &dyn Disk,
        directory: &Path,
        (number, end): (u64, Option<KnownEnd>),
        rows: &Arc<RowMemory>,
    ) -> Result<Self, LogError> {
        let reader = LogReader::open(disk, &log_path(directory, number), end)?;
        let memory = Arc::new(MemSet::new(number, rows.clone()).with_filter());
        Ok(Self { number, previous: reader.previous(), reader, memory, is_short: false })
    }
}

/// Whether a log could be linked to the logs that are already followed. Two logs are linked if the later one names
/// the earlier one as its previous log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    /// The log was linked, or it has nothing to read yet.
    Yes,
    /// A log between the linked logs and this log was removed, because its rows are in files.
    Gap,
}

impl LogTail {
    /// Opens the logs whose rows are not in files. `numbers` are the numbers of all logs, in ascending order;
    /// `oldest` is, according to the manifest, the first log whose rows are not in files. Returns `None` if that log
    /// does not exist.
    ///
    /// # Errors
    ///
    /// Fails if a log cannot be opened or read, or has lost durable commits. Also fails if the writer removes a log
    /// meanwhile because its rows have reached files.
    pub fn open(
        disk: &dyn Disk,
        directory: &Path,
        (numbers, oldest): (&[u64], u64),
        rows: &Arc<RowMemory>,
    ) -> Result<Option<Self>, LogError> {
        let needed: Vec<u64> = numbers.iter().copied().filter(|&number| number >= oldest).collect();
        let used = chain(&needed, oldest, |number| LogReader::open(disk, &log_path(directory, number), None))?;
        if oldest > 0 && used.first().map(|log| log.number) != Some(oldest) {
            return Ok(None);
        }
        let numbered = used.iter().enumerate().map(|(at, log)| (log.number, named_end(&used[at..])));
        let logs = numbered.map(|log| TailedLog::open(disk, directory, log, rows));
        let logs = logs.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Self { logs, at: 0, newest: Version(0), held: None, rows: rows.clone() }))
    }

    /// Links log `number`, to which the writer appends now, and all logs before it that are not linked yet.
    ///
    /// # Errors
    ///
    /// Fails if a log cannot be read.
    pub fn link(&mut self, disk: &dyn Disk, directory: &Path, number: u64) -> Result<Linked, LogError> {
        let last = self.logs.last().map_or(0, |log| log.number);
        let mut found: Vec<TailedLog> = Vec::new();
        let mut next = number;
        while next > last {
            let log = match TailedLog::open(disk, directory, (next, None), &self.rows) {
                Ok(log) => log,
                Err(error) if is_gone(&error) => return Ok(Linked::Gap),
                Err(error) => return Err(error),
            };
            let Some(previous) = log.previous else {
                // This log names no previous log. Either its beginning is still being written, or another writer has
                // begun it as its first log.
                return Ok(if log.reader.has_begun() { Linked::Gap } else { Linked::Yes });
            };
            found.push(log);
            next = previous.number;
        }
        // If the first of the found logs names a linked log that is not the last one, the linked logs after that one
        // have never begun. They have no commits, and are dropped.
        let unused = self.logs.iter().rev().take_while(|log| !found.is_empty() && log.number > next).count();
        let kept = self.logs.len() - unused;
        let is_linked = found.is_empty() || kept.checked_sub(1).is_some_and(|last| self.logs[last].number == next);
        if !is_linked || self.logs[kept..].iter().any(|log| !log.memory.is_empty()) {
            return Ok(Linked::Gap);
        }
        self.logs.truncate(kept);
        self.at = self.at.min(kept.saturating_sub(1));
        if !found.is_empty() {
            // The former last log has ended. The newly linked logs may prove that more of it was durable, so check
            // that again.
            self.logs.iter_mut().for_each(|log| log.is_short = false);
        }
        self.logs.extend(found.into_iter().rev());
        Ok(Linked::Yes)
    }

    /// Links the newest log that has begun. `numbers` are the numbers of all logs, in ascending order.
    ///
    /// # Errors
    ///
    /// Fails if a log cannot be read.
    pub fn link_newest(&mut self, disk: &dyn Disk, directory: &Path, numbers: &[u64]) -> Result<Linked, LogError> {
        let last = self.logs.last().map_or(0, |log| log.number);
        for &number in numbers.iter().rev().take_while(|number| **number > last) {
            match LogReader::open(disk, &log_path(directory, number), None) {
                Ok(log) if log.has_begun() => return self.link(disk, directory, number),
                Ok(_) => {}
                // Removed meanwhile: the log had not begun, or its rows have reached files.
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Linked::Yes)
    }

    /// Looks at the current lengths of the logs. Until the next call, nothing beyond these lengths is read.
    ///
    /// # Errors
    ///
    /// Fails if a log became shorter, or if its length cannot be read.
    pub fn look_again(&mut self) -> Result<(), LogError> {
        self.logs.iter_mut().skip(self.at).try_for_each(|log| log.reader.look_again())
    }

    /// Applies commits up to version `most` to the memory sets, in version order. Versions that no log has form a
    /// gap. A commit after a gap is applied only if all versions of the gap are at most `known` and thus in files,
    /// or if `may_skip` is true: the caller has read the manifest after the commit was in its log, so it has the
    /// table changes of the gap. Returns the newest applied version; the memory sets have every commit of the logs
    /// up to it.
    ///
    /// # Errors
    ///
    /// Fails if a log cannot be read, or if a log has lost durable commits.
    pub fn apply(&mut self, most: Version, known: Version, may_skip: bool) -> Result<Version, LogError> {
        let may_apply =
            |newest: Version, version: Version| version <= most && (may_skip || version.0 <= newest.max(known).0 + 1);
        while let Some(log) = self.logs.get_mut(self.at) {
            if let Some((version, ops)) = self.held.take_if(|(version, _)| may_apply(self.newest, *version)) {
                put(&log.memory, version, &ops);
                self.newest = version;
            }
            if self.held.is_some() {
                break;
            }
            match log.reader.next_commit()? {
                Some(commit) if may_apply(self.newest, commit.version) => {
                    put(&log.memory, commit.version, commit.ops);
                    self.newest = commit.version;
                    continue;
                }
                Some(commit) => {
                    self.held = Some((commit.version, commit.ops.clone()));
                    break;
                }
                None => {}
            }
            let end = log.reader.end();
            match self.logs.get(self.at + 1).and_then(|next| next.previous) {
                Some(previous) if end >= previous.end.at => self.at += 1,
                // This log had all its commits when the next log began, and its length was read after that. So the
                // missing commits are lost, and the commits of the next log must not be shown.
                Some(_) => {
                    self.check_never_synced(end)?;
                    break;
                }
                None => break,
            }
        }
        Ok(self.newest)
    }

    /// The log being read ends at `end`, before the end that the next log states. Checks that nothing proves that
    /// the missing part was ever synced. Without such a proof, the machine must have lost power: the missing commits
    /// are lost, and so are those of the next log.
    ///
    /// # Errors
    ///
    /// Fails if a proof was found, or if the next log cannot be read.
    fn check_never_synced(&mut self, end: u64) -> Result<(), LogError> {
        let [log, next, ..] = &mut self.logs[self.at..] else { return Ok(()) };
        if log.is_short {
            return Ok(());
        }
        if let Some(proof) = next.reader.proof_of_sync()? {
            return Err(ends_too_early(log.reader.path(), end, next.reader.path(), &proof));
        }
        log.is_short = true;
        Ok(())
    }

    /// Drops the logs before `oldest`, whose rows are in files. Returns false if log `oldest` is needed but not
    /// linked.
    pub fn forget_before(&mut self, oldest: u64) -> bool {
        let gone = self.logs.iter().take_while(|log| log.number < oldest).count();
        if self.held.is_some() && gone > self.at {
            self.held = None;
        }
        self.logs.drain(..gone);
        self.at = self.at.saturating_sub(gone);
        self.logs.first().is_some_and(|log| log.number == oldest) || oldest == 0
    }

    /// The memory sets, newest first.
    pub fn memory(&self) -> Vec<Arc<MemSet>> {
        self.logs.iter().rev().map(|log| log.memory.clone()).collect()
    }
}

/// Whether the error says that the log does not exist.
pub fn is_gone(error: &LogError) -> bool {
    matches!(error, LogError::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

fn put(memory: &MemSet, version: Version, ops: &BatchOps) {
    memory.note_commit(version, 0);
    apply(memory, version, ops.into(), 0);
}

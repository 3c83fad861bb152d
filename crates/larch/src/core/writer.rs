//! The log and the memtables that take commits, and the next version. It knows no SSTs and no readers, and waits for
//! nothing.
//!
//! One thread at a time puts a commit into the log, so that version order and log order are the same. Any number of
//! threads applies commits to the memtables meanwhile.

use crate::base::ops::{BatchOps, Op};
use crate::base::record::{EmptyLog, KnownEnd, LogError, LogFile, Previous};
use crate::base::table::TableId;
use crate::conflicts::signature::{LatestKeys, Signature};
use crate::log::{LogWriter, SyncPoint};
use crate::memtable::set::MemSet;
use crate::memtable::{Memtable, Rows};
use os::Machine;
use os::sync::Arc;
use sst::{RowKind, Version};
use std::path::{Path, PathBuf};

/// Takes commits: the log and the memtables that are not frozen.
#[derive(Debug)]
pub struct Writer {
    log: LogWriter,
    sync: Arc<SyncPoint>,
    memory: Arc<MemSet>,
    next_version: Version,
    latest_keys: LatestKeys,
    /// Whether another log may say where this one ends, because a rotation failed. Then no more commits may go to this
    /// log.
    is_ended: bool,
    /// Whether an earlier process has left this log. Then the header of the next log has to name this log: a
    /// recovery may have dropped commits of a log between the two, and only a header says that.
    is_left: bool,
}

/// The end of what was appended to a log, with the records that are no commits. It can be made durable without the
/// writer.
#[derive(Debug)]
pub struct Unsynced {
    sync: Arc<SyncPoint>,
    log: Arc<LogFile>,
    end: u64,
}

impl Unsynced {
    /// Makes everything up to the end durable. All waiting threads share one sync.
    ///
    /// # Errors
    ///
    /// The sync failed, now or before. Then it is unknown which commits are durable, and the log takes no more.
    pub fn sync(self) -> Result<(), LogError> {
        self.sync.sync_log(&self.log, self.end)
    }
}

/// Why a commit is not in the log.
#[derive(Debug)]
pub enum NotAppended {
    /// The log could not take it, and is as it was before.
    Refused(LogError),
    /// An earlier sync failed, so that the log takes no more.
    SyncFailed(LogError),
}

/// The file name of log `number`.
pub fn log_name(number: u64) -> String {
    format!("{number:08}.log")
}

/// The path of log `number`.
pub fn log_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(log_name(number))
}

/// A log id that no other log has.
fn log_id(machine: &Machine) -> u64 {
    machine.random.next_u64() | 1
}

/// The file of a log that has not begun.
#[derive(Debug)]
pub struct NextLog {
    number: u64,
    file: NextFile,
}

#[derive(Debug)]
enum NextFile {
    /// The header will name the previous log, which has to be durable by then. All releases read such a header.
    Empty { file: EmptyLog, log_id: u64 },
    /// The first record will name the previous log, which need not be durable.
    Prepared(LogWriter),
}

impl NextLog {
    /// Creates the file of log `number`.
    ///
    /// # Errors
    ///
    /// The file could not be created.
    pub fn create(machine: &Machine, directory: &Path, number: u64) -> Result<Self, LogError> {
        let file = EmptyLog::create(&*machine.disk, &log_path(directory, number))?;
        Ok(Self { number, file: NextFile::Empty { file, log_id: log_id(machine) } })
    }

    /// The number of the log.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Asks for room for `bytes` of the log, see [`EmptyLog::allocate_ahead`]. Nothing was written yet.
    pub fn allocate_ahead(&mut self, bytes: u64) {
        if let NextFile::Empty { file, .. } = &mut self.file {
            file.allocate_ahead(bytes);
        }
    }

    /// Writes a header, so that the log can begin before the one before it is durable.
    ///
    /// # Errors
    ///
    /// The header could not be written.
    pub fn prepare(self) -> Result<Self, LogError> {
        let number = self.number;
        let file = match self.file {
            NextFile::Empty { file, log_id } => NextFile::Prepared(LogWriter::prepare(file, log_id, number)?),
            prepared @ NextFile::Prepared(_) => prepared,
        };
        Ok(Self { number, file })
    }

    /// Whether it can begin before the log before it is durable.
    pub fn is_prepared(&self) -> bool {
        matches!(self.file, NextFile::Prepared(_))
    }
}

impl Writer {
    /// A writer that begins the log with the number of `memory`, whose commits `sync` makes durable. The first commit
    /// gets `next_version`. `previous` is durable.
    ///
    /// # Errors
    ///
    /// The log could not be created.
    pub fn create(
        machine: &Machine,
        directory: &Path,
        memory: Arc<MemSet>,
        previous: Option<Previous>,
        sync: Arc<SyncPoint>,
        next_version: Version,
    ) -> Result<Self, LogError> {
        let file = EmptyLog::create(&*machine.disk, &log_path(directory, memory.log))?;
        let log = LogWriter::begin(file, log_id(machine), memory.log, previous)?;
        sync.note_appended(Version(next_version.0 - 1));
        Ok(Self::new(log, memory, sync, next_version))
    }

    /// A writer without a log of its own. `memory` has the commits of the log with its number. An earlier process
    /// has left this log, which ends at `end` and is durable. The first commit begins a new log, and gets
    /// `next_version`.
    ///
    /// # Errors
    ///
    /// The log that is left could not be opened.
    pub fn without_log(
        machine: &Machine,
        directory: &Path,
        (memory, end): (Arc<MemSet>, u64),
        sync: Arc<SyncPoint>,
        next_version: Version,
    ) -> Result<Self, LogError> {
        let log = LogWriter::ended(&*machine.disk, &log_path(directory, memory.log), end)?;
        sync.note_appended(Version(next_version.0 - 1));
        Ok(Self { is_ended: true, is_left: true, ..Self::new(log, memory, sync, next_version) })
    }

    fn new(log: LogWriter, memory: Arc<MemSet>, sync: Arc<SyncPoint>, next_version: Version) -> Self {
        sync.continue_in(log.file());
        Self { log, sync, memory, next_version, latest_keys: LatestKeys::default(), is_ended: false, is_left: false }
    }

    /// Ends this log, and returns a writer that begins the `next` one with the memtables `memory`.
    ///
    /// # Errors
    ///
    /// See [`NotAppended`]: the next log could not begin. This log may take no more commits, because a crash may
    /// leave a next log that says where this log ended.
    pub fn continue_in(&mut self, next: NextLog, memory: Arc<MemSet>) -> Result<Self, NotAppended> {
        assert_eq!(next.number, memory.log, "memtables and their log have one number");
        // The end of this log is not durable yet. If the next log and what it says about this end is lost, a commit
        // that failed must not come back.
        self.log.mend().map_err(|error| self.not_appended(error))?;
        self.is_ended = true;
        let before = self.log.file();
        let begun = match next.file {
            NextFile::Empty { file, log_id } => {
                assert!(before.synced_end() >= self.log.end(), "a header names a log that is durable");
                let previous = Previous { number: self.memory.log, end: KnownEnd::durable(self.log.end()) };
                LogWriter::begin(file, log_id, next.number, Some(previous))
            }
            NextFile::Prepared(mut log) => {
                assert!(self.log.is_begin_durable(), "at most one log says what another one has to prove");
                log.follow(self.memory.log, before.clone()).map(|()| log)
            }
        };
        let log = begun.map_err(|error| self.not_appended(error))?;
        Ok(Self::new(log, memory, self.sync.clone(), self.next_version))
    }

    /// What the latest commits to this log wrote.
    pub fn latest_keys(&self) -> &LatestKeys {
        &self.latest_keys
    }

    /// Puts a commit, which writes the keys of `written`, into the log, reserves `bytes` of the memtables for it, and
    /// returns its version. The caller [applies](apply) it to these memtables. It is not durable yet.
    ///
    /// # Errors
    ///
    /// See [`NotAppended`]. Then the log does not have the commit.
    pub fn append(&mut self, ops: &BatchOps, bytes: u64, written: Signature) -> Result<Version, NotAppended> {
        let version = self.next_version;
        self.log.append_commit(version, ops).map_err(|error| self.not_appended(error))?;
        self.memory.note_commit(version, bytes);
        self.latest_keys.note(version, written);
        self.take_version();
        Ok(version)
    }

    /// What `error` means for the log.
    fn not_appended(&self, error: LogError) -> NotAppended {
        match self.log.file().check() {
            Ok(()) => NotAppended::Refused(error),
            Err(failed_sync) => NotAppended::SyncFailed(failed_sync),
        }
    }

    /// What has to be synced so that everything in the log so far is durable.
    pub fn unsynced(&self) -> Unsynced {
        Unsynced { sync: self.sync.clone(), log: self.log.file().clone(), end: self.log.end() }
    }

    /// Where the next record of the log will start.
    pub fn log_end(&self) -> u64 {
        self.log.end()
    }

    /// The version of the next commit.
    pub fn next_version(&self) -> Version {
        self.next_version
    }

    /// The version of the last commit.
    pub fn last_version(&self) -> Version {
        Version(self.next_version.0 - 1)
    }

    /// Uses up the next version. A change that does not go through the log calls it once it is installed.
    pub fn take_version(&mut self) {
        self.sync.note_appended(self.next_version);
        self.next_version = Version(self.next_version.0 + 1);
    }

    /// Whether `next` can follow before everything in this log is durable.
    pub fn can_continue_in(&self, next: &NextLog) -> bool {
        next.is_prepared() && self.log.is_begin_durable()
    }

    /// Whether the header of the next log has to name this one, in every release.
    pub fn is_named_by_header(&self) -> bool {
        self.is_left
    }

    /// Whether the log was ended, so that commits need a new one.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Once the previous log is durable, notes this fact in this log, unless a commit has already noted it. Without
    /// the note, damage of the previous log would look like the result of a crash.
    ///
    /// # Errors
    ///
    /// The note could not be written. No commit is lost.
    pub fn prove_begin(&mut self) -> Result<(), LogError> {
        if self.is_ended { Ok(()) } else { self.log.prove_begin() }
    }

    /// Notes in the log how much of it is durable, when no more commits will come, and gives back the room that it does
    /// not use.
    ///
    /// # Errors
    ///
    /// The note could not be written, or the room not given back. No commit is lost.
    pub fn append_proof(&mut self) -> Result<(), LogError> {
        if !self.is_ended {
            self.log.append_proof()?;
        }
        self.log.trim()
    }

    /// Releases buffers that only writes need.
    pub fn give_back(&mut self) {
        self.log.give_back();
    }

    /// Memory of the buffer of the log, in bytes.
    pub fn buffer_bytes(&self) -> u64 {
        self.log.memory_bytes()
    }

    /// The memtables that take writes.
    pub fn memory(&self) -> &Arc<MemSet> {
        &self.memory
    }
}

/// Puts a commit into memtables, for which `bytes` of memory were reserved when it was appended to the log.
pub fn apply(memory: &MemSet, version: Version, ops: &BatchOps, bytes: u64) {
    let mut last: Option<(TableId, &Memtable, Rows<'_>)> = None;
    for (table, op) in ops.iter() {
        let table = TableId(table);
        let (_, memtable, rows) = match &mut last {
            Some(last) if last.0 == table => last,
            _ => {
                let memtable = memory.table_or_new(table);
                last.insert((table, memtable, memtable.batch()))
            }
        };
        match op {
            Op::Put { key, value } => rows.apply(key, version, RowKind::Put, value),
            Op::Erase { key } => rows.apply(key, version, RowKind::Erase, &[]),
            Op::RangeErase { start, end } => memory.note_range_erases(memtable.remove_range(start, end, version)),
        }
    }
    memory.note_applied(bytes);
}

#[cfg(test)]
mod tests;

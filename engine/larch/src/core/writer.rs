//! The log and the memtables that commits go to, and the version of the next commit. This module does not know SSTs
//! or readers, and waits for nothing.
//!
//! Only one thread at a time appends to the log, so versions are in log order. Any number of threads may apply their
//! commits to the memtables meanwhile.

use crate::base::ops::{CommitOps, Op};
use crate::base::record::{EmptyLog, Header, KnownEnd, LogError, LogFile, LogKind, Previous};
use crate::base::table::TableId;
use crate::conflicts::signature::{LatestKeys, Signature};
use crate::log::{LogWriter, SyncPoint};
use crate::memtable::set::MemSet;
use crate::memtable::{Memtable, Rows};
use os::Machine;
use os::sync::Arc;
use sst::{RowKind, Version};
use std::path::{Path, PathBuf};

/// Takes commits. Owns the current log and the memtables that are not frozen.
#[derive(Debug)]
pub struct Writer {
    log: LogWriter,
    sync: Arc<SyncPoint>,
    memory: Arc<MemSet>,
    next_version: Version,
    latest_keys: LatestKeys,
    /// Set if a rotation failed after a next log may have stated where this log ends. This log must then not get any
    /// more commits.
    is_ended: bool,
    /// Whether an earlier process wrote this log. If so, the header of the next log has to name it: a recovery may
    /// have dropped the commits of a log in between, and only a header can say so.
    is_left: bool,
}

/// The point up to which a log should be made durable, with all records before it and not only commits. Syncing does
/// not take the writer's lock.
#[derive(Debug)]
pub struct Unsynced {
    sync: Arc<SyncPoint>,
    log: Arc<LogFile>,
    end: u64,
}

impl Unsynced {
    /// Makes the log durable up to this point. Threads that wait for a sync share one.
    ///
    /// # Errors
    ///
    /// Fails if the sync fails or an earlier one has. It is then unknown which commits are durable, and the log
    /// takes no more commits.
    pub fn sync(self) -> Result<(), LogError> {
        self.sync.sync_log(&self.log, self.end)
    }
}

/// Why a commit is not in the log.
#[derive(Debug)]
pub enum NotAppended {
    /// The commit could not be appended, and the log is as it was before.
    Refused(LogError),
    /// An earlier sync has failed, so the log takes no more commits.
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

/// The header of log `number`, which names no other log and has these feature bits.
fn new_header(machine: &Machine, number: u64, features: u32) -> Header {
    // No other log has the same random id.
    let header = Header::new(LogKind::WriteAhead, machine.random.next_u64() | 1, number, None);
    Header { features, ..header }
}

/// The file of the next log, before it takes commits.
#[derive(Debug)]
pub struct NextLog {
    number: u64,
    features: u32,
    file: NextFile,
}

#[derive(Debug)]
enum NextFile {
    /// The file has no header yet. The header will name the previous log, which has to be durable by then. All
    /// releases can read such a header.
    Empty { file: EmptyLog, header: Header },
    /// The file has a header. The first record will name the previous log, which need not be durable by then.
    Prepared(LogWriter),
}

impl NextLog {
    /// Creates the file of log `number`, whose header will have the feature bits `features`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be created.
    pub fn create(machine: &Machine, directory: &Path, number: u64, features: u32) -> Result<Self, LogError> {
        let file = EmptyLog::create(&*machine.disk, &log_path(directory, number))?;
        let header = new_header(machine, number, features);
        Ok(Self { number, features, file: NextFile::Empty { file, header } })
    }

    /// The number of the log.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The feature bits with which its file was created.
    pub fn features(&self) -> u32 {
        self.features
    }

    /// Allocates disk space for `bytes` of the log, see [`EmptyLog::allocate_ahead`]. Does nothing if the log
    /// already has a header.
    pub fn allocate_ahead(&mut self, bytes: u64) {
        if let NextFile::Empty { file, .. } = &mut self.file {
            file.allocate_ahead(bytes);
        }
    }

    /// Writes the kind of header that lets this log begin before the previous log is durable.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be written.
    pub fn prepare(self) -> Result<Self, LogError> {
        let Self { number, features, .. } = self;
        let file = match self.file {
            NextFile::Empty { file, header } => NextFile::Prepared(LogWriter::prepare(file, header)?),
            prepared @ NextFile::Prepared(_) => prepared,
        };
        Ok(Self { number, features, file })
    }

    /// Whether this log can begin before the previous log is durable.
    pub fn is_prepared(&self) -> bool {
        matches!(self.file, NextFile::Prepared(_))
    }
}

impl Writer {
    /// A writer that creates and begins the log with the number of `memory`. `sync` makes its commits durable. The
    /// first commit gets `next_version`. The log `previous` must be durable. Release `compat` must be able to read the
    /// log.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be created.
    pub fn create(
        (machine, directory, features): (&Machine, &Path, u32),
        memory: Arc<MemSet>,
        previous: Option<Previous>,
        sync: Arc<SyncPoint>,
        next_version: Version,
    ) -> Result<Self, LogError> {
        let file = EmptyLog::create(&*machine.disk, &log_path(directory, memory.log))?;
        let log = LogWriter::begin(file, &Header { previous, ..new_header(machine, memory.log, features) })?;
        sync.note_appended(Version(next_version.0 - 1));
        Ok(Self::new(log, memory, sync, next_version))
    }

    /// A writer without a log of its own yet. `memory` has the commits of the log with its number, which an earlier
    /// process left; that log is durable and ends at `end`. The first commit begins a new log and gets
    /// `next_version`.
    ///
    /// # Errors
    ///
    /// Fails if that log cannot be opened.
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

    /// Ends this log, and returns a writer for the log `next`, whose commits go to `memory`.
    ///
    /// # Errors
    ///
    /// Fails if the next log cannot begin, see [`NotAppended`]. This log then takes no more commits, because a crash
    /// may leave a next log that states where this one ended.
    pub fn continue_in(&mut self, next: NextLog, memory: Arc<MemSet>) -> Result<Self, NotAppended> {
        assert_eq!(next.number, memory.log, "memtables and their log have one number");
        // A failed commit may have left a part of its record in this log. Remove it now, because the end of this log
        // is not durable yet: otherwise a crash that loses the next log could bring this part back.
        self.log.mend().map_err(|error| self.not_appended(error))?;
        self.is_ended = true;
        let before = self.log.file();
        let begun = match next.file {
            NextFile::Empty { file, header } => {
                assert!(before.synced_end() >= self.log.end(), "a header names a log that is durable");
                let previous = Previous { number: self.memory.log, end: KnownEnd::durable(self.log.end()) };
                LogWriter::begin(file, &Header { previous: Some(previous), ..header })
            }
            NextFile::Prepared(mut log) => {
                assert!(self.log.is_begin_durable(), "at most one log says what another one has to prove");
                log.follow(self.memory.log, before.clone()).map(|()| log)
            }
        };
        let log = begun.map_err(|error| self.not_appended(error))?;
        Ok(Self::new(log, memory, self.sync.clone(), self.next_version))
    }

    /// The keys that the latest commits to this log wrote.
    pub fn latest_keys(&self) -> &LatestKeys {
        &self.latest_keys
    }

    /// Appends a commit to the log, reserves `bytes` of the memtables for it, and returns its version. `written` is
    /// the signature of the keys that it writes. The caller then has to [apply](apply) the commit to the memtables.
    /// The commit is not durable yet.
    ///
    /// # Errors
    ///
    /// Fails as [`NotAppended`] describes. After an error, the log does not have the commit.
    pub fn append(&mut self, ops: CommitOps<'_>, bytes: u64, written: Signature) -> Result<Version, NotAppended> {
        let version = self.next_version;
        self.log.append_commit(version, ops).map_err(|error| self.not_appended(error))?;
        self.memory.note_commit(version, bytes);
        self.latest_keys.note(version, written);
        self.take_version();
        Ok(version)
    }

    /// Tells whether only this commit was refused with `error`, or an earlier sync has failed.
    fn not_appended(&self, error: LogError) -> NotAppended {
        match self.log.file().check() {
            Ok(()) => NotAppended::Refused(error),
            Err(failed_sync) => NotAppended::SyncFailed(failed_sync),
        }
    }

    /// The current end of the log, as the point up to which it should be made durable.
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

    /// Uses up a version without a commit: a change of tables that bypasses the log, such as an import, calls this
    /// after its install.
    pub fn take_version(&mut self) {
        self.sync.note_appended(self.next_version);
        self.next_version = Version(self.next_version.0 + 1);
    }

    /// Whether `next` can begin before everything in this log is durable.
    pub fn can_continue_in(&self, next: &NextLog) -> bool {
        next.is_prepared() && self.log.is_begin_durable()
    }

    /// Whether the header of the next log has to name this log, even where its first record could.
    pub fn is_named_by_header(&self) -> bool {
        self.is_left
    }

    /// Whether this log has ended, so that commits need a new one.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Once the previous log is durable, writes a record to this log that proves it, unless a commit's record
    /// already does. Without such a proof, damage in the previous log would look like the result of a crash.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be written. Even then, no commit is lost.
    pub fn prove_begin(&mut self) -> Result<(), LogError> {
        if self.is_ended { Ok(()) } else { self.log.prove_begin() }
    }

    /// Writes to the log how much of it is durable, because no more commits will come. Gives back disk space that
    /// was allocated ahead and not used.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be written, or if the space cannot be given back. Even then, no commit is lost.
    pub fn append_proof(&mut self) -> Result<(), LogError> {
        if !self.is_ended {
            self.log.append_proof()?;
        }
        self.log.trim()
    }

    /// Frees the buffers that only writes need.
    pub fn give_back(&mut self) {
        self.log.give_back();
    }

    /// Memory of the buffer in which records are encoded, in bytes.
    pub fn buffer_bytes(&self) -> u64 {
        self.log.memory_bytes()
    }

    /// The memtables that commits go to.
    pub fn memory(&self) -> &Arc<MemSet> {
        &self.memory
    }
}

/// Applies a commit to the memtables. `bytes` is the memory that was reserved for it when it was appended to the
/// log.
pub fn apply(memory: &MemSet, version: Version, ops: CommitOps<'_>, bytes: u64) {
    let mut last: Option<(TableId, &Memtable, Rows<'_>)> = None;
    ops.for_each(|table, op| {
        let table = TableId(table);
        let (_, memtable, rows) = match &mut last {
            Some(last) if last.0 == table => last,
            _ => {
                let memtable = memory.table_or_new(table);
                last.insert((table, memtable, memtable.batch()))
            }
        };
        match op {
            Op::Put { key, value, until: None } => rows.apply(key, version, RowKind::Put, value),
            Op::Put { key, value, until: Some(until) } => rows.apply_until(key, version, until, value),
            Op::Merge { key, operand } => rows.merge(key, version, operand, memory.functions()),
            Op::Erase { key } => rows.apply(key, version, RowKind::Erase, &[]),
            Op::RangeErase { start, end } => memory.note_range_erases(memtable.remove_range(start, end, version)),
        }
    });
    memory.note_applied(bytes);
}

#[cfg(test)]
mod tests;

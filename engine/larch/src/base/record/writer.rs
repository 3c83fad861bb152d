//! Appends records to a new file. This module does not decide when records become durable, or on which thread.
//!
//! Invariants: `appended_end` is stored only after all bytes below it were written, and `synced_end` only after a
//! sync that began when all bytes below it were written. Both only grow. If an append fails, the file is cut back to
//! the last whole record, and the cut is made durable before the next record is written. After a failed sync, every
//! append and sync is refused. A sync of a log first makes the previous log durable, so `synced_end` is also a
//! promise about the previous log.
//!
//! Thread safety: a [`RecordWriter`] belongs to one thread. Its [`LogFile`] is shared.

use std::path::{Path, PathBuf};

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, OnceLock};
use os::{Access, Disk, File};

use super::{HEADER_BYTES, Header, LogError, RecordForm, Result};

/// If a record grows the scratch buffer beyond this, the excess is freed after the write.
const MAX_SCRATCH_BYTES: usize = 1 << 20;

/// A log file that is being written, as the threads that make it durable see it.
#[derive(Debug)]
pub struct LogFile {
    file: Arc<dyn File>,
    path: PathBuf,
    appended_end: AtomicU64,
    synced_end: AtomicU64,
    /// Held during a sync: if the disk failed during two concurrent syncs, the system would report the failure to
    /// only one of them. Holds the previous log while that may not be durable.
    syncing: Mutex<Option<Arc<LogFile>>>,
    /// The error of the first failed sync.
    failed: OnceLock<LogError>,
}

impl LogFile {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes below this offset were written, but may not be on disk yet.
    pub fn appended_end(&self) -> u64 {
        self.appended_end.load(Ordering::Acquire)
    }

    /// Everything below this offset is durable.
    pub fn synced_end(&self) -> u64 {
        self.synced_end.load(Ordering::Acquire)
    }

    /// Makes the previous log durable, and then everything appended so far to this log. Returns the durable end of
    /// this log.
    ///
    /// # Errors
    ///
    /// Fails if a sync of this log or of the previous log fails or has failed before. All later syncs and appends
    /// then fail, too: the system may have dropped the bytes that it could not write, and a second sync would not
    /// report this.
    pub fn sync(&self) -> Result<u64> {
        let mut before = self.syncing.lock();
        self.check()?;
        let fail = |error| self.failed.get_or_init(|| error).clone();
        if let Some(log) = before.as_ref().filter(|log| log.synced_end() < log.appended_end()) {
            log.sync().map_err(fail)?;
        }
        *before = None;
        let end = self.appended_end();
        self.file.sync().map_err(|error| fail(LogError::io("sync", &self.path, error)))?;
        self.synced_end.fetch_max(end, Ordering::AcqRel);
        Ok(end)
    }

    /// Checks that no sync has failed.
    ///
    /// # Errors
    ///
    /// The error of the failed sync.
    pub fn check(&self) -> Result<()> {
        match self.failed.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

/// Writes a new log file.
#[derive(Debug)]
pub struct RecordWriter {
    file: Arc<LogFile>,
    form: RecordForm,
    end: u64,
    /// The synced end in the last record. Before the first record, this is the end of the header, which is durable.
    stated_end: u64,
    scratch: Vec<u8>,
    /// Whether an append has failed, so that the file may have a part of a record after `end`.
    is_torn: bool,
    /// Whether disk space after the end of the file may have been allocated ahead.
    is_allocated_ahead: bool,
}

/// A log file whose name is durable and that has no header yet. A reader treats it as a file whose creation was not
/// finished.
#[derive(Debug)]
pub struct EmptyLog {
    file: Arc<dyn File>,
    path: PathBuf,
    is_allocated_ahead: bool,
}

impl EmptyLog {
    /// Creates the file, and makes its name durable.
    ///
    /// # Errors
    ///
    /// Fails if the file exists already, or if the directory cannot be synced.
    pub fn create(disk: &dyn Disk, path: &Path) -> Result<Self> {
        let io = |action| move |error| LogError::io(action, path, error);
        let file = disk.open(path, Access::Create).map_err(io("create"))?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        disk.sync_dir(directory).map_err(io("sync the directory of"))?;
        Ok(Self { file, path: path.to_owned(), is_allocated_ahead: false })
    }

    /// Allocates `bytes` of disk space for the log, so that appends need not allocate while the disk is busy. If the
    /// disk is full or the file system cannot do this, appends allocate as usual.
    pub fn allocate_ahead(&mut self, bytes: u64) {
        self.is_allocated_ahead = true;
        if self.file.allocate_ahead(bytes).is_err() {
            // Give back what was allocated before the error, because other files may need it: the user's quota may
            // be used up although the disk is not full.
            self.file.set_len(0).ok();
        }
    }

    /// Writes the header and makes it durable.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written or synced.
    pub fn begin(self, header: &Header) -> Result<RecordWriter> {
        let Self { file, path, is_allocated_ahead } = self;
        let io = |action, error| LogError::io(action, &path, error);
        file.write_at(&header.encode(), 0).map_err(|error| io("write the header of", error))?;
        file.sync().map_err(|error| io("sync", error))?;
        Ok(RecordWriter { is_allocated_ahead, ..RecordWriter::after_header(file, &path, RecordForm::of(header)) })
    }
}

impl RecordWriter {
    /// Creates the file with its header, and makes the header and the name durable.
    ///
    /// # Errors
    ///
    /// The errors of [`EmptyLog::create`] and [`EmptyLog::begin`].
    pub fn create(disk: &dyn Disk, path: &Path, header: &Header) -> Result<Self> {
        EmptyLog::create(disk, path)?.begin(header)
    }

    /// A writer for `file`, which has only a durable header.
    pub(crate) fn after_header(file: Arc<dyn File>, path: &Path, form: RecordForm) -> Self {
        Self::at(file, path, form, HEADER_BYTES as u64)
    }

    /// A writer for the log at `path`, written by an earlier process. The log ends at `end`, and all of it is
    /// durable.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened.
    pub fn go_on(disk: &dyn Disk, path: &Path, form: RecordForm, end: u64) -> Result<Self> {
        let file = disk.open(path, Access::Write).map_err(|error| LogError::io("open", path, error))?;
        Ok(Self::at(file, path, form, end))
    }

    fn at(file: Arc<dyn File>, path: &Path, form: RecordForm, end: u64) -> Self {
        let file = Arc::new(LogFile {
            file,
            path: path.to_owned(),
            appended_end: AtomicU64::new(end),
            synced_end: AtomicU64::new(end),
            syncing: Mutex::new(None),
            failed: OnceLock::new(),
        });
        Self { file, form, end, stated_end: end, scratch: Vec::new(), is_torn: false, is_allocated_ahead: false }
    }

    /// Appends a record whose payload is the concatenation of `parts`, with one write, and returns its end. The
    /// record is durable when the file has been synced up to this end.
    ///
    /// # Errors
    ///
    /// Fails if an earlier sync has failed, or if the file cannot be written. The file then does not have the
    /// record, and the caller may append it again.
    pub fn append(&mut self, parts: &[&[u8]]) -> Result<u64> {
        self.file.check()?;
        self.mend()?;
        let synced_end = self.file.synced_end();
        self.form.encode(&mut self.scratch, self.end, synced_end, parts);
        // Set before the write: if the write panics, a part of the record may stay in the file, as after an error.
        self.is_torn = true;
        if let Err(error) = self.file.file.write_at(&self.scratch, self.end) {
            // A failed write may leave a part of its record in the file. Cut it off at once, because the disk may be
            // full. If the cut fails, the next append tries again.
            self.cut().ok();
            return Err(LogError::io("append to", &self.file.path, error));
        }
        self.is_torn = false;
        self.stated_end = synced_end;
        self.end += self.scratch.len() as u64;
        self.file.appended_end.store(self.end, Ordering::Release);
        if self.scratch.capacity() > MAX_SCRATCH_BYTES {
            self.scratch.clear();
            self.scratch.shrink_to(MAX_SCRATCH_BYTES);
        }
        Ok(self.end)
    }

    /// Makes `before` the previous log: it gets no more records and may not be durable yet. This log must not have
    /// any records yet.
    pub fn follow(&mut self, before: Arc<LogFile>) {
        assert_eq!(self.end, HEADER_BYTES as u64, "a log follows another one from its beginning");
        *self.file.syncing.lock() = Some(before);
    }

    /// If an append has failed, cuts off what it wrote, and makes the new length durable.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be cut or synced.
    pub fn mend(&mut self) -> Result<()> {
        if self.is_torn {
            self.cut()?;
            self.file.sync()?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Cuts off everything after the last whole record.
    fn cut(&self) -> Result<()> {
        self.file.file.set_len(self.end).map_err(|error| LogError::io("cut", &self.file.path, error))
    }

    /// Appends a record without a payload, whose synced end proves how much of the log is durable. It lets a later
    /// reader that meets a bad record tell damage from an unfinished write.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::append`].
    pub fn append_proof(&mut self) -> Result<u64> {
        self.append(&[])
    }

    /// Frees the buffer in which records are encoded.
    pub fn give_back(&mut self) {
        self.scratch = Vec::new();
    }

    /// Gives back disk space that was allocated ahead and was not used.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be cut. Even then, no record is lost.
    pub fn trim(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_allocated_ahead) { self.cut() } else { Ok(()) }
    }

    /// Memory of the buffer in which records are encoded, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.scratch.capacity() as u64
    }

    /// The file, for a thread that syncs it.
    pub fn file(&self) -> &Arc<LogFile> {
        &self.file
    }

    /// The synced end in the last record: the log is durable up to this offset.
    pub fn stated_end(&self) -> u64 {
        self.stated_end
    }

    /// Where the next record will start.
    pub fn end(&self) -> u64 {
        self.end
    }
}

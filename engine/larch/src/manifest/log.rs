//! The manifest on disk: a log of edits, and the file `CURRENT`, which names it. This module does not know what
//! edits mean.
//!
//! Every open for writing starts a new manifest, whose first records hold the whole file set. A manifest that has
//! grown to about twice that length is also replaced, so that none grows without limit. When the new manifest is
//! durable, a rename replaces `CURRENT`. If the disk has no room for a new manifest, an open continues the old one,
//! after it has cut off an unfinished write at the end and made the rest durable.
//!
//! Invariant: edits are appended to a manifest only while `CURRENT` is certain to name it. After a failed rename,
//! `CURRENT` may name the old manifest or the new one, which describe the same file set, and the manifest [is in
//! doubt](ManifestLog::is_in_doubt) until a rename has succeeded.
//!
//! Not thread safe: one thread at a time uses a manifest log.

use super::db_file::FileOpener;
use super::directory::leftovers::Leftovers;
use super::directory::names::{CURRENT, CURRENT_NEW, UNFINISHED};
use super::directory::position::Position;
use super::edit::{Edit, Framing};
use super::file_set::{EditRefusal, FileSet};
use crate::base::error::{Error, Result};
use crate::base::record::{Header, LogError, LogKind, RecordForm, RecordReader, RecordWriter, rewrite_tail};
use crate::base::release::Release;
use os::{Access, Machine};
use sst::format::features::Unreadable;
use std::path::{Path, PathBuf};

/// The edits that describe the first file set are split into records of about this size, so that a reader needs
/// little memory.
const RECORD_BYTES: usize = 1 << 20;

/// The file name of manifest `number`.
pub fn manifest_name(number: u64) -> String {
    format!("MANIFEST-{number:08}")
}

/// The text of a `CURRENT` that names this manifest.
pub fn current_text(manifest: &str) -> String {
    format!("{manifest}\n")
}

/// A manifest to which edits are appended.
#[derive(Debug)]
pub struct ManifestLog {
    writer: RecordWriter,
    scratch: Vec<u8>,
    number: u64,
    /// The length that the manifest had with only its first file set, or when this process continued it.
    initial_bytes: u64,
    /// A synced manifest with the same file set that is to replace this one. `CURRENT` may name it already.
    successor: Option<Box<ManifestLog>>,
    /// Edits that have taken effect but are not in the manifest yet. The next commit writes them with its own.
    pending: Vec<Edit>,
}

/// Whether the manifest contains the edits of a commit.
#[derive(Debug)]
pub enum EditsOutcome {
    /// The edits are in the manifest, and durable.
    Durable,
    /// The edits are not in the manifest, which is as it was before the commit.
    Not(LogError),
    /// The edits were appended, but the sync failed. Only the next open will find out whether the manifest has
    /// them.
    Unknown(LogError),
}

impl ManifestLog {
    /// Whether `directory` holds a database.
    ///
    /// # Errors
    ///
    /// An error if the disk cannot tell.
    pub fn exists(machine: &Machine, directory: &Path) -> Result<bool> {
        let current = directory.join(CURRENT);
        machine.disk.exists(&current).map_err(|error| Error::io("look for", &current, error))
    }

    /// Whether `directory` has an unfinished copy of a database, and so holds no database.
    ///
    /// # Errors
    ///
    /// An error if the disk cannot tell.
    pub fn is_unfinished_copy(machine: &Machine, directory: &Path) -> Result<bool> {
        let mark = directory.join(UNFINISHED);
        machine.disk.exists(&mark).map_err(|error| Error::io("look for", &mark, error))
    }

    /// The error for a directory that has files of a database but no `CURRENT`. Without `CURRENT`, nobody knows
    /// which of these files are in use.
    pub fn current_is_missing(directory: &Path) -> Error {
        LogError::corrupt(&directory.join(CURRENT), 0, "it is missing, but logs or SSTs of a database are there").into()
    }

    /// The path of the manifest that `CURRENT` names.
    ///
    /// # Errors
    ///
    /// An error if `CURRENT` cannot be read or names no manifest, or if the manifest that it names does not exist.
    pub fn current(machine: &Machine, directory: &Path) -> Result<PathBuf> {
        let path = Self::named(machine, directory)?;
        Self::check_there(machine, &path)?;
        Ok(path)
    }

    /// The path of the manifest that `CURRENT` names. If another process writes, it may replace and remove this
    /// manifest at any time.
    ///
    /// # Errors
    ///
    /// An error if `CURRENT` cannot be read or names no manifest.
    pub fn named(machine: &Machine, directory: &Path) -> Result<PathBuf> {
        let current = directory.join(CURRENT);
        let bytes = machine.disk.read_all(&current).map_err(|error| Error::io("read", &current, error))?;
        let name = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n'));
        let is_name =
            |name: &&str| name.strip_prefix("MANIFEST-").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let Some(name) = name.filter(is_name) else {
            return Err(LogError::corrupt(&current, 0, "it does not name a manifest").into());
        };
        Ok(directory.join(name))
    }

    /// Returns an error if the manifest at `path`, which `CURRENT` names, does not exist.
    pub(super) fn check_there(machine: &Machine, path: &Path) -> Result<()> {
        if machine.disk.exists(path).map_err(|error| Error::io("look for", path, error))? {
            return Ok(());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Err(LogError::corrupt(&path.with_file_name(CURRENT), 0, format!("it names {name}, which is not there")).into())
    }

    /// Reads the file set that the manifest at `path` describes.
    ///
    /// # Errors
    ///
    /// An error if the manifest cannot be read.
    pub fn read(machine: &Machine, path: &Path, opener: &FileOpener) -> Result<FileSet> {
        let mut set = FileSet::default();
        Self::read_into(&mut set, machine, path, opener)?;
        Ok(set)
    }

    /// Reads the manifest at `path` up to its first damage. Returns the file set, and the error if any damage was
    /// found.
    pub fn read_to_damage(machine: &Machine, path: &Path, opener: &FileOpener) -> (FileSet, Option<Error>) {
        let mut set = FileSet::default();
        let outcome = Self::read_into(&mut set, machine, path, opener);
        (set, outcome.err())
    }

    fn read_into(set: &mut FileSet, machine: &Machine, path: &Path, opener: &FileOpener) -> Result<()> {
        let mut reader = RecordReader::open(&*machine.disk, path, LogKind::Manifest, None)?;
        if apply_next(set, &mut reader, opener)? == 0 {
            return Err(LogError::corrupt(path, 0, "it has no records, but CURRENT names it").into());
        }
        Ok(())
    }

    /// The position after all edits so far.
    pub fn position(&self) -> Position {
        Position { manifest: self.number, end: self.writer.end() }
    }

    /// The error for a caller whose edit was refused. If the edit's table was dropped meanwhile, it is
    /// [`Error::NoSuchTable`] and does not say that the manifest is corrupt.
    pub fn refused(&self, refusal: EditRefusal) -> Error {
        match refusal {
            EditRefusal::NoTable(id) => Error::NoSuchTable(format!("#{}, dropped", id.0)),
            EditRefusal::Contradiction(why) => {
                LogError::corrupt(self.writer.file().path(), self.writer.end(), why).into()
            }
        }
    }

    /// Writes manifest `number` with `set`, readable for releases from `compat` on, and makes it the current
    /// manifest.
    ///
    /// # Errors
    ///
    /// An error if a file cannot be written.
    pub fn create(machine: &Machine, directory: &Path, number: u64, set: &FileSet, compat: Release) -> Result<Self> {
        let log = Self::write(machine, directory, number, set, compat)?;
        log.prepare_current(machine, directory)?;
        make_current(machine, directory)?;
        Ok(log)
    }

    /// Continues the manifest at `path`, which `CURRENT` names and an earlier process has left, because the disk
    /// has no room for a new one. Takes no disk space. `pending` are edits that have taken effect already; the
    /// first commit writes them. Returns `None` if a manifest for readers of the release `compat` would have
    /// another form.
    ///
    /// # Errors
    ///
    /// An error if the manifest cannot be read, or its tail, which may not be durable, cannot be rewritten and
    /// synced.
    pub fn go_on(machine: &Machine, path: &Path, pending: Vec<Edit>, compat: Release) -> Result<Option<Self>> {
        let mut reader = RecordReader::open(&*machine.disk, path, LogKind::Manifest, None)?;
        while reader.next_record()?.is_some() {}
        let features = LogKind::Manifest.features_for(compat);
        let Some(header) = reader.header().filter(|header| header.features == features) else { return Ok(None) };
        let (number, end) = (header.number, reader.end());
        // The rename to `CURRENT` by an earlier process may not be durable yet.
        let directory = path.parent().unwrap_or(Path::new(""));
        machine.disk.sync_dir(directory).map_err(|error| Error::io("sync", directory, error))?;
        rewrite_tail(&*machine.disk, path, reader.proven_end()..end)?;
        let writer = RecordWriter::go_on(&*machine.disk, path, RecordForm::of(header), end)?;
        Ok(Some(Self { writer, scratch: Vec::new(), number, initial_bytes: end, successor: None, pending }))
    }

    /// The number of the manifest.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Writes manifest `number`, but leaves `CURRENT` alone.
    fn write(machine: &Machine, directory: &Path, number: u64, set: &FileSet, compat: Release) -> Result<Self> {
        let path = directory.join(manifest_name(number));
        let header = Header::new(LogKind::Manifest, machine.random.next_u64() | 1, number, None);
        let header = Header { features: LogKind::Manifest.features_for(compat), ..header };
        let writer = RecordWriter::create(&*machine.disk, &path, &header)?;
        let scratch = Vec::new();
        let mut log = Self { writer, scratch, number, initial_bytes: 0, successor: None, pending: Vec::new() };
        for edit in set.edits() {
            edit.encode(&mut log.scratch);
            if log.scratch.len() >= RECORD_BYTES {
                log.append_scratch()?;
            }
        }
        log.append_scratch()?;
        log.writer.file().sync()?;
        log.append_proof();
        log.initial_bytes = log.writer.end();
        Ok(log)
    }

    /// Writes manifest `number`, with `set` and then `edits`, for a copy of a database. No `CURRENT` names it yet,
    /// and its file name is not durable.
    ///
    /// # Errors
    ///
    /// An error if the manifest cannot be written or synced. A part of it may be left.
    pub fn write_copy(
        machine: &Machine,
        directory: &Path,
        (number, set, compat): (u64, &FileSet, Release),
        edits: &[Edit],
    ) -> Result<()> {
        let mut log = Self::write(machine, directory, number, set, compat)?;
        match log.commit(edits) {
            // The commit has appended a proof after its sync. Sync this, too, because a backup stores a checksum of
            // the whole file.
            EditsOutcome::Durable => Ok(log.writer.file().sync().map(drop)?),
            EditsOutcome::Not(error) | EditsOutcome::Unknown(error) => Err(error.into()),
        }
    }

    /// Writes the name of this manifest to `CURRENT.new`, ready for the rename.
    fn prepare_current(&self, machine: &Machine, directory: &Path) -> Result<()> {
        let new = directory.join(CURRENT_NEW);
        let io = |action| move |error| Error::io(action, &directory.join(CURRENT_NEW), error);
        if machine.disk.exists(&new).map_err(io("look for"))? {
            machine.disk.remove(&new).map_err(io("remove"))?;
        }
        let file = machine.disk.open(&new, Access::Create).map_err(io("create"))?;
        file.write_at(current_text(&manifest_name(self.number)).as_bytes(), 0).map_err(io("write"))?;
        file.sync().map_err(io("sync"))
    }

    /// Replaces this manifest by a new manifest `number` that begins with `set`, the current file set.
    ///
    /// # Errors
    ///
    /// An error if a file cannot be written. This manifest then stays in use, but if it [is in
    /// doubt](Self::is_in_doubt), it takes no edits until a later call has succeeded.
    pub fn renew(
        &mut self,
        machine: &Machine,
        directory: &Path,
        (number, set, compat): (u64, &FileSet, Release),
        leftovers: &Leftovers,
    ) -> Result<()> {
        let is_in_doubt = self.is_in_doubt();
        let new = match self.successor.take() {
            Some(new) => Ok(new),
            None => Self::write(machine, directory, number, set, compat).map(Box::new),
        };
        let new = new.inspect_err(|_| leftovers.remove(&directory.join(manifest_name(number))))?;
        if let Err(error) = new.prepare_current(machine, directory) {
            if is_in_doubt {
                self.successor = Some(new);
            } else {
                leftovers.remove(new.writer.file().path());
            }
            return Err(error);
        }
        if let Err(error) = make_current(machine, directory) {
            self.successor = Some(new);
            return Err(error);
        }
        let old = std::mem::replace(self, *new);
        leftovers.remove(old.writer.file().path());
        Ok(())
    }

    /// Whether `CURRENT` may name either this manifest or its successor. No edits can be appended then until
    /// [`ManifestLog::renew`] has succeeded.
    pub fn is_in_doubt(&self) -> bool {
        self.successor.is_some()
    }

    /// Appends a proof that all edits before it are durable. Without it, a damaged last record would pass for an
    /// unfinished write, and its edits would be lost without an error. If this fails, the next record serves as the
    /// proof.
    fn append_proof(&mut self) {
        self.writer.append_proof().ok();
    }

    /// Whether this manifest should be replaced: it has grown by its initial length and `slack_bytes`, so most of
    /// its edits name files that no longer exist.
    pub fn is_overgrown(&self, slack_bytes: u64) -> bool {
        self.writer.end() > 2 * self.initial_bytes + slack_bytes
    }

    /// The end of the last record, and the initial length.
    #[cfg(test)]
    pub fn lengths(&self) -> (u64, u64) {
        (self.writer.end(), self.initial_bytes)
    }

    /// Frees the buffers in which edits and records are encoded.
    pub fn give_back(&mut self) {
        self.writer.give_back();
        self.scratch = Vec::new();
    }

    /// The memory of the buffers in which edits and records are encoded, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.writer.memory_bytes() + self.scratch.capacity() as u64
    }

    fn append_scratch(&mut self) -> Result<(), LogError> {
        self.writer.append(&[&self.scratch])?;
        self.scratch.clear();
        Ok(())
    }

    /// Appends `edits` as one atomic record, and makes them durable.
    ///
    /// # Panics
    ///
    /// Panics if the manifest is in doubt.
    pub fn commit(&mut self, edits: &[Edit]) -> EditsOutcome {
        assert!(!self.is_in_doubt(), "the caller renews a manifest in doubt");
        self.scratch.clear();
        for edit in self.pending.iter().chain(edits) {
            edit.encode(&mut self.scratch);
        }
        if let Err(error) = self.append_scratch() {
            return match self.writer.file().check() {
                Ok(()) => EditsOutcome::Not(error),
                Err(failed_sync) => EditsOutcome::Unknown(failed_sync),
            };
        }
        if let Err(error) = self.writer.file().sync() {
            return EditsOutcome::Unknown(error);
        }
        self.pending.clear();
        self.append_proof();
        EditsOutcome::Durable
    }
}

/// Replaces `CURRENT` by `CURRENT.new`. After an error, or a crash during the call, `CURRENT` may have the old text
/// or the new one.
fn make_current(machine: &Machine, directory: &Path) -> Result<()> {
    let new = directory.join(CURRENT_NEW);
    machine.disk.rename(&new, &directory.join(CURRENT)).map_err(|error| Error::io("rename", &new, error))?;
    machine.disk.sync_dir(directory).map_err(|error| Error::io("sync", directory, error))
}

/// Applies all further records of `reader` to `set`, and returns how many there were.
///
/// # Errors
///
/// An error if the manifest cannot be read. Edits before the damage have been applied to `set`.
pub(super) fn apply_next(set: &mut FileSet, reader: &mut RecordReader, opener: &FileOpener) -> Result<u64, LogError> {
    let framing = Framing::of(reader.header().map_or(0, |header| header.features));
    let mut records = 0;
    while let Some(record) = reader.next_record()? {
        let (offset, outcome) = (record.offset, apply_record(set, record.payload, framing, opener));
        outcome.map_err(|unreadable| LogError::unreadable(reader.path(), offset, unreadable))?;
        records += 1;
    }
    Ok(records)
}

fn apply_record(
    set: &mut FileSet,
    mut payload: &[u8],
    framing: Framing,
    opener: &FileOpener,
) -> std::result::Result<(), Unreadable> {
    while !payload.is_empty() {
        let Some(edit) = Edit::decode(&mut payload, framing)? else { continue };
        // Files that an edit removes from the set stay on disk here. They are gone already, or the open removes
        // them, or a later edit adds them again.
        set.apply(&edit, opener, &mut Vec::new()).map_err(|why| why.to_string())?;
    }
    Ok(())
}

//! The manifest on disk: a record log of edits, and the file `CURRENT` that names it.
//!
//! Every open for writing starts a new manifest with the whole set in its first records, and so does a manifest that has
//! doubled: a torn tail is never appended to and no manifest grows for ever. `CURRENT` is replaced by a rename once the new one is durable.

use super::edit::{Edit, Framing};
use super::file_set::{FileOpener, FileSet, Refusal};
use crate::error::{Error, Result};
use crate::record::{Header, Kind, LogError, RecordReader, RecordWriter};
use crate::release::Release;
use os::{Access, Machine};
use sst::format::features::Unreadable;
use std::path::{Path, PathBuf};

const CURRENT: &str = "CURRENT";
const CURRENT_NEW: &str = "CURRENT.new";

/// Edits of the initial set go into records of about this size, so that they can be read piecemeal.
const RECORD_BYTES: usize = 1 << 20;

/// A manifest may grow by this and its initial length before a new one is begun.
const OVERGROWN_BYTES: u64 = 4 << 20;

/// Name of a manifest.
pub fn manifest_name(number: u64) -> String {
    format!("MANIFEST-{number:08}")
}

/// Appends edits.
#[derive(Debug)]
pub struct ManifestLog {
    writer: RecordWriter,
    scratch: Vec<u8>,
    /// Length with the initial set alone.
    initial_bytes: u64,
}

impl ManifestLog {
    /// Whether `directory` holds a database.
    pub fn exists(machine: &Machine, directory: &Path) -> Result<bool> {
        let current = directory.join(CURRENT);
        machine.disk.exists(&current).map_err(|error| Error::io("look for", &current, error))
    }

    /// The error about a directory that has files of a database, but nothing that says which of them count.
    pub fn current_is_missing(directory: &Path) -> Error {
        LogError::corrupt(&directory.join(CURRENT), 0, "it is missing, but logs or SSTs of a database are there").into()
    }

    /// The path of the manifest that `CURRENT` names, which is there.
    pub fn current(machine: &Machine, directory: &Path) -> Result<PathBuf> {
        let path = Self::named(machine, directory)?;
        Self::check_there(machine, &path)?;
        Ok(path)
    }

    /// The path of the manifest that `CURRENT` names. A writer elsewhere may replace and remove it at any time.
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

    /// Refuses a manifest that `CURRENT` names and that is not there.
    fn check_there(machine: &Machine, path: &Path) -> Result<()> {
        if machine.disk.exists(path).map_err(|error| Error::io("look for", path, error))? {
            return Ok(());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Err(LogError::corrupt(&path.with_file_name(CURRENT), 0, format!("it names {name}, which is not there")).into())
    }

    /// Reads the set that the newest manifest describes, beside a writer elsewhere that may append to it, replace it and
    /// remove it meanwhile.
    pub fn read_newest(machine: &Machine, directory: &Path, opener: &FileOpener) -> Result<FileSet> {
        loop {
            let path = Self::named(machine, directory)?;
            // What is appended while it is read is left out: then this is the set of a moment ago.
            let error = match Self::read(machine, &path, opener) {
                Ok(files) => return Ok(files),
                Err(error) => error,
            };
            // A writer removes a manifest after `CURRENT` names the next one. As long as it names this one, the error stands.
            if Self::named(machine, directory)? == path {
                Self::check_there(machine, &path)?;
                return Err(error);
            }
        }
    }

    /// Reads the set that the manifest at `path` describes.
    pub fn read(machine: &Machine, path: &Path, opener: &FileOpener) -> Result<FileSet> {
        let mut set = FileSet::default();
        Self::read_into(&mut set, machine, path, opener)?;
        Ok(set)
    }

    /// As [`ManifestLog::read`], up to the first damage, which is the answer's second part.
    pub fn read_to_damage(machine: &Machine, path: &Path, opener: &FileOpener) -> (FileSet, Option<Error>) {
        let mut set = FileSet::default();
        let outcome = Self::read_into(&mut set, machine, path, opener);
        (set, outcome.err())
    }

    fn read_into(set: &mut FileSet, machine: &Machine, path: &Path, opener: &FileOpener) -> Result<()> {
        let mut reader = RecordReader::open(&*machine.disk, path, Kind::Manifest, None)?;
        let framing = Framing::of(reader.header().map_or(0, |header| header.features));
        let mut records = 0;
        while let Some(record) = reader.next_record()? {
            let offset = record.offset;
            let outcome = apply_record(set, record.payload, framing, opener);
            outcome.map_err(|unreadable| LogError::unreadable(path, offset, unreadable))?;
            records += 1;
        }
        if records == 0 {
            return Err(LogError::corrupt(path, 0, "it has no records, but CURRENT names it").into());
        }
        Ok(())
    }

    /// What a refused edit of this manifest is to who wanted it. A table may have been dropped since the edit was made,
    /// which is void then.
    pub fn refused(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::NoTable(id) => Error::NoSuchTable(format!("#{}, dropped", id.0)),
            Refusal::Contradiction(why) => LogError::corrupt(self.writer.file().path(), self.writer.end(), why).into(),
        }
    }

    /// Starts manifest `number` with `set`, for readers of the release `compat` and later ones, and makes it the current
    /// one.
    pub fn create(machine: &Machine, directory: &Path, number: u64, set: &FileSet, compat: Release) -> Result<Self> {
        let path = directory.join(manifest_name(number));
        let header = Header::new(Kind::Manifest, machine.random.next_u64() | 1, number, None);
        let header = Header { features: Kind::Manifest.features_for(compat), ..header };
        let writer = RecordWriter::create(&*machine.disk, &path, &header)?;
        let mut log = Self { writer, scratch: Vec::new(), initial_bytes: 0 };
        for edit in set.edits() {
            edit.encode(&mut log.scratch);
            if log.scratch.len() >= RECORD_BYTES {
                log.append_scratch()?;
            }
        }
        log.append_scratch()?;
        log.sync()?;
        log.initial_bytes = log.writer.end();

        let (new, current) = (directory.join(CURRENT_NEW), directory.join(CURRENT));
        let io = |action| move |error| Error::io(action, &directory.join(CURRENT_NEW), error);
        if machine.disk.exists(&new).map_err(io("look for"))? {
            machine.disk.remove(&new).map_err(io("remove"))?;
        }
        let file = machine.disk.open(&new, Access::Create).map_err(io("create"))?;
        file.write_at(format!("{}\n", manifest_name(number)).as_bytes(), 0).map_err(io("write"))?;
        file.sync().map_err(io("sync"))?;
        machine.disk.rename(&new, &current).map_err(io("rename"))?;
        machine.disk.sync_dir(directory).map_err(|error| Error::io("sync", directory, error))?;
        Ok(log)
    }

    /// Leaves a proof behind: without it a damaged last record would look like one that was never finished, and the
    /// edits in it would be forgotten in silence.
    fn sync(&mut self) -> Result<()> {
        self.writer.file().sync()?;
        self.writer.append_proof()?;
        Ok(())
    }

    /// Whether it is mostly about what is no more, so that a new one would be worth its writing.
    pub fn is_overgrown(&self) -> bool {
        self.writer.end() > 2 * self.initial_bytes + OVERGROWN_BYTES
    }

    /// What it keeps to lay out records in.
    pub fn memory_bytes(&self) -> u64 {
        self.writer.memory_bytes() + self.scratch.capacity() as u64
    }

    fn append_scratch(&mut self) -> Result<()> {
        self.writer.append(&[&self.scratch])?;
        self.scratch.clear();
        Ok(())
    }

    /// Appends edits that take effect together and makes them durable.
    pub fn commit(&mut self, edits: &[Edit]) -> Result<()> {
        self.scratch.clear();
        for edit in edits {
            edit.encode(&mut self.scratch);
        }
        self.append_scratch()?;
        self.sync()
    }
}

fn apply_record(
    set: &mut FileSet,
    mut payload: &[u8],
    framing: Framing,
    opener: &FileOpener,
) -> std::result::Result<(), Unreadable> {
    while !payload.is_empty() {
        let Some(edit) = Edit::decode(&mut payload, framing)? else { continue };
        // What was removed long ago is gone from the disk, or an orphan, or was moved and comes again: nothing to discard.
        set.apply(&edit, opener, &mut Vec::new()).map_err(|why| why.to_string())?;
    }
    Ok(())
}

//! Sorted rows and range erases to files of a bounded size, cut between keys. A row comes in parts, one for each column
//! group of the table. The files are removed unless they are installed (see `install.rs`).

use crate::core::Core;
use crate::core::environment::Environment;
use crate::error::{Error, Result};
use crate::files::fresh::FreshFiles;
use crate::files::origin;
use crate::gauge::Holding;
use crate::manifest::{NewFile, TableInfo};
use crate::parts::Slices;
use os::Access;
use os::sync::Arc;
use sst::{KeyRange, Meta, RangeErase, RowKind, SstBuilder, Version};

/// Bytes of a file after which the memory of its builder is looked at again.
const LOOK_BYTES: u64 = 64 << 10;

/// Files being written for one table.
pub struct Outputs {
    core: Arc<Core>,
    table: Arc<TableInfo>,
    file_bytes: u64,
    /// The range erase added last, or what of it no file has yet. It waits for the next one, which may go on where it ends,
    /// and for the end of the file, which may cut it.
    erase: Option<RangeErase>,
    /// Whether nothing lies deeper, so that an erase with nothing to hide can go. Says which filter files get, too.
    bottom: bool,
    /// Erases of the current key that are kept only if something older is.
    held_back: Vec<Version>,
    held_key: Vec<u8>,
    open: Option<OpenFile>,
    written: Vec<(u64, Meta)>,
    /// The files of both.
    fresh: FreshFiles,
    /// The memory of all this.
    memory: Holding,
}

/// Finished files that are not part of the database yet.
pub struct NewFiles {
    /// What makes each of them part of a table.
    pub files: Vec<NewFile>,
    /// Their owner until they are installed.
    pub fresh: FreshFiles,
}

struct OpenFile {
    builder: SstBuilder,
    number: u64,
    /// Length of the file from which on the builder's memory is looked at again.
    look_at: u64,
}

impl NewFiles {
    /// No files of the database that `env` is of.
    pub fn none(env: &Environment) -> Self {
        Self { files: Vec::new(), fresh: FreshFiles::new(&env.opener.leftovers) }
    }

    /// Takes all of another.
    pub fn append(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.fresh.append(other.fresh);
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.meta.file_bytes).sum()
    }
}

impl Outputs {
    /// Files of about `file_bytes`. At the `bottom` nothing lies deeper than they do.
    pub fn new(core: &Arc<Core>, table: &Arc<TableInfo>, file_bytes: u64, bottom: bool) -> Self {
        Self {
            core: core.clone(),
            table: table.clone(),
            file_bytes,
            erase: None,
            bottom,
            held_back: Vec::new(),
            held_key: Vec::new(),
            open: None,
            written: Vec::new(),
            fresh: FreshFiles::new(&core.env.opener.leftovers),
            memory: core.env.held.builders.holding(),
        }
    }

    /// Adds a version whose value is in one piece, as log and memory have it.
    pub fn add_joined(&mut self, key: &[u8], version: Version, kind: RowKind, value: &[u8]) -> Result<()> {
        let count = self.table.options.groups.len();
        match kind {
            RowKind::Erase => self.add(key, version, kind, &[]),
            _ if count < 2 => self.add(key, version, kind, &[value]),
            _ => match Slices::of(value, count) {
                Some(parts) => self.add(key, version, kind, &parts),
                None => Err(Error::BadParts { table: self.table.name.clone(), key: key.into(), parts: count }),
            },
        }
    }

    /// Adds a version of a row: keys grow, versions of a key shrink. It has a part for each group, an erase none.
    pub fn add(&mut self, key: &[u8], version: Version, kind: RowKind, parts: &[&[u8]]) -> Result<()> {
        if self.bottom {
            if !self.held_back.is_empty() && self.held_key != key {
                self.held_back.clear();
            }
            if kind == RowKind::Erase {
                self.held_key.clear();
                self.held_key.extend_from_slice(key);
                self.held_back.push(version);
                return Ok(());
            }
            for i in 0..self.held_back.len() {
                self.write(key, self.held_back[i], RowKind::Erase, &[])?;
            }
            self.held_back.clear();
        }
        self.write(key, version, kind, parts)
    }

    fn write(&mut self, key: &[u8], version: Version, kind: RowKind, parts: &[&[u8]]) -> Result<()> {
        Ok(self.builder_at(key)?.add(key, version, kind, parts)?)
    }

    /// Adds a range erase: they are sorted and disjoint, and one is added before the rows from its start on are. One without
    /// versions says nothing.
    pub fn add_erase(&mut self, erase: RangeErase) -> Result<()> {
        if erase.versions.is_empty() {
            return Ok(());
        }
        match &mut self.erase {
            Some(last) if last.keys.touches(&erase.keys) && last.versions == erase.versions => {
                last.keys.join(erase.keys);
            }
            _ => {
                self.write_erase()?;
                self.erase = Some(erase);
            }
        }
        Ok(())
    }

    /// Writes the range erase that waits, if one does, as a whole.
    fn write_erase(&mut self) -> Result<()> {
        let Some(RangeErase { keys, versions }) = self.erase.take() else { return Ok(()) };
        Ok(self.builder_at(&keys.start)?.add_range_erase(&keys, &versions)?)
    }

    /// The builder of the file that takes what comes at `key`: a new one, which begins there, if the open one is long enough.
    fn builder_at(&mut self, key: &[u8]) -> Result<&mut SstBuilder> {
        let mut bytes = self.open.as_ref().map_or(0, |open| open.builder.file_bytes());
        if bytes >= self.file_bytes && self.open.as_ref().is_some_and(|open| open.builder.last_key() < key) {
            self.close(Some(key))?;
            bytes = 0;
        }
        if self.open.is_none() {
            self.open = Some(self.create()?);
        }
        let open = self.open.as_mut().expect("created above");
        if bytes >= open.look_at {
            open.look_at = bytes + LOOK_BYTES;
            let waiting = self.erase.as_ref().map_or(0, erase_bytes) + self.fresh.memory_bytes();
            self.memory.set(open.builder.memory_bytes() + written_bytes(&self.written) + waiting);
        }
        Ok(&mut open.builder)
    }

    fn create(&mut self) -> Result<OpenFile> {
        let (number, now) = {
            let _numbering = self.core.writes.numbering.read();
            (self.core.writes.new_number(), self.core.views.table_info(self.table.id))
        };
        let path = self.core.env.opener.path(number, self.core.env.epoch);
        let disk = &self.core.env.machine.disk;
        self.fresh.add(path.clone());
        let file = disk.open(&path, Access::CreateDirect).map_err(|error| Error::io("create", &path, error))?;
        let options = &now.as_ref().unwrap_or(&self.table).options;
        let filter = if self.bottom { options.filters.deepest } else { options.filters.upper };
        let options = options.build(filter, self.core.env.options.compat);
        let builder = SstBuilder::new(file, path, self.core.env.machine.random.next_u64(), options);
        let builder = builder.with_origin(origin::encode(&self.table));
        Ok(OpenFile { builder, number, look_at: 0 })
    }

    /// Finishes the open file, which ends before `cut`; `None` is the end of all keys.
    fn close(&mut self, cut: Option<&[u8]>) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        self.cut_erase(&mut open.builder, cut)?;
        let meta = open.builder.finish()?;
        self.written.push((open.number, meta));
        self.memory.set(written_bytes(&self.written) + self.fresh.memory_bytes());
        Ok(())
    }

    /// Writes what lies before `cut` of the range erase that waits.
    fn cut_erase(&mut self, builder: &mut SstBuilder, cut: Option<&[u8]>) -> Result<()> {
        let Some(erase) = self.erase.take_if(|erase| cut.is_none_or(|cut| erase.keys.start.as_slice() < cut)) else {
            return Ok(());
        };
        let RangeErase { keys, versions } = erase;
        match cut.filter(|&cut| keys.ends_after(cut)) {
            Some(cut) => {
                builder.add_range_erase(&KeyRange { start: keys.start.as_slice(), end: Some(cut) }, &versions)?;
                self.erase = Some(RangeErase { keys: KeyRange { start: cut.to_vec(), end: keys.end }, versions });
            }
            None => builder.add_range_erase(&keys, &versions)?,
        }
        Ok(())
    }

    /// Finishes the last file and returns all of them, for `level`.
    pub fn finish(mut self, level: u8, version_offset: u64) -> Result<NewFiles> {
        self.write_erase()?;
        self.close(None)?;
        let env = &self.core.env;
        env.machine.disk.sync_dir(&env.directory).map_err(|error| Error::io("sync", &env.directory, error))?;
        let (table, epoch) = (self.table.id, env.epoch);
        let new = |(number, meta)| NewFile { table, level, number, epoch, version_offset, meta };
        Ok(NewFiles { files: self.written.into_iter().map(new).collect(), fresh: self.fresh })
    }
}

/// Memory of a range erase that waits.
fn erase_bytes(erase: &RangeErase) -> u64 {
    (erase.keys.heap_bytes() + erase.versions.capacity() * size_of::<Version>()) as u64
}

/// Memory of what is known of finished files.
fn written_bytes(written: &[(u64, Meta)]) -> u64 {
    written.iter().map(|(_, meta)| (size_of::<(u64, Meta)>() + meta.heap_bytes()) as u64).sum()
}

//! Sorted rows and range erases to files of a bounded size, cut between keys. Unfinished files are removed. A row comes in
//! parts, one for each column group of the table.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::gauge::Holding;
use crate::manifest::{Edit, TableInfo};
use crate::origin;
use crate::parts::Slices;
use os::Access;
use os::sync::Arc;
use sst::{Builder, Meta, RangeErase, RowKind, Version};
use std::path::PathBuf;

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
    open: Option<Open>,
    written: Vec<Written>,
    /// The memory of all this.
    memory: Holding,
    finished: bool,
}

struct Open {
    builder: Builder,
    number: u64,
    path: PathBuf,
    /// Length of the file from which on the builder's memory is looked at again.
    look_at: u64,
}

struct Written {
    number: u64,
    path: PathBuf,
    meta: Meta,
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
            memory: core.held.builders.holding(),
            finished: false,
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
            Some(last) if last.end.as_ref() == Some(&erase.start) && last.versions == erase.versions => {
                last.end = erase.end;
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
        let Some(RangeErase { start, end, versions }) = self.erase.take() else { return Ok(()) };
        Ok(self.builder_at(&start)?.add_range_erase(&start, end.as_deref(), &versions)?)
    }

    /// The builder of the file that takes what comes at `key`: a new one, which begins there, if the open one is long enough.
    fn builder_at(&mut self, key: &[u8]) -> Result<&mut Builder> {
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
            let erase = self.erase.as_ref().map_or(0, erase_bytes);
            self.memory.set(open.builder.memory_bytes() + written_bytes(&self.written) + erase);
        }
        Ok(&mut open.builder)
    }

    fn create(&self) -> Result<Open> {
        let number = self.core.new_number();
        let path = self.core.opener.path(number, self.core.epoch);
        let disk = &self.core.machine.disk;
        let file = disk.open(&path, Access::CreateDirect).map_err(|error| Error::io("create", &path, error))?;
        // The number is taken first: a file with a number that an alter does not count as old is written as that says.
        let now = self.core.table_info(self.table.id);
        let options = &now.as_ref().unwrap_or(&self.table).options;
        let filter = if self.bottom { options.filters.deepest } else { options.filters.upper };
        let options = options.build(filter, self.core.options.compat);
        let builder = Builder::new(file, path.clone(), self.core.machine.random.next_u64(), options);
        let builder = builder.with_origin(origin::encode(&self.table));
        Ok(Open { builder, number, path, look_at: 0 })
    }

    /// Finishes the open file, which ends before `cut`; `None` is the end of all keys.
    fn close(&mut self, cut: Option<&[u8]>) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let outcome = self.cut_erase(&mut open.builder, cut).and_then(|()| Ok(open.builder.finish()?));
        match outcome {
            Ok(meta) => {
                self.written.push(Written { number: open.number, path: open.path, meta });
                self.memory.set(written_bytes(&self.written));
                Ok(())
            }
            Err(error) => {
                remove(&self.core, &open.path);
                Err(error)
            }
        }
    }

    /// Writes what lies before `cut` of the range erase that waits.
    fn cut_erase(&mut self, builder: &mut Builder, cut: Option<&[u8]>) -> Result<()> {
        let Some(erase) = self.erase.take_if(|erase| cut.is_none_or(|cut| erase.start.as_slice() < cut)) else {
            return Ok(());
        };
        let RangeErase { start, end, versions } = erase;
        match cut.filter(|&cut| end.as_deref().is_none_or(|end| cut < end)) {
            Some(cut) => {
                builder.add_range_erase(&start, Some(cut), &versions)?;
                self.erase = Some(RangeErase { start: cut.to_vec(), end, versions });
            }
            None => builder.add_range_erase(&start, end.as_deref(), &versions)?,
        }
        Ok(())
    }

    /// Finishes the last file and returns all of them.
    pub fn finish_files(mut self) -> Result<Vec<(u64, Meta)>> {
        self.write_erase()?;
        self.close(None)?;
        let directory = &self.core.directory;
        self.core.machine.disk.sync_dir(directory).map_err(|error| Error::io("sync", directory, error))?;
        self.finished = true;
        Ok(self.written.iter().map(|written| (written.number, written.meta.clone())).collect())
    }

    /// Finishes the last file and returns the edits that add all files to `level`, and their bytes.
    pub fn finish(self, level: u8, version_offset: u64) -> Result<(Vec<Edit>, u64)> {
        let (table, epoch) = (self.table.id, self.core.epoch);
        let files = self.finish_files()?;
        let bytes = files.iter().map(|(_, meta)| meta.file_bytes).sum();
        let add = |(number, meta)| Edit::AddFile { table, level, number, epoch, version_offset, meta };
        Ok((files.into_iter().map(add).collect(), bytes))
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some(Open { builder, path, .. }) = self.open.take() {
            drop(builder);
            remove(&self.core, &path);
        }
        for Written { path, .. } in &self.written {
            remove(&self.core, path);
        }
    }
}

/// Memory of a range erase that waits.
fn erase_bytes(erase: &RangeErase) -> u64 {
    let keys = erase.start.capacity() + erase.end.as_ref().map_or(0, Vec::capacity);
    (keys + erase.versions.capacity() * size_of::<Version>()) as u64
}

/// Memory of what is known of finished files.
fn written_bytes(written: &[Written]) -> u64 {
    written
        .iter()
        .map(|file| (size_of::<Written>() + file.path.as_os_str().len() + file.meta.heap_bytes()) as u64)
        .sum()
}

/// Removes a file that is not part of the database. One that cannot be removed is an orphan for the next open.
fn remove(core: &Core, path: &std::path::Path) {
    core.machine.disk.remove(path).ok();
}

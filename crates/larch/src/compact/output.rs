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
    /// Sorted and disjoint; those before `next_erase` are in files, or in parts.
    erases: Vec<RangeErase>,
    next_erase: usize,
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
    /// Files of about `file_bytes`; `erases` are sorted, disjoint and already without versions that nobody needs.
    pub fn new(
        core: &Arc<Core>,
        table: &Arc<TableInfo>,
        file_bytes: u64,
        mut erases: Vec<RangeErase>,
        bottom: bool,
    ) -> Self {
        erases.retain(|erase| !erase.versions.is_empty());
        Self {
            core: core.clone(),
            table: table.clone(),
            file_bytes,
            erases,
            next_erase: 0,
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
        let mut bytes = self.open.as_ref().map_or(0, |open| open.builder.file_bytes());
        if bytes >= self.file_bytes && self.open.as_ref().is_some_and(|open| open.builder.last_key() != key) {
            self.close(Some(key))?;
            bytes = 0;
        }
        if self.open.is_none() {
            self.open = Some(self.create()?);
        }
        let open = self.open.as_mut().expect("created above");
        if bytes >= open.look_at {
            open.look_at = bytes + LOOK_BYTES;
            self.memory.set(open.builder.memory_bytes() + written_bytes(&self.written));
        }
        Ok(open.builder.add(key, version, kind, parts)?)
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
        let outcome = self.add_erases(&mut open.builder, cut).and_then(|()| Ok(open.builder.finish()?));
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

    /// Writes the erases that begin before `cut`, cut there.
    fn add_erases(&mut self, builder: &mut Builder, cut: Option<&[u8]>) -> Result<()> {
        while let Some(erase) = self.erases.get_mut(self.next_erase) {
            if cut.is_some_and(|cut| cut <= erase.start.as_slice()) {
                break;
            }
            let goes_on = match (cut, erase.end.as_deref()) {
                (Some(cut), Some(end)) => cut < end,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if goes_on {
                builder.add_range_erase(&erase.start, cut, &erase.versions)?;
                erase.start = cut.expect("it goes on after the cut").to_vec();
                break;
            }
            builder.add_range_erase(&erase.start, erase.end.as_deref(), &erase.versions)?;
            self.next_erase += 1;
        }
        Ok(())
    }

    /// Finishes the last file and returns all of them.
    pub fn finish_files(mut self) -> Result<Vec<(u64, Meta)>> {
        if self.open.is_none() && self.next_erase < self.erases.len() {
            self.open = Some(self.create()?);
        }
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

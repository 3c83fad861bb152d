//! Writes sorted rows and range erases to files of limited size, which end between two keys. A row has one part for
//! each column group of the table. The files are removed again unless they are installed. This module does not know
//! where the rows come from.

use crate::base::error::{Error, Result};
use crate::base::parts::Slices;
use crate::base::table::TableInfo;
use crate::core::Core;
use crate::core::environment::Environment;
use crate::gauge::Holding;
use crate::manifest::db_file::sst_name;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::directory::place::Place;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{Level, NewFile, origin};
use os::sync::{Arc, Mutex};
use os::{Access, File};
use sst::{BuildOptions, CopiedPage, KeyBounds, KeyRange, Meta, RangeErase, RowKind, SstBuilder, Until, Version};
use std::io::ErrorKind;
use std::path::PathBuf;

/// The builder's memory is measured each time the file has grown by this many bytes.
const MEASURE_BYTES: u64 = 64 << 10;

/// A file may end early, where a file of the deeper level begins, once it has the usual length divided by this
/// number.
const LEAST_SHARE: u64 = 4;

/// One file with the rows of several tables, each in a part of the file that is an SST of its own. The file is
/// created when the first part begins. A manifest cannot name such a file.
pub struct OneFile {
    place: Place,
    begun: Mutex<Option<BegunFile>>,
}

struct BegunFile {
    file: Arc<dyn File>,
    path: PathBuf,
    number: u64,
    file_id: u64,
    /// Where the next part begins.
    end: u64,
}

impl OneFile {
    /// A file that will be created at `place`.
    pub fn at(place: &Place) -> Arc<Self> {
        Arc::new(Self { place: place.clone(), begun: Mutex::default() })
    }

    /// Makes all parts durable, and readable by others. Does nothing if no part was begun.
    ///
    /// # Errors
    ///
    /// Fails if the disk refuses something.
    pub fn sync(&self) -> Result<()> {
        let begun = self.begun.lock();
        let Some(begun) = &*begun else { return Ok(()) };
        begun.file.sync().map_err(|error| Error::io("sync", &begun.path, error))
    }
}

/// Where outputs go.
#[derive(Clone)]
pub enum Target {
    /// Files in the directory of the database.
    Database,
    /// Files at a place.
    Place(Place),
    /// As the next parts of one file.
    One(Arc<OneFile>),
}

impl Target {
    /// The disk and the directory where outputs go, in a database with the environment `env`.
    pub fn place(&self, env: &Environment) -> Place {
        match self {
            Self::Database => env.place(),
            Self::Place(place) => place.clone(),
            Self::One(one) => one.place.clone(),
        }
    }
}

/// The files that are being written for one table.
pub struct Outputs {
    core: Arc<Core>,
    table: Arc<TableInfo>,
    place: Place,
    /// The file, if the outputs are parts of one file.
    one: Option<Arc<OneFile>>,
    file_bytes: u64,
    /// The files of a deeper level, in key order. An output that is long enough (see [`LEAST_SHARE`]) ends where
    /// one of them begins, so that it overlaps few of them when it is merged into their level later.
    below: Level,
    /// How many files of `below` begin at or before the last key.
    passed_below: usize,
    /// The last range erase, or the part of it that was not written yet. It is held back because the next one may
    /// continue it, or the file may end before its end.
    erase: Option<RangeErase>,
    /// Whether no deeper level has keys in the range of these rows. An erase is then dropped unless an older
    /// version of its key follows. This also decides which filter the files get.
    bottom: bool,
    /// Whether background threads write the bytes to the disk while this thread adds rows.
    writes_behind: bool,
    /// Whether the rows belong to a transaction that has not committed.
    is_run: bool,
    /// Erases of the key `held_key`, which are written only if an older version of it follows.
    held_back: Vec<Version>,
    held_key: Vec<u8>,
    open: Option<OpenFile>,
    /// The numbers and metas of finished files.
    written: Vec<(u64, Meta)>,
    /// The paths of the open file and of the finished files.
    fresh: FreshFiles,
    /// The memory of these fields.
    memory: Holding,
}

struct OpenFile {
    builder: SstBuilder,
    number: u64,
    /// The length of the file, in bytes, at which the builder's memory is measured again.
    measure_at: u64,
}

impl Outputs {
    /// Outputs of about `file_bytes` each. `bottom` means that no deeper level has keys in the range of the rows.
    pub fn new(core: &Arc<Core>, table: &Arc<TableInfo>, file_bytes: u64, bottom: bool) -> Self {
        let place = core.env.place();
        Self {
            core: core.clone(),
            table: table.clone(),
            fresh: FreshFiles::new(&place.leftovers),
            place,
            one: None,
            file_bytes,
            below: Level::default(),
            passed_below: 0,
            erase: None,
            bottom,
            writes_behind: false,
            is_run: false,
            held_back: Vec::new(),
            held_key: Vec::new(),
            open: None,
            written: Vec::new(),
            memory: core.env.held.builders.holding(),
        }
    }

    /// Lets background threads write to the disk while the caller adds rows. The caller must not run on one of
    /// them.
    pub fn with_writes_behind(self) -> Self {
        Self { writes_behind: true, ..self }
    }

    /// With `is_run`, the rows belong to a transaction that has not committed.
    pub fn of_run(self, is_run: bool) -> Self {
        Self { is_run, ..self }
    }

    /// Writes the files to `place`.
    pub fn at(self, place: &Place) -> Self {
        Self { fresh: FreshFiles::new(&place.leftovers), place: place.clone(), ..self }
    }

    /// Writes the outputs to `target`.
    pub fn to(self, target: &Target) -> Self {
        match target {
            Target::Database => self,
            Target::Place(place) => self.at(place),
            Target::One(one) => Self { one: Some(one.clone()), ..self.at(&one.place) },
        }
    }

    /// Lets files end early where files of the deeper level `below` begin.
    pub fn with_borders(self, below: Level) -> Self {
        Self { below, ..self }
    }

    /// Adds a version whose parts are joined in one value, as in the log and the memtables. The order is that of
    /// [`Outputs::add`].
    ///
    /// # Errors
    ///
    /// Fails with [`Error::BadParts`] if the value does not consist of the parts that the table has, and as
    /// [`Outputs::add`] does.
    pub fn add_joined(
        &mut self,
        key: &[u8],
        version: Version,
        (kind, until): (RowKind, Option<Until>),
        value: &[u8],
    ) -> Result<()> {
        let count = self.table.options.groups.len();
        match kind {
            RowKind::Erase => self.add(key, version, (kind, until), &[]),
            _ if count < 2 => self.add(key, version, (kind, until), &[value]),
            _ => match Slices::of(value, count) {
                Some(parts) => self.add(key, version, (kind, until), &parts),
                None => Err(Error::BadParts { table: self.table.name.clone(), key: key.into(), parts: count }),
            },
        }
    }

    /// Adds a put whose key comes after all other keys. Adds nothing and returns false if [`Outputs::take_back`]
    /// could not remove it again.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be created or written.
    #[inline]
    pub fn try_add(&mut self, key: &[u8], version: Version, value: &[u8]) -> Result<bool> {
        let builder = self.builder_at(key)?;
        let can_take_back = builder.can_take_back(&[value]);
        if can_take_back {
            builder.add(key, version, RowKind::Put, &[value])?;
        }
        Ok(can_take_back)
    }

    /// Removes the row that the last [`Outputs::try_add`] added.
    pub fn take_back(&mut self) {
        self.open.as_mut().expect("it is in the open file").builder.take_back();
    }

    /// The key of the last row in the open file, if it has rows.
    #[inline]
    pub fn last_key(&self) -> Option<&[u8]> {
        self.open.as_ref().filter(|open| open.builder.rows() > 0).map(|open| open.builder.last_key())
    }

    /// Adds a version of a row. Keys must ascend, and the versions of a key must come newest first. A put has one
    /// part for each column group, and an erase has no parts. A put until a time has this time.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be created or written.
    pub fn add(
        &mut self,
        key: &[u8],
        version: Version,
        (kind, until): (RowKind, Option<Until>),
        parts: &[&[u8]],
    ) -> Result<()> {
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
                self.write(key, self.held_back[i], (RowKind::Erase, None), &[])?;
            }
            self.held_back.clear();
        }
        self.write(key, version, (kind, until), parts)
    }

    /// Adds a whole page of another file, whose keys, `first` to `last`, come after all keys so far. Adds nothing
    /// and returns false if the rows have to be added one by one: because some of the page's erases may be dropped,
    /// because the file might end within the page, or because [`SstBuilder::add_page`] refuses it.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be created or written.
    pub fn add_page(&mut self, first: &[u8], last: &[u8], page: &CopiedPage) -> Result<bool> {
        if self.bottom && page.erased() > 0 {
            return Ok(false);
        }
        let file_bytes = self.file_bytes;
        let open_bytes = self.builder_at(first)?.file_bytes() + page.bytes() as u64;
        let has_border = self.below.get(self.passed_below).is_some_and(|file| file.sst.bounds().low.as_slice() <= last);
        if is_long_enough(open_bytes, file_bytes, has_border) && has_border {
            return Ok(false);
        }
        self.held_back.clear();
        Ok(self.open.as_mut().expect("it takes the first key").builder.add_page(page)?)
    }

    fn write(
        &mut self,
        key: &[u8],
        version: Version,
        (kind, until): (RowKind, Option<Until>),
        parts: &[&[u8]],
    ) -> Result<()> {
        let builder = self.builder_at(key)?;
        match until {
            None => {
                if kind == RowKind::Merge {
                    builder.note_merges();
                }
                builder.add(key, version, kind, parts)?;
            }
            Some(until) => builder.add_until(key, version, until, parts)?,
        }
        Ok(())
    }

    /// Adds a range erase. Range erases must be sorted and must not overlap, and each must come before the rows at
    /// and after its start. One without versions is ignored.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be created or written.
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

    /// Writes the held-back range erase, if there is one.
    fn write_erase(&mut self) -> Result<()> {
        let Some(RangeErase { keys, versions }) = self.erase.take() else { return Ok(()) };
        Ok(self.builder_at(&keys.start)?.add_range_erase(&keys, &versions)?)
    }

    /// The builder for a row or a range erase at `key`. If the open file is long enough, begins a new one at `key`.
    fn builder_at(&mut self, key: &[u8]) -> Result<&mut SstBuilder> {
        let mut bytes = self.open.as_ref().map_or(0, |open| open.builder.file_bytes());
        if is_long_enough(bytes, self.file_bytes, self.crosses_border(key))
            && self.open.as_ref().is_some_and(|open| !open.builder.is_empty() && open.builder.last_key() < key)
        {
            self.close(Some(key))?;
            bytes = 0;
        }
        if self.open.is_none() {
            self.open = Some(self.create()?);
        }
        let open = self.open.as_mut().expect("created above");
        if bytes >= open.measure_at {
            open.measure_at = bytes + MEASURE_BYTES;
            let waiting = self.erase.as_ref().map_or(0, erase_bytes) + self.fresh.memory_bytes();
            self.memory.set(open.builder.memory_bytes() + written_bytes(&self.written) + waiting);
        }
        Ok(&mut open.builder)
    }

    /// Whether a file of the deeper level begins after the last key and at or before `key`, the next one.
    fn crosses_border(&mut self, key: &[u8]) -> bool {
        let before = self.passed_below;
        while self.below.get(self.passed_below).is_some_and(|file| file.sst.bounds().low.as_slice() <= key) {
            self.passed_below += 1;
        }
        self.passed_below > before
    }

    fn create(&mut self) -> Result<OpenFile> {
        if let Some(one) = self.one.clone() {
            return self.create_part(&one);
        }
        let (number, now) = {
            let _numbering = self.core.writes.numbering.read();
            (self.core.writes.new_number(), self.core.views.table_info(self.table.id))
        };
        let (file, path) = self.create_file(number)?;
        let file_id = self.core.env.machine.random.next_u64();
        let builder = SstBuilder::new(file, path, file_id, self.build_options(now.as_ref()));
        Ok(self.begin(builder, number))
    }

    /// Begins the next part of `one`, and creates the file before the first part.
    fn create_part(&mut self, one: &OneFile) -> Result<OpenFile> {
        let mut begun = one.begun.lock();
        if begun.is_none() {
            let number = self.core.writes.new_number();
            let (file, path) = self.create_file(number)?;
            let file_id = self.core.env.machine.random.next_u64();
            *begun = Some(BegunFile { file, path, number, file_id, end: 0 });
        }
        let BegunFile { file, path, number, file_id, end } = begun.as_ref().expect("it was begun above");
        let builder = SstBuilder::new(file.clone(), path.clone(), *file_id, self.build_options(None)).at_offset(*end);
        Ok(self.begin(builder, *number))
    }

    fn create_file(&mut self, number: u64) -> Result<(Arc<dyn File>, PathBuf)> {
        self.core.writes.check_number(number)?;
        let path = self.place.directory.join(sst_name(number, self.core.env.epoch));
        let file = self.place.disk.open(&path, Access::CreateDirect);
        // A file that existed already was not made here, so it must not be removed later.
        if !file.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
            self.fresh.add(path.clone());
        }
        Ok((file.map_err(|error| Error::io("create", &path, error))?, path))
    }

    /// The options for building files: those of `now`, the current state of the table, or else those that the table
    /// had when these outputs began.
    fn build_options(&self, now: Option<&Arc<TableInfo>>) -> BuildOptions {
        let options = &now.unwrap_or(&self.table).options;
        let filter = if self.bottom { options.filters.deepest } else { options.filters.upper };
        options.build(filter, self.core.env.options.compat)
    }

    fn begin(&self, builder: SstBuilder, number: u64) -> OpenFile {
        let database = self.core.views.newest().files.database;
        let mut builder = builder.with_origin(origin::encode(database, &self.table, self.is_run));
        if self.writes_behind {
            builder = builder.with_writes_behind(Arc::clone(&self.core.env.machine.threads));
        }
        OpenFile { builder, number, measure_at: 0 }
    }

    /// Called when a file that begins at `low` could be taken over, and all rows so far lie before `low`. Returns
    /// whether that file may follow the outputs: the open file must be long enough to end early, and its bounds
    /// must end before `low`. If so, finishes the open file. If no file is open, that file may follow unless a
    /// held-back range erase begins at or before `low`.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written.
    pub fn end_before(&mut self, low: &[u8]) -> Result<bool> {
        let Some(open) = &self.open else {
            // A held-back range erase would begin the next output.
            return Ok(self.erase.as_ref().is_none_or(|erase| erase.keys.start.as_slice() > low));
        };
        let ends_before = KeyBounds::cut(low, open.builder.last_key()).high.is_some_and(|high| high.as_slice() < low);
        if !is_fair_length(open.builder.file_bytes(), self.file_bytes) || !ends_before {
            return Ok(false);
        }
        self.close(Some(low))?;
        Ok(true)
    }

    /// Finishes the open file, which must end before `cut`. Without `cut`, it is the last file.
    fn close(&mut self, cut: Option<&[u8]>) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        self.cut_erase(&mut open.builder, cut)?;
        let meta = open.builder.finish()?;
        if let Some(begun) = self.one.as_ref().map(|one| one.begun.lock()).as_deref_mut() {
            begun.as_mut().expect("the part was begun").end = meta.file_bytes;
        }
        self.written.push((open.number, meta));
        self.memory.set(written_bytes(&self.written) + self.fresh.memory_bytes());
        Ok(())
    }

    /// Writes the part of the held-back range erase that lies before `cut`.
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

    /// Finishes the last file, and returns all files, for `level`. Readers will add `version_offset` to all
    /// versions in them.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written, or if the directory cannot be synced.
    pub fn finish(mut self, level: u8, version_offset: u64) -> Result<NewFiles> {
        self.write_erase()?;
        self.close(None)?;
        if self.one.is_none() {
            let Place { disk, directory, .. } = &self.place;
            disk.sync_dir(directory).map_err(|error| Error::io("sync", directory, error))?;
        }
        let (table, epoch) = (self.table.id, self.core.env.epoch);
        let new = |(number, meta)| NewFile { table, level, number, epoch, version_offset, meta };
        Ok(NewFiles { files: self.written.into_iter().map(new).collect(), fresh: self.fresh })
    }
}

/// Whether a file of `bytes` so far should end before the next key. `at_border` means that a file of the deeper
/// level begins between the last key and the next.
pub fn is_long_enough(bytes: u64, file_bytes: u64, at_border: bool) -> bool {
    bytes >= file_bytes || (at_border && is_fair_length(bytes, file_bytes))
}

/// Whether a file of `bytes` so far is long enough to end at a border. A usual file has about `file_bytes`.
pub fn is_fair_length(bytes: u64, file_bytes: u64) -> bool {
    bytes >= file_bytes / LEAST_SHARE
}

/// The memory of a held-back range erase, in bytes.
fn erase_bytes(erase: &RangeErase) -> u64 {
    (erase.keys.heap_bytes() + erase.versions.capacity() * size_of::<Version>()) as u64
}

/// The memory of the numbers and metas of finished files, in bytes.
fn written_bytes(written: &[(u64, Meta)]) -> u64 {
    written.iter().map(|(_, meta)| (size_of::<(u64, Meta)>() + meta.heap_bytes()) as u64).sum()
}

#[cfg(test)]
mod tests;

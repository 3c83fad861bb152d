//! Writes sorted rows and range erases to files of a bounded size, each of which ends between two keys. A row comes
//! in parts, one for each column group of the table. It does not know where rows come from. The files are removed
//! unless they are installed (see `install.rs`).

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
use sst::{BuildOptions, CopiedPage, KeyBounds, KeyRange, Meta, RangeErase, RowKind, SstBuilder, Version};
use std::io::ErrorKind;
use std::path::PathBuf;

/// The memory of the builder is measured each time the file has grown by this many bytes.
const MEASURE_BYTES: u64 = 64 << 10;

/// A file that ends at a border of the deeper level has at least this part of the length of other files: 4 stands
/// for 1/4.
const LEAST_SHARE: u64 = 4;

/// One file for the rows of several tables, each in a part of its own that is an SST. It is made when the first part
/// begins. No manifest can name it.
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
    /// A file at `place`.
    pub fn at(place: &Place) -> Arc<Self> {
        Arc::new(Self { place: place.clone(), begun: Mutex::default() })
    }

    /// Makes all parts readable by others and durable, if any exist.
    ///
    /// # Errors
    ///
    /// What the disk refuses.
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
    /// The next parts of a file.
    One(Arc<OneFile>),
}

impl Target {
    /// The place, of a database on `env`.
    pub fn place(&self, env: &Environment) -> Place {
        match self {
            Self::Database => env.place(),
            Self::Place(place) => place.clone(),
            Self::One(one) => one.place.clone(),
        }
    }
}

/// Files being written for one table.
pub struct Outputs {
    core: Arc<Core>,
    table: Arc<TableInfo>,
    place: Place,
    /// The one file whose parts are written, if the outputs are not separate files.
    one: Option<Arc<OneFile>>,
    file_bytes: u64,
    /// Files of a deeper level, in the order of their keys. If an output has a fair length when one of these files
    /// begins, it ends there. So it overlaps few of these files when it is merged into their level.
    below: Level,
    /// How many files of `below` begin at the last key or before it.
    passed_below: usize,
    /// The range erase that was added last, or the part of it that is in no file yet. The next range erase may continue
    /// it, and the end of the file may cut it, so it is not written at once.
    erase: Option<RangeErase>,
    /// Whether no deeper level has keys in the range, so that an erase that hides nothing is left out. It also decides
    /// which filter the files get.
    bottom: bool,
    /// Whether other threads write to the disk while rows are added.
    writes_behind: bool,
    /// Whether the rows are of a transaction that has not committed.
    is_run: bool,
    /// Erases of the current key, which are written only if an older version follows.
    held_back: Vec<Version>,
    held_key: Vec<u8>,
    open: Option<OpenFile>,
    /// Numbers and metas of finished files.
    written: Vec<(u64, Meta)>,
    /// The open file and the finished ones.
    fresh: FreshFiles,
    /// The memory of all these fields.
    memory: Holding,
}

struct OpenFile {
    builder: SstBuilder,
    number: u64,
    /// When the file has this length in bytes, the memory of the builder is measured again.
    measure_at: u64,
}

impl Outputs {
    /// For files of about `file_bytes`. `bottom` says that no deeper level has keys in their range.
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

    /// From now on other threads write to the disk while rows are added. It is for a caller that is not one of these
    /// threads.
    pub fn with_writes_behind(self) -> Self {
        Self { writes_behind: true, ..self }
    }

    /// The same files, with rows of a transaction that has not committed, if `is_run`.
    pub fn of_run(self, is_run: bool) -> Self {
        Self { is_run, ..self }
    }

    /// The same files, written to `place`.
    pub fn at(self, place: &Place) -> Self {
        Self { fresh: FreshFiles::new(&place.leftovers), place: place.clone(), ..self }
    }

    /// The same files, written to `target`.
    pub fn to(self, target: &Target) -> Self {
        match target {
            Target::Database => self,
            Target::Place(place) => self.at(place),
            Target::One(one) => Self { one: Some(one.clone()), ..self.at(&one.place) },
        }
    }

    /// The same files, which also end where the files of the deeper level `below` begin.
    pub fn with_borders(self, below: Level) -> Self {
        Self { below, ..self }
    }

    /// Adds a version whose value is in one piece, as log and memory have it. The order is that of [`Outputs::add`].
    ///
    /// # Errors
    ///
    /// [`Error::BadParts`] if the value is not made of the parts that the table has; as [`Outputs::add`].
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

    /// Adds a put, whose key comes after all others, if [`Outputs::take_back`] can take it out again. If not, it
    /// adds nothing and returns false.
    ///
    /// # Errors
    ///
    /// A file could not be created or written.
    #[inline]
    pub fn try_add(&mut self, key: &[u8], version: Version, value: &[u8]) -> Result<bool> {
        let builder = self.builder_at(key)?;
        let can_take_back = builder.can_take_back(&[value]);
        if can_take_back {
            builder.add(key, version, RowKind::Put, &[value])?;
        }
        Ok(can_take_back)
    }

    /// Takes out the row that [`Outputs::try_add`] added last.
    pub fn take_back(&mut self) {
        self.open.as_mut().expect("it is in the open file").builder.take_back();
    }

    /// Key of the last row of the open file, if it has one.
    #[inline]
    pub fn last_key(&self) -> Option<&[u8]> {
        self.open.as_ref().filter(|open| open.builder.rows() > 0).map(|open| open.builder.last_key())
    }

    /// Adds a version of a row. Keys come in ascending order, and the versions of a key from the newest to the oldest.
    /// A put has a part for each group, an erase has none.
    ///
    /// # Errors
    ///
    /// A file could not be created or written.
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

    /// Adds a whole page of another file, with keys from `first` to `last`, which come after all keys so far. Adds
    /// nothing and returns false if the rows of the page have to be added one after the other: if erases are to be
    /// left out, if the file may end at one of the rows, or for the reasons of [`SstBuilder::add_page`].
    ///
    /// # Errors
    ///
    /// A file could not be created or written.
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

    fn write(&mut self, key: &[u8], version: Version, kind: RowKind, parts: &[&[u8]]) -> Result<()> {
        Ok(self.builder_at(key)?.add(key, version, kind, parts)?)
    }

    /// Adds a range erase. They are sorted and disjoint, and each is added before the rows from its start on. A range
    /// erase without versions is ignored.
    ///
    /// # Errors
    ///
    /// A file could not be created or written.
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

    /// Writes the whole of the range erase that waits, if one exists.
    fn write_erase(&mut self) -> Result<()> {
        let Some(RangeErase { keys, versions }) = self.erase.take() else { return Ok(()) };
        Ok(self.builder_at(&keys.start)?.add_range_erase(&keys, &versions)?)
    }

    /// The builder of the file to which a row or range erase at `key` is added. If the open file is long enough,
    /// this is a new file, which begins at `key`.
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

    /// Whether a file of the deeper level begins after the last key and not after `key`, the next one.
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

    /// The next part of `one`, whose file is created before the first.
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
        // A file that was there before is not removed, whoever made it.
        if !file.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
            self.fresh.add(path.clone());
        }
        Ok((file.map_err(|error| Error::io("create", &path, error))?, path))
    }

    /// How the table is stored `now`. Without `now`, how it was stored when these outputs began.
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

    /// Finishes the open file if a file that begins at `low` may follow it. For this it must have a fair length, and
    /// its bounds must end before `low`, too. Returns whether the other file may follow; this is also so without an
    /// open file. All rows so far lie before `low`.
    ///
    /// # Errors
    ///
    /// A file could not be written.
    pub fn end_before(&mut self, low: &[u8]) -> Result<bool> {
        let Some(open) = &self.open else {
            // A range erase that is in no file yet would be the beginning of the next file.
            return Ok(self.erase.as_ref().is_none_or(|erase| erase.keys.start.as_slice() > low));
        };
        let ends_before = KeyBounds::cut(low, open.builder.last_key()).high.is_some_and(|high| high.as_slice() < low);
        if !is_fair_length(open.builder.file_bytes(), self.file_bytes) || !ends_before {
            return Ok(false);
        }
        self.close(Some(low))?;
        Ok(true)
    }

    /// Finishes the open file, which ends before `cut`. Without a `cut` it is the last file.
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

    /// Writes the part before `cut` of the range erase that waits.
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

    /// Finishes the last file and returns all files, for `level`. `version_offset` will be added to the versions in
    /// them.
    ///
    /// # Errors
    ///
    /// A file could not be written, or the directory could not be synced.
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

/// Whether a file of `bytes` ends before the next key. `at_border` says that a file of the deeper level begins between
/// the two.
pub fn is_long_enough(bytes: u64, file_bytes: u64, at_border: bool) -> bool {
    bytes >= file_bytes || (at_border && is_fair_length(bytes, file_bytes))
}

/// Whether a file of `bytes` has a fair length, so that it need not be made longer. Files have about `file_bytes`.
pub fn is_fair_length(bytes: u64, file_bytes: u64) -> bool {
    bytes >= file_bytes / LEAST_SHARE
}

/// The memory of a range erase that waits, in bytes.
fn erase_bytes(erase: &RangeErase) -> u64 {
    (erase.keys.heap_bytes() + erase.versions.capacity() * size_of::<Version>()) as u64
}

/// The memory of what is known of finished files, in bytes.
fn written_bytes(written: &[(u64, Meta)]) -> u64 {
    written.iter().map(|(_, meta)| (size_of::<(u64, Meta)>() + meta.heap_bytes()) as u64).sum()
}

#[cfg(test)]
mod tests;

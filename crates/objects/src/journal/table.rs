//! The files that grow, as all sheets up to one of them leave them: their names, and where in which sheets their bytes are. It
//! holds no bytes of files, and knows no store. Readers and writers apply the same changes in the same order, so they have the
//! same table.

use std::collections::{BTreeMap, BTreeSet};

/// How long the sheets in which writers took over stay: a week.
const BEGINS_KEPT_SECONDS: u64 = 7 * 24 * 3600;

/// The file of a branch that says which of its files lie with other databases.
pub const PARENTS: &str = "PARENTS";

/// Where a run of bytes of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first byte in the file.
    pub from: u64,
    /// The number of the sheet.
    pub sheet: u64,
    /// Its first byte in the sheet.
    pub at: u32,
    /// How many there are; not 0.
    pub bytes: u32,
}

impl Extent {
    /// The end in the file.
    pub fn end(&self) -> u64 {
        self.from + u64::from(self.bytes)
    }
}

/// Who writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// One more than that of the holder before.
    pub epoch: u64,
    /// When it took over: seconds since the Unix epoch, by its clock.
    pub since: u64,
    /// Machine and process, for people.
    pub who: String,
}

/// A database that was made of this one, and may need SSTs that lie here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where it lies in the store.
    pub prefix: String,
    /// The number of the sheet there with which it begins, if nobody was faster. It says which files it needs.
    pub sheet: u64,
    /// When it was asked for: seconds since the Unix epoch, by the clock of whoever did.
    pub since: u64,
}

/// One change of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The table as it is before the changes that follow in the sheet.
    Table(Table),
    /// A writer takes over.
    Begin(Holder),
    /// The file is cut at `from`, and goes on with the bytes that lie at `at` in the sheet.
    Write { file: u64, from: u64, at: u32, bytes: u32 },
    /// The name stands for this file, or for none.
    Name { name: String, file: Option<u64> },
    /// A branch is to be made, or needs nothing any more.
    Branch { id: u64, branch: Option<Branch> },
}

/// All files that grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub names: BTreeMap<String, u64>,
    /// The extents of each file, in their order and without gaps.
    pub files: BTreeMap<u64, Vec<Extent>>,
    /// Who took over last; `None` before the first.
    pub holder: Option<Holder>,
    /// The sheets in which writers took over within a week before the last, and when, in seconds since the Unix epoch.
    pub begins: BTreeMap<u64, u64>,
    /// Databases that were made of this one, by random numbers.
    pub branches: BTreeMap<u64, Branch>,
}

impl Table {
    /// The length of a file in bytes; 0 if nothing was written to it.
    pub fn len(&self, file: u64) -> u64 {
        self.files.get(&file).and_then(|extents| extents.last()).map_or(0, Extent::end)
    }

    /// The epoch of the holder; 0 before the first.
    pub fn epoch(&self) -> u64 {
        self.holder.as_ref().map_or(0, |holder| holder.epoch)
    }

    /// Applies the changes of a sheet.
    ///
    /// # Errors
    ///
    /// A change contradicts the table.
    pub fn apply(&mut self, sheet: u64, changes: &[Change]) -> Result<(), String> {
        for change in changes {
            match change {
                Change::Table(table) => self.clone_from(table),
                Change::Begin(holder) => {
                    if holder.epoch <= self.epoch() {
                        return Err(format!(
                            "a writer of epoch {} takes over after epoch {}",
                            holder.epoch,
                            self.epoch()
                        ));
                    }
                    self.holder = Some(holder.clone());
                    self.begins.retain(|_, since| since.saturating_add(BEGINS_KEPT_SECONDS) >= holder.since);
                    self.begins.insert(sheet, holder.since);
                }
                Change::Write { file, from, at, bytes } => {
                    if *from > self.len(*file) {
                        return Err(format!("a write at {from} leaves a gap in file {file:x}"));
                    }
                    let extents = self.files.entry(*file).or_default();
                    cut(extents, *from);
                    if *bytes > 0 {
                        extents.push(Extent { from: *from, sheet, at: *at, bytes: *bytes });
                    }
                }
                Change::Name { name, file: Some(file) } => {
                    self.names.insert(name.clone(), *file);
                }
                Change::Name { name, file: None } => {
                    self.names.remove(name);
                }
                Change::Branch { id, branch: Some(branch) } => {
                    self.branches.insert(*id, branch.clone());
                }
                Change::Branch { id, branch: None } => {
                    self.branches.remove(id);
                }
            }
        }
        // A file may have lost one name and got another.
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.files.retain(|file, _| named.contains(file));
        Ok(())
    }

    /// The sheets that have bytes of files.
    pub fn sheets(&self) -> BTreeSet<u64> {
        self.files.values().flatten().map(|extent| extent.sheet).collect()
    }
}

/// Cuts a file at `end`.
pub fn cut(extents: &mut Vec<Extent>, end: u64) {
    extents.truncate(extents.partition_point(|extent| extent.from < end));
    if let Some(last) = extents.last_mut().filter(|last| last.end() > end) {
        last.bytes = u32::try_from(end - last.from).expect("a part of an extent is shorter than all of it");
    }
}

//! The table is the result of all changes up to a given sheet: it has the names of the files that can grow, and
//! says which sheets have their bytes. The table has no bytes of files, and this module knows no store. Readers
//! and writers apply the same changes in the same order, so all of them have the same table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The most fences. A fence is needed as long as an earlier writer may still try to put its next sheet under the
/// same number. A writer that was killed never says that it has ended, so its fences stay. Because of this limit,
/// the number of such fences does not grow for ever.
const MOST_FENCES: usize = 1000;

/// If a writer takes over at least this many seconds after an earlier writer has taken over, sheets before the
/// earlier takeover may be removed if nobody needs them. The time is measured with two clocks: each writer notes its
/// takeover by its own clock.
const SETTLED_SECONDS: u64 = 24 * 3600;

/// The epoch of a sheet that a guest puts. A guest makes a branch. No writer has this epoch.
pub const GUEST: u64 = 0;

/// The epoch of a sheet with which a process takes over before it knows the epoch that it will have. No writer has
/// this epoch.
pub const CLAIM: u64 = u64::MAX;

/// The number of a file that the writer with this epoch makes; it is the writer's file number `count`. No other
/// writer makes a file with the same number.
pub fn new_file(epoch: u64, count: u64) -> u64 {
    epoch << 32 | count
}

/// The name of the file in the journal of a branch which says which SSTs are stored with other databases.
pub const PARENTS: &str = "PARENTS";

/// A piece of a file: says in which sheet its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The offset of the first byte in the file.
    pub from: u64,
    /// The number of the sheet that has the bytes.
    pub sheet: u64,
    /// The offset of the first byte in the sheet.
    pub at: u32,
    /// The number of bytes; not 0.
    pub bytes: u32,
}

impl Extent {
    /// The offset in the file after the last byte.
    pub fn end(&self) -> u64 {
        self.from + u64::from(self.bytes)
    }
}

/// The writer that took over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The epoch of this writer, which is one more than the epoch of the holder before it.
    pub epoch: u64,
    /// The time at which this writer took over, by its own clock: seconds since the Unix epoch.
    pub since: u64,
    /// A text for people that names the machine and the process of this writer.
    pub who: String,
}

/// The time during which the holder writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// A number that is only in the sheets with which this holder took over. It is 0 if the holder took over in
    /// the way of earlier releases, which had no such number.
    pub id: u64,
    /// The number of the first sheet with which this holder took over.
    pub sheet: u64,
    /// Whether the holder has said that it puts no more sheets.
    pub is_over: bool,
}

/// Two earlier takeovers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The first sheet of some writer, and the time at which this writer took over, in seconds since the Unix
    /// epoch. Both are 0 if there was no such takeover yet.
    pub sheet: u64,
    pub since: u64,
    /// The first sheet of another writer, which took over at least [`SETTLED_SECONDS`] before the writer of
    /// `sheet`.
    pub settled: u64,
}

/// The last sheet that is not of a guest, and the last writer that has changed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last {
    /// The number of the last sheet that changes files or with which a writer takes over.
    pub sheet: u64,
    /// The epoch of the last writer that has changed files.
    pub epoch: u64,
}

/// A database that was made as a branch of this database, and may need SSTs that are stored with this database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where the branch lies in the store.
    pub prefix: String,
    /// The number that the first sheet in the journal of the branch has, or will have. This sheet says which files
    /// the branch needs. If another process has put a sheet with this number first, the branch does not exist.
    pub sheet: u64,
    /// The time at which the making of the branch began, by the clock of the process that makes it: seconds since
    /// the Unix epoch.
    pub since: u64,
}

/// One change of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The whole table in its state before the other changes of the sheet.
    Table(Table),
    /// A writer takes over after it has read all earlier sheets. Writers of earlier releases took over in this
    /// way.
    Begin(Holder),
    /// A writer takes over, perhaps without having read all earlier sheets. Its epoch is the epoch of the writer
    /// before it plus 1, and its term has the number `id`. If the same process has put several such sheets, only
    /// the first of them changes the table.
    Claim { id: u64, since: u64, who: String },
    /// The holder says that it puts no more sheets.
    End,
    /// The file is cut at the offset `from`. Then `bytes` bytes are appended to it, which are at the offset `at`
    /// in the sheet.
    Write { file: u64, from: u64, at: u32, bytes: u32 },
    /// From now on the name stands for this file, or for no file.
    Name { name: String, file: Option<u64> },
    /// A branch is being made, or, if there is no `branch`, the branch `id` needs no files any more.
    Branch { id: u64, branch: Option<Branch> },
}

/// The state of all files that grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub names: BTreeMap<String, u64>,
    /// The extents of each file, in the order of their bytes and without gaps.
    pub files: BTreeMap<u64, Vec<Extent>>,
    /// The writer that took over last; `None` before the first takeover.
    pub holder: Option<Holder>,
    /// The term of the holder.
    pub term: Term,
    /// The fences. When an earlier writer tries to put its next sheet, it meets a fence, a sheet with the same
    /// number, and stops. The key is the number of the sheet. The value is the time at which another writer took
    /// over from that writer, in seconds since the Unix epoch. A fence stays, because a writer that has not said
    /// that it ended may still try to put its next sheet, however late.
    pub fences: BTreeMap<u64, u64>,
    /// Two earlier takeovers. They show which sheets have not been needed for a long time.
    pub marks: Marks,
    /// The branches of this database, by their random numbers.
    pub branches: BTreeMap<u64, Branch>,
    /// Unlike the other fields, this field is not written to sheets, because it follows from the number and the
    /// writer of the last sheet.
    pub last: Last,
}

impl Table {
    /// The length of a file in bytes; 0 if nothing was written to the file.
    pub fn len(&self, file: u64) -> u64 {
        self.files.get(&file).and_then(|extents| extents.last()).map_or(0, Extent::end)
    }

    /// The epoch of the holder; 0 before the first takeover.
    pub fn epoch(&self) -> u64 {
        self.holder.as_ref().map_or(0, |holder| holder.epoch)
    }

    /// Applies a sheet that was put by a writer of `epoch`, by a guest, or by a process that takes over.
    ///
    /// # Errors
    ///
    /// A text that names the change, if a change contradicts the table.
    pub fn apply(&mut self, sheet: u64, epoch: u64, changes: &[Change]) -> Result<(), String> {
        for change in changes {
            match change {
                Change::Table(table) => {
                    let last = self.last;
                    self.clone_from(table);
                    self.last = last;
                }
                Change::Begin(holder) => {
                    if holder.epoch <= self.epoch() {
                        return Err(format!(
                            "a writer of epoch {} takes over after epoch {}",
                            holder.epoch,
                            self.epoch()
                        ));
                    }
                    self.hold(holder.clone(), Term { id: 0, sheet, is_over: false }, sheet..=sheet);
                    self.fences.insert(sheet, holder.since);
                }
                Change::Claim { id, .. } if self.term.id == *id => {}
                Change::Claim { id, since, who } => {
                    let holder = Holder { epoch: self.epoch() + 1, since: *since, who: who.clone() };
                    // The earlier writer may try to put its next sheet under any number from its last sheet to
                    // this sheet.
                    let before = self.last.sheet + 1..=sheet;
                    self.hold(holder, Term { id: *id, sheet, is_over: false }, before);
                }
                Change::End => self.term.is_over = true,
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
                Change::Branch { .. } => self.apply_branch(change),
            }
        }
        self.last = match epoch {
            CLAIM => Last { sheet, ..self.last },
            // In earlier releases, guests put tables.
            GUEST if matches!(changes.first(), Some(Change::Table(_))) => {
                Last { sheet: sheet - 1, epoch: self.epoch() }
            }
            GUEST => self.last,
            _ => Last { sheet, epoch },
        };
        // A file that has lost one name may have another name, so all names are looked at.
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.files.retain(|file, _| named.contains(file));
        Ok(())
    }

    /// Applies the changes of branches, and no other changes.
    pub fn apply_branches(&mut self, changes: &[Change]) {
        changes.iter().for_each(|change| self.apply_branch(change));
    }

    fn apply_branch(&mut self, change: &Change) {
        match change {
            Change::Branch { id, branch: Some(branch) } => _ = self.branches.insert(*id, branch.clone()),
            Change::Branch { id, branch: None } => _ = self.branches.remove(id),
            _ => {}
        }
    }

    /// Makes `holder` the writer. `met` are the numbers under which the earlier writer may try to put its next
    /// sheet, so they become fences.
    fn hold(&mut self, holder: Holder, term: Term, met: RangeInclusive<u64>) {
        if self.holder.is_some() && !self.term.is_over {
            self.fences.extend(met.map(|sheet| (sheet, holder.since)));
            while self.fences.len() > MOST_FENCES {
                self.fences.pop_first();
            }
        }
        if self.marks.sheet == 0 || holder.since >= self.marks.since.saturating_add(SETTLED_SECONDS) {
            self.marks = Marks { sheet: term.sheet, since: holder.since, settled: self.marks.sheet };
        }
        (self.holder, self.term) = (Some(holder), term);
    }

    /// The numbers of the sheets that have bytes of files.
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

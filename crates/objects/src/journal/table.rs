//! The table of the files that grow, as it is after all sheets up to a given sheet: the names of these files, and
//! the sheets that have their bytes. The table holds no bytes of files, and knows no store. Readers and writers
//! apply the same changes in the same order, so all of them have the same table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The most fences. A fence is needed as long as an earlier writer may still try to put its next sheet there. A
/// writer that was killed never says that it has ended, so its fences stay. The limit keeps the number of such
/// fences from growing for ever.
const MOST_FENCES: usize = 1000;

/// If a writer took over at least so many seconds ago, the sheets that were useless at that time may be removed.
/// The beginning of this time is taken from the clock of the writer that took over, and its end from the clock of
/// the writer that ends.
const SETTLED_SECONDS: u64 = 24 * 3600;

/// The epoch of a sheet that a guest puts. A guest makes a branch. No writer has this epoch.
pub const GUEST: u64 = 0;

/// The epoch of a sheet with which a writer takes over before it knows its own epoch. No writer has this epoch.
pub const CLAIM: u64 = u64::MAX;

/// The number of a new file of the writer that has this epoch. No other writer makes a file with this number.
pub fn new_file(epoch: u64, count: u64) -> u64 {
    epoch << 32 | count
}

/// The name of the file that says which SSTs of a branch lie with other databases.
pub const PARENTS: &str = "PARENTS";

/// Where a run of bytes of a file lies.
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
    /// The offset in the file behind the last byte.
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
    /// The machine and the process of this writer, for people.
    pub who: String,
}

/// The time during which the holder writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// A number that only the sheets of this holder's takeover have. It is 0 if the holder took over like earlier
    /// releases, which had no such number.
    pub id: u64,
    /// The first sheet with which this holder took over.
    pub sheet: u64,
    /// Whether the holder has said that it puts no more sheets.
    pub is_over: bool,
}

/// Two moments at which writers took over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The first sheet of a writer, and the time at which that writer took over, in seconds since the Unix epoch; 0
    /// if no such sheet exists yet.
    pub sheet: u64,
    pub since: u64,
    /// The first sheet of a writer that took over at least [`SETTLED_SECONDS`] before the writer of `sheet` took
    /// over.
    pub settled: u64,
}

/// The last sheet that a writer has put, and its writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last {
    /// The number of the last sheet that changes files or with which a writer takes over.
    pub sheet: u64,
    /// The epoch of the last writer that has changed files.
    pub epoch: u64,
}

/// A database that was made as a branch of this database, and may need SSTs that lie here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where the branch lies in the store.
    pub prefix: String,
    /// The number of the first sheet in the branch's journal, unless somebody else has already put a sheet with
    /// that number. This sheet says which files the branch needs.
    pub sheet: u64,
    /// The time at which the branch was asked for, by the clock of the process that makes it: seconds since the
    /// Unix epoch.
    pub since: u64,
}

/// One change of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The whole table as it is before the next changes of the sheet.
    Table(Table),
    /// A writer that has read all earlier sheets takes over. Writers of earlier releases took over in this way.
    Begin(Holder),
    /// A writer takes over, and may not have read all earlier sheets. The epoch of the new writer is one more than
    /// that of the writer before it, and its term has the number `id`. A second claim by the same holder changes
    /// nothing.
    Claim { id: u64, since: u64, who: String },
    /// The holder puts no more sheets.
    End,
    /// The file is cut at `from`. Then the bytes that lie at `at` in the sheet are appended to it.
    Write { file: u64, from: u64, at: u32, bytes: u32 },
    /// From now on the name stands for this file, or for no file.
    Name { name: String, file: Option<u64> },
    /// A branch is to be made, or an existing branch no longer needs any file.
    Branch { id: u64, branch: Option<Branch> },
}

/// The state of all files that grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub names: BTreeMap<String, u64>,
    /// The extents of each file, in their order and without gaps.
    pub files: BTreeMap<u64, Vec<Extent>>,
    /// The writer that took over last; `None` before the first takeover.
    pub holder: Option<Holder>,
    /// The term of the holder.
    pub term: Term,
    /// The fences. A fence is a sheet that stops an earlier writer when that writer tries to put its next sheet.
    /// The key is the number of this sheet. The value is the time at which that writer was replaced, in seconds
    /// since the Unix epoch. Fences stay, because a writer that has not said that it ended may still put its next
    /// sheet, however late.
    pub fences: BTreeMap<u64, u64>,
    /// Two takeovers that tell which sheets became useless long ago.
    pub marks: Marks,
    /// The branches of this database, by their random numbers.
    pub branches: BTreeMap<u64, Branch>,
    /// This field is not written to sheets with the rest of the table, because it follows from the number and the
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
    /// If a change contradicts the table. The text says which change does.
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
                    // The earlier writer may put its next sheet under any number after its last sheet.
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
        // A file that has lost one name may have been given another name, so all names are looked at.
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

    /// Notes that a writer takes over. `met` are the numbers under which the earlier writer may try to put its next
    /// sheet.
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

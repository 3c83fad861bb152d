//! The files that grow, as all sheets up to one of them leave them: their names, and where in which sheets their bytes
//! are. It holds no bytes of files, and knows no store. Readers and writers apply the same changes in the same order,
//! so they have the same table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The most sheets that stay because a writer that never said that it ended would put its next one there. So their
/// number does not grow for ever with writers that are killed.
const MOST_FENCES: usize = 1000;

/// What was of no use when a writer took over so long ago, by its clock and by that of the writer that ends, has been
/// so for long enough.
const SETTLED_SECONDS: u64 = 24 * 3600;

/// The epoch of the sheet of a guest, who makes a branch. No writer has it.
pub const GUEST: u64 = 0;

/// The epoch of a sheet with which a writer takes over that does not know its own epoch yet. No writer has it.
pub const CLAIM: u64 = u64::MAX;

/// A file that the writer of an epoch makes. No other writer makes it.
pub fn new_file(epoch: u64, count: u64) -> u64 {
    epoch << 32 | count
}

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
    /// The number of its bytes; not 0.
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

/// The time in which the holder writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// A number that the sheets with which it takes over have, and no others; 0 if it took over as releases did that
    /// had none.
    pub id: u64,
    /// The first of these sheets.
    pub sheet: u64,
    /// Whether it has said that it puts no more.
    pub is_over: bool,
}

/// Two moments at which writers took over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The first sheet of a writer, and when it took over, in seconds since the Unix epoch; 0 if none exists yet.
    pub sheet: u64,
    pub since: u64,
    /// The first sheet of one that took over at least [`SETTLED_SECONDS`] before that.
    pub settled: u64,
}

/// The last sheet of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last {
    /// Its number. It changes files, or it takes over.
    pub sheet: u64,
    /// The epoch of the last writer that has changed files.
    pub epoch: u64,
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
    /// A writer takes over that has read all before, as writers of earlier releases did.
    Begin(Holder),
    /// A writer takes over that may not know yet what is before. Its epoch is one more than that of the writer before,
    /// and it has a term with this number. What the holder itself says again changes nothing.
    Claim { id: u64, since: u64, who: String },
    /// The holder puts no more.
    End,
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
    /// The time of the holder.
    pub term: Term,
    /// The sheets that writers before meet when they put their next one, and when they were taken over, in seconds
    /// since the Unix epoch. They stay: a writer that has not said that it ended may still put its next sheet, however
    /// late.
    pub fences: BTreeMap<u64, u64>,
    /// What was of no use long ago.
    pub marks: Marks,
    /// Databases that were made of this one, by random numbers.
    pub branches: BTreeMap<u64, Branch>,
    /// Not a part of a table in a sheet: it follows from the number and the writer of that one.
    pub last: Last,
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

    /// Applies a sheet, which was put by a writer of `epoch`, by a guest, or by one that takes over.
    ///
    /// # Errors
    ///
    /// A change contradicts the table.
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
                    // The writer before may stand before any of the sheets after its last one.
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
            // Guests of earlier releases have put tables.
            GUEST if matches!(changes.first(), Some(Change::Table(_))) => {
                Last { sheet: sheet - 1, epoch: self.epoch() }
            }
            GUEST => self.last,
            _ => Last { sheet, epoch },
        };
        // A file may have lost one name and got another.
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.files.retain(|file, _| named.contains(file));
        Ok(())
    }

    /// Applies what a sheet says of branches, and nothing else.
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

    /// A writer takes over. The one before would put its next sheet as one of `met`.
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

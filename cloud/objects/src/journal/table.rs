//! The result of all changes up to some sheet: the names of the files that can grow, and the sheets that have their
//! bytes. The table has no bytes of files, and this module knows no store. Readers and writers apply the same
//! changes in the same order, so they all have the same table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The most fences. A fence is needed as long as an earlier writer may still try to put its next sheet under the
/// same number. A writer that was killed never says that it has ended, so its fence would stay forever without this
/// limit.
const MOST_FENCES: usize = 1000;

/// If two takeovers are at least this many seconds apart, the later writer may remove sheets from before the
/// earlier takeover that nobody needs. Each writer notes its takeover by its own clock.
const SETTLED_SECONDS: u64 = 24 * 3600;

/// The epoch of a sheet by a guest, a process that makes a branch. No writer has it.
pub const GUEST: u64 = 0;

/// The epoch of a sheet with which a process takes over before it knows its own epoch. No writer has it.
pub const CLAIM: u64 = u64::MAX;

/// The number of file `count` of the writer with this epoch. No other writer makes a file with the same number.
pub fn new_file(epoch: u64, count: u64) -> u64 {
    epoch << 32 | count
}

/// The file in a branch's journal that says which SSTs are stored with other databases.
pub const PARENTS: &str = "PARENTS";

/// A piece of a file, and the place of its bytes in a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The piece's offset in the file.
    pub from: u64,
    /// The sheet that has the bytes.
    pub sheet: u64,
    /// The offset of the bytes in the sheet.
    pub at: u32,
    /// The length; not 0.
    pub bytes: u32,
}

impl Extent {
    /// The offset in the file just after the piece.
    pub fn end(&self) -> u64 {
        self.from + u64::from(self.bytes)
    }
}

/// The writer that took over last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The writer's epoch: one more than that of the holder before it.
    pub epoch: u64,
    /// When it took over, by its own clock, in seconds since the Unix epoch.
    pub since: u64,
    /// Names the machine and the process of this writer, for people.
    pub who: String,
}

/// A holder's time as the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// A random number that only the sheets of this takeover have. 0 for a takeover in the way of earlier releases,
    /// which had no such number.
    pub id: u64,
    /// The first sheet with which this holder took over.
    pub sheet: u64,
    /// Whether the holder has said that it puts no more sheets.
    pub is_over: bool,
}

/// Two earlier takeovers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The first sheet of some writer, and when that writer took over, in seconds since the Unix epoch. 0 if there
    /// was no takeover yet.
    pub sheet: u64,
    pub since: u64,
    /// The first sheet of the writer that was noted in `sheet` before it. That writer took over at least
    /// [`SETTLED_SECONDS`] earlier.
    pub settled: u64,
}

/// The last sheet that is not by a guest, and the last writer that has changed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last {
    /// The last sheet that changes files or takes over.
    pub sheet: u64,
    /// The epoch of the last writer that has changed files.
    pub epoch: u64,
}

/// A branch of this database: another database, which may need SSTs that are stored with this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The prefix of the branch in the store.
    pub prefix: String,
    /// The number of the first sheet in the branch's journal, which says what files the branch needs. If another
    /// process has put a sheet with this number first, the branch does not exist.
    pub sheet: u64,
    /// When the making of the branch began, by the clock of the process that makes it, in seconds since the Unix
    /// epoch.
    pub since: u64,
}

/// One change of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The whole table, as it is before the other changes of the sheet.
    Table(Table),
    /// A writer takes over after it has read all earlier sheets, as writers of earlier releases did.
    Begin(Holder),
    /// A writer takes over, perhaps without having read all earlier sheets. Its epoch is that of the writer before
    /// it plus 1, and the number of its term is `id`. Of several such sheets by the same process, only the first
    /// changes the table.
    Claim { id: u64, since: u64, who: String },
    /// The holder says that it puts no more sheets.
    End,
    /// The file is cut at the offset `from`, and then gets the `bytes` bytes at the offset `at` of the sheet.
    Write { file: u64, from: u64, at: u32, bytes: u32 },
    /// The name now stands for this file, or for no file.
    Name { name: String, file: Option<u64> },
    /// A branch is being made or, without `branch`, the branch `id` no longer needs files.
    Branch { id: u64, branch: Option<Branch> },
}

/// The state of all files that grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub names: BTreeMap<String, u64>,
    /// The extents of each file, in order and without gaps.
    pub files: BTreeMap<u64, Vec<Extent>>,
    /// The writer that took over last; `None` before the first takeover.
    pub holder: Option<Holder>,
    /// The term of the holder.
    pub term: Term,
    /// The fences: the sheets that an earlier writer meets when it tries to put its next sheet, so that it stops.
    /// Each has the time when another writer took over from that writer, in seconds since the Unix epoch. A fence
    /// stays, because a writer that has not said that it ended may still try to put its next sheet, however late.
    pub fences: BTreeMap<u64, u64>,
    /// Two earlier takeovers, which show which sheets have long been unneeded.
    pub marks: Marks,
    /// The branches of this database, by their random numbers.
    pub branches: BTreeMap<u64, Branch>,
    /// Not written to sheets, because it follows from the number and the writer of the last sheet.
    pub last: Last,
}

impl Table {
    /// The length of a file in bytes; 0 if nothing was written to it.
    pub fn len(&self, file: u64) -> u64 {
        self.files.get(&file).and_then(|extents| extents.last()).map_or(0, Extent::end)
    }

    /// The epoch of the holder; 0 before the first takeover.
    pub fn epoch(&self) -> u64 {
        self.holder.as_ref().map_or(0, |holder| holder.epoch)
    }

    /// Applies the changes of a sheet by the writer of `epoch`, a guest, or a process that takes over.
    ///
    /// # Errors
    ///
    /// A text that names a change which contradicts the table.
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
                    // The earlier writer may try to put its next sheet under any number from the one after its last
                    // sheet up to this sheet.
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
        // A file that has lost one name may have another, so look at all names.
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.files.retain(|file, _| named.contains(file));
        Ok(())
    }

    /// Applies only the changes of branches.
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

    /// Makes `holder` the writer. `met` are the numbers that the earlier writer may try next; they become fences.
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

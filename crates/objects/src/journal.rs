//! The journal: the sequence of sheets in a store, and the one writer that may add to it. It does not know what the files mean.
//!
//! ```text
//! writer 1    31  32  33  34                            35: there is one already, and it is not mine: I am fenced
//! writer 2                    35 takes over  36  37 …
//! ```
//!
//! Invariants:
//! - A sheet is put only if there is none with its number, and a writer puts sheet n + 1 only after it knows that sheet n is its
//!   own. So all sheets after one that takes over are of that writer, until the next one takes over.
//! - What is synced is in a sheet that is known to be there.
//! - Once a put has failed for good, or has met the sheet of another writer, nothing is put or removed any more: every later
//!   call reports the same error.
//! - A writer removes a sheet only if no bytes of files are in it and a later sheet has a table, and if both have been so for [`KEPT`] by
//!   its own clock, or for a day by its clock and that of an earlier writer. A writer that takes over puts its sheet within half of
//!   [`KEPT`] after it has begun to look, or looks again. So it does not put the sheet into a gap that a removal has left, although
//!   answers of the store may be a little old.
//! - The sheets in which writers took over stay for a week: the writer before finds them wherever it stopped. A writer that has
//!   put none for half of [`KEPT`] looks for a later sheet before it puts its next one, and after a put that took as long: so it
//!   puts none into a gap, unless a clock is wrong by a day.
//! - A guest, who makes a branch, puts a sheet by the same rules, and changes nothing but the list of branches. It takes nothing from
//!   the writer, who goes on after it.
//!
//! Thread safe. One put is under way at a time; what is written meanwhile goes with the next one, which is how commits share a
//! sheet. No lock is held while the store is asked, but for that of putting.

mod bringing;
mod guests;
mod sheet;
mod table;

pub use bringing::LeftFile;
pub use table::{Branch, PARENTS, Table};

use crate::again::Again;
use crate::put::{Put, put_once};
use os::store::RangeDone;
use os::sync::{Arc, Mutex};
use os::{Clock, Random, Store, Threads};
use sheet::{Sheet, SheetWriter, decode};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;
use table::{Change, Extent, Holder};

/// The folder of the sheets.
const FOLDER: &str = "journal";

/// How long a sheet stays after it is of no use any more. Answers of the store are assumed to be younger than a quarter of it;
/// those of the services that we know are never old.
pub const KEPT: Duration = Duration::from_secs(60);

/// A writer that has neither put nor looked for so long looks before it puts, and after a put that ended so long after that. No sheet
/// after its last one was removed before.
const UNSEEN: Duration = KEPT.checked_div(2).expect("it is not divided by 0");

/// What was of no use when a writer took over so long ago, by its clock and by that of the writer that ends, has been so for
/// [`KEPT`]. So processes that live shorter than that remove sheets, too.
const SETTLED: Duration = Duration::from_secs(24 * 3600);

/// The most sheets that a writer removes at its end, which waits for that, beside as many as it has put: so their number does not grow
/// with writers that put many in a short life.
const MOST_REMOVED_AT_END: usize = 256;

/// How often a writer takes over from the beginning, if the store is too slow to be sure of the place of its sheet.
const ATTEMPTS: u32 = 5;

/// Readers that find no next sheet look at the list of all sheets so often: theirs may have been removed while they slept.
pub const ASKS_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// How a journal is cut.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// One of so many sheets has a table.
    pub tables_every: u64,
    /// The most that one sheet has of files that a writer has left elsewhere, in bytes. A store takes no put of any length.
    pub brought_bytes: u64,
}

/// As journals are cut, but for tests.
pub const CUTS: Cuts = Cuts { tables_every: 64, brought_bytes: 64 << 20 };

/// What is not durable yet is put when it is so long, without waiting for a sync.
const MOST_PENDING_BYTES: u64 = 16 << 20;

/// Reads of sheets under way for one caller: a log of ten thousand small sheets does not take as many connections.
const READS_UNDER_WAY: usize = 64;

/// What a journal needs beside the store.
#[derive(Clone, Debug)]
pub struct Outside {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Tokens of sheets.
    pub random: Arc<dyn Random>,
    /// Where sheets are removed.
    pub threads: Arc<dyn Threads>,
    /// Machine and process, for people who want to know who writes.
    pub who: String,
}

/// The files that grow.
#[derive(Debug)]
pub struct Journal {
    store: Arc<dyn Store>,
    pub outside: Outside,
    cuts: Cuts,
    state: Mutex<State>,
    /// Held while a sheet is put.
    putting: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// All sheets before `next`, with the one that is being put.
    table: Table,
    /// The number of the next sheet; 0 if none was looked for yet.
    next: u64,
    /// Whether this process is the writer.
    is_writer: bool,
    /// The names as the writer has made them.
    names: BTreeMap<String, u64>,
    /// Names that differ from those of the table.
    changed_names: BTreeSet<String>,
    /// What was written after the last sheet, by file.
    pending: HashMap<u64, Pending>,
    /// How many files the writer has made.
    files_made: u64,
    /// How many sheets it has put since it took over.
    put: usize,
    /// Changes so far, and those that are durable.
    changes: u64,
    durable: u64,
    /// The sheet that was put last, until it is known to be there.
    under_way: Option<(u64, Arc<Vec<u8>>)>,
    since_table: u64,
    failed: Option<(ErrorKind, String)>,
    /// When the writer last knew that no other one has put a sheet.
    last_seen: Duration,
    last_list: Duration,
    /// Sheets of no use, and since when that is known.
    useless: BTreeMap<u64, Duration>,
    /// The last sheet in which a writer took over longer than [`SETTLED`] before this one.
    settled_begin: Option<u64>,
    /// The sheets that are there, as far as the writer knows.
    sheets: BTreeSet<u64>,
    /// Branches of the table that need nothing any more.
    gone_branches: BTreeSet<u64>,
}

/// The end of a file that is not in a sheet: the file is cut at `from` and goes on with `bytes`.
#[derive(Debug, Default)]
struct Pending {
    from: u64,
    bytes: Vec<u8>,
}

/// A sheet that is to be put.
struct NextSheet {
    number: u64,
    bytes: Arc<Vec<u8>>,
    /// How many changes are durable with it.
    changes: u64,
    /// When it was known last that no other writer has put a sheet.
    seen: Duration,
}

/// A piece of a file.
enum Piece {
    Bytes(Vec<u8>),
    InSheet { sheet: u64, range: Range<u64> },
}

impl State {
    fn check(&self) -> io::Result<()> {
        match &self.failed {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(()),
        }
    }

    fn check_writer(&self) -> io::Result<()> {
        self.check()?;
        if self.is_writer {
            return Ok(());
        }
        Err(io::Error::new(ErrorKind::PermissionDenied, "this process does not hold the lock of the database"))
    }

    fn len(&self, file: u64) -> u64 {
        match self.pending.get(&file) {
            Some(pending) => pending.from + pending.bytes.len() as u64,
            None => self.table.len(file),
        }
    }

    fn file(&self, name: &str) -> Option<u64> {
        let names = if self.is_writer { &self.names } else { &self.table.names };
        names.get(name).copied()
    }

    fn change_name(&mut self, name: &str, file: Option<u64>) {
        match file {
            Some(file) => self.names.insert(name.to_owned(), file),
            None => self.names.remove(name),
        };
        self.changed_names.insert(name.to_owned());
        self.changes += 1;
        // A file without a name is forgotten; what nobody can read need not be put.
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.pending.retain(|file, _| named.contains(file));
    }

    /// Where the bytes of a range of a file are, in order.
    fn pieces(&self, file: u64, range: Range<u64>) -> Vec<Piece> {
        let pending = self.pending.get(&file);
        let durable_end = pending.map_or(u64::MAX, |pending| pending.from).min(range.end);
        let mut pieces = Vec::new();
        for extent in self.table.files.get(&file).into_iter().flatten() {
            let (start, end) = (extent.from.max(range.start), extent.end().min(durable_end));
            if start >= end {
                continue;
            }
            let Extent { from, sheet, at, .. } = *extent;
            let range = u64::from(at) + (start - from)..u64::from(at) + (end - from);
            pieces.push(match &self.under_way {
                Some((number, bytes)) if *number == sheet => {
                    Piece::Bytes(bytes[range.start as usize..range.end as usize].to_vec())
                }
                _ => Piece::InSheet { sheet, range },
            });
        }
        if let Some(pending) = pending {
            let (start, end) = (range.start.max(pending.from), range.end.min(self.len(file)));
            if start < end {
                let bytes = &pending.bytes[(start - pending.from) as usize..(end - pending.from) as usize];
                pieces.push(Piece::Bytes(bytes.to_vec()));
            }
        }
        pieces
    }
}

/// The name of the object of a sheet.
fn name_of(sheet: u64) -> String {
    format!("{FOLDER}/{sheet:016}")
}

/// A file that the writer of an epoch makes. No other writer makes it.
fn new_file(epoch: u64, count: u64) -> u64 {
    epoch << 32 | count
}

/// The number in the name of an object.
fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(FOLDER)?.strip_prefix('/')?;
    digits.parse().ok().filter(|number| name_of(*number) == name)
}

fn corrupt(sheet: u64, why: &str) -> io::Error {
    let name = name_of(sheet);
    io::Error::new(ErrorKind::InvalidData, format!("{name} is corrupt: {why}; restore the database from a backup"))
}

impl Journal {
    pub fn new(store: Arc<dyn Store>, outside: Outside, cuts: Cuts) -> Journal {
        Journal { store, outside, cuts, state: Mutex::default(), putting: Mutex::new(()) }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn again(&self) -> Again {
        Again::new(&self.outside.clock, &self.outside.random)
    }

    /// Refuses what changes the store, unless this process is the writer and no other one is known.
    pub fn check_writer(&self) -> io::Result<()> {
        self.state.lock().check_writer()
    }

    /// Refuses what leaves something behind after another writer has taken over. A process that never was the writer may put objects, as
    /// a compaction worker does.
    pub fn check_not_fenced(&self) -> io::Result<()> {
        self.state.lock().check()
    }

    /// Takes over as the writer. `find_left` gives files that the writer of an epoch has left elsewhere, which replace those that the
    /// journal has. Returns the epoch.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if this process is the writer already; `InvalidData` if a sheet is damaged; the store's; what `find_left` returns.
    pub fn take_over(&self, find_left: impl Fn(u64) -> io::Result<Vec<LeftFile>>) -> io::Result<u64> {
        let putting = self.putting.lock();
        if self.state.lock().is_writer {
            return Err(io::Error::new(ErrorKind::WouldBlock, "this process writes to it already"));
        }
        for _ in 0..ATTEMPTS {
            let begin = self.outside.clock.now();
            let (mut table, mut next, mut sheets) = self.read_newest()?;
            let (number, epoch, left, files_made, settled_begin) = loop {
                let since = self.outside.clock.wall().as_secs();
                let holder = Holder { epoch: table.epoch() + 1, since, who: self.outside.who.clone() };
                let mut writer = SheetWriter::new(next, holder.epoch, self.token());
                writer.table(&table);
                writer.begin(&holder);
                let left = find_left(bringing::source(&table))?;
                let at_once = left.iter().map(|file| file.bytes).sum::<u64>() <= self.cuts.brought_bytes;
                let files_made = bringing::begin((&mut writer, holder.epoch), &table, &left, at_once)?;
                let left = if at_once { Vec::new() } else { left };
                let (bytes, changes) = writer.finish();
                match self.put(next, &bytes)? {
                    Put::Own => {
                        // What this sheet does not name any more among those of a week may be the one.
                        let is_settled = |since: &u64| since.saturating_add(SETTLED.as_secs()) <= holder.since;
                        let settled = table.begins.iter().rev().find(|(_, since)| is_settled(since));
                        let settled = settled.map(|(sheet, _)| *sheet);
                        apply(&mut table, next, &changes)?;
                        break (next, holder.epoch, left, files_made, settled);
                    }
                    // The writer before, or another that takes over, was faster.
                    Put::Taken(bytes) => apply_sheet(&mut table, next, &bytes)?,
                }
                sheets.insert(next);
                next += 1;
            };
            let now = self.outside.clock.now();
            if now > begin + UNSEEN {
                // The sheet may lie in a gap that a removal has left.
                continue;
            }
            sheets.insert(number);
            let useful = table.sheets();
            let is_useless = |sheet: &u64| !useful.contains(sheet) && !table.begins.contains_key(sheet);
            *self.state.lock() = State {
                next: number + 1,
                is_writer: true,
                names: table.names.clone(),
                useless: sheets.iter().copied().filter(is_useless).map(|sheet| (sheet, now)).collect(),
                settled_begin,
                sheets,
                files_made,
                last_seen: now,
                last_list: now,
                table,
                ..State::default()
            };
            drop(putting);
            if !left.is_empty() {
                self.bring(&left, self.cuts.brought_bytes)?;
            }
            return Ok(epoch);
        }
        let why = format!("the store took longer than {} s to answer, {ATTEMPTS} times", UNSEEN.as_secs());
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }

    /// Refuses as [`Journal::check_writer`], and looks for others if that was not done for half of [`KEPT`].
    ///
    /// # Errors
    ///
    /// `StaleNetworkFileHandle` if another writer has taken over; the store's.
    pub fn check_still_writer(&self) -> io::Result<()> {
        let _putting = self.putting.lock();
        let now = self.outside.clock.now();
        let next = {
            let state = self.state.lock();
            state.check_writer()?;
            if now <= state.last_seen + UNSEEN {
                return Ok(());
            }
            state.next
        };
        self.look_for_others(next)?;
        self.state.lock().last_seen = now;
        Ok(())
    }

    /// Looks for sheets from `next` on. If another writer has put one, nothing may be put any more; those of guests are passed.
    fn look_for_others(&self, next: u64) -> io::Result<()> {
        let found = self.list()?.split_off(&next);
        for (expected, number) in (next..).zip(found) {
            let bytes = self.get_there(number)?.unwrap_or_default();
            let guest = guests::of_guest(number, &bytes).filter(|_| number == expected);
            let state = &mut *self.state.lock();
            match guest {
                Some(guest) => state.pass(&guest),
                // Sheets that are missing were removed by another writer.
                None => {
                    state.failed = Some(fenced(state.table.epoch(), number, &bytes));
                    break;
                }
            }
        }
        self.state.lock().check()
    }

    /// Ends the writing, once what was written is put if that can be, and removes sheets that are of no use.
    pub fn release(&self) {
        // What was not synced may be lost.
        self.sync().ok();
        let _putting = self.putting.lock();
        let state = std::mem::take(&mut *self.state.lock());
        if state.check_writer().is_err() {
            return;
        }
        let due = self.due(&state);
        let settled = self.settled(&state).unwrap_or_default();
        let gone: BTreeSet<u64> = due.into_iter().chain(settled).collect();
        // What stays is found by the next writer. If one cannot be removed, the cause is mostly the same for all.
        let mut gone = gone.into_iter().take(MOST_REMOVED_AT_END + state.put);
        gone.try_for_each(|sheet| self.store.remove(&name_of(sheet))).ok();
    }

    /// The sheets that have been of no use for [`KEPT`].
    fn due(&self, state: &State) -> Vec<u64> {
        let now = self.outside.clock.now();
        let is_due = |since: &Duration| now >= *since + KEPT;
        state.useless.iter().filter(|(_, since)| is_due(since)).map(|(sheet, _)| *sheet).collect()
    }

    /// The sheets of no use that were of none already when a writer took over longer than [`SETTLED`] before this one.
    ///
    /// # Errors
    ///
    /// `InvalidData` if its sheet is damaged; the store's.
    fn settled(&self, state: &State) -> io::Result<Vec<u64>> {
        let Some(begin) = state.settled_begin else { return Ok(Vec::new()) };
        if state.useless.range(..begin).next().is_none() {
            return Ok(Vec::new());
        }
        let Some(bytes) = self.get(begin)? else { return Ok(Vec::new()) };
        let changes = decode_as(begin, &bytes)?.changes;
        let table = changes.iter().find_map(|change| match change {
            Change::Table(table) => Some(table),
            _ => None,
        });
        let Some(useful) = table.map(Table::sheets) else { return Ok(Vec::new()) };
        Ok(state.useless.range(..begin).map(|(sheet, _)| *sheet).filter(|sheet| !useful.contains(sheet)).collect())
    }

    fn token(&self) -> [u64; 2] {
        [self.outside.random.next_u64(), self.outside.random.next_u64()]
    }

    /// Puts a sheet, and finds out whose the sheet with this number is.
    ///
    /// # Errors
    ///
    /// The store's. Then it is unknown whether the sheet is there.
    fn put(&self, number: u64, bytes: &[u8]) -> io::Result<Put> {
        put_once(&*self.store, self.again(), &name_of(number), bytes)
    }

    /// All sheets, by their numbers.
    fn list(&self) -> io::Result<BTreeSet<u64>> {
        let listed = self.again().ask(|| self.store.list(FOLDER))?;
        Ok(listed.iter().filter_map(|object| number_of(&object.name)).collect())
    }

    /// The sheet with this number; `None` if there seems to be none.
    fn get(&self, number: u64) -> io::Result<Option<Vec<u8>>> {
        match self.again().ask(|| self.store.get(&name_of(number))) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The table as of the last sheet, the number after it, and the sheets that there are.
    fn read_newest(&self) -> io::Result<(Table, u64, BTreeSet<u64>)> {
        let mut again = self.again();
        loop {
            let sheets = self.list()?;
            if let Some((table, next)) = self.read_listed(&sheets)? {
                return Ok((table, next, sheets));
            }
            // The list was old, or sheets were removed since.
            if !again.pause() {
                let last = sheets.last().copied().unwrap_or_default();
                return Err(corrupt(last, "a sheet before it is missing"));
            }
        }
    }

    /// As [`Journal::read_newest`]; `None` if a sheet that is needed is not there.
    fn read_listed(&self, sheets: &BTreeSet<u64>) -> io::Result<Option<(Table, u64)>> {
        let mut table = Table::default();
        let Some(last) = sheets.last().copied() else { return Ok(Some((table, 1))) };
        let mut unread: Vec<Sheet> = Vec::new();
        let mut number = last;
        loop {
            let Some(bytes) = self.get(number)? else { return Ok(None) };
            let sheet = decode_as(number, &bytes)?;
            let is_enough = sheet.has_table();
            unread.push(sheet);
            if is_enough {
                break;
            }
            number -= 1;
            if number == 0 {
                return Err(corrupt(1, "it has no table"));
            }
        }
        for sheet in unread.iter().rev() {
            apply(&mut table, sheet.number, &sheet.changes)?;
        }
        let mut next = last + 1;
        while let Some(bytes) = self.get(next)? {
            apply_sheet(&mut table, next, &bytes)?;
            next += 1;
        }
        Ok(Some((table, next)))
    }

    /// Learns what the writer has put since, if another process is the writer.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; the store's.
    pub fn refresh(&self) -> io::Result<()> {
        let (is_writer, mut table, mut next, last_list) = {
            let state = self.state.lock();
            (state.is_writer, state.table.clone(), state.next, state.last_list)
        };
        if is_writer || next == guests::NO_NEXT {
            return Ok(());
        }
        let now = self.outside.clock.now();
        let mut listed = last_list;
        if next == 0 {
            (table, next, _) = self.read_newest()?;
            listed = now;
        }
        let begin = next;
        while let Some(bytes) = self.get(next)? {
            apply_sheet(&mut table, next, &bytes)?;
            next += 1;
        }
        if next == begin && now > last_list + ASKS_AGAIN_AFTER {
            // The next sheet may have been removed, with others after it.
            if self.list()?.last().is_some_and(|last| *last >= next) {
                (table, next, _) = self.read_newest()?;
            }
            listed = now;
        }
        let state = &mut *self.state.lock();
        if !state.is_writer && next >= state.next {
            (state.table, state.next, state.last_list) = (table, next, listed);
        }
        Ok(())
    }

    /// The file with this name.
    pub fn file(&self, name: &str) -> Option<u64> {
        self.state.lock().file(name)
    }

    /// Names and lengths of all files.
    pub fn list_files(&self) -> Vec<(String, u64)> {
        let state = self.state.lock();
        let names = if state.is_writer { &state.names } else { &state.table.names };
        let names = names.iter().filter(|(name, _)| !bringing::is_passing(name));
        names.map(|(name, file)| (name.clone(), state.len(*file))).collect()
    }

    /// Whether the journal was read.
    pub fn is_known(&self) -> bool {
        self.state.lock().next != 0
    }

    /// How many files the table has.
    #[cfg(test)]
    pub fn files(&self) -> usize {
        self.state.lock().table.files.len()
    }

    /// Makes a file.
    pub fn create(&self, name: &str) -> io::Result<u64> {
        let state = &mut *self.state.lock();
        state.check_writer()?;
        if state.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.files_made += 1;
        let file = new_file(state.table.epoch(), state.files_made);
        state.pending.insert(file, Pending::default());
        state.change_name(name, Some(file));
        Ok(file)
    }

    /// Gives a file another name, in place of the file that had it.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let state = &mut *self.state.lock();
        state.check_writer()?;
        let file = state.names.get(from).copied().ok_or(ErrorKind::NotFound)?;
        state.change_name(to, Some(file));
        state.change_name(from, None);
        Ok(())
    }

    /// Takes a name away.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let state = &mut *self.state.lock();
        state.check_writer()?;
        if !state.names.contains_key(name) {
            return Err(ErrorKind::NotFound.into());
        }
        state.change_name(name, None);
        Ok(())
    }

    /// The length of a file.
    pub fn len(&self, file: u64) -> u64 {
        self.state.lock().len(file)
    }

    /// Writes bytes at an offset. Room between the end and the offset is filled with zeros.
    pub fn write(&self, file: u64, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(file, offset, |pending| {
            let start = (offset - pending.from) as usize;
            if pending.bytes.len() < start + bytes.len() {
                pending.bytes.resize(start + bytes.len(), 0);
            }
            pending.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        })?;
        if self.state.lock().pending.values().map(|pending| pending.bytes.len() as u64).sum::<u64>()
            >= MOST_PENDING_BYTES
        {
            self.sync()?;
        }
        Ok(())
    }

    /// Cuts a file, or extends it with zeros.
    pub fn set_len(&self, file: u64, bytes: u64) -> io::Result<()> {
        let is_cut = {
            let state = &mut *self.state.lock();
            state.check_writer()?;
            let is_cut = state.pending.get(&file).map_or(state.table.len(file), |pending| pending.from) > bytes;
            if is_cut {
                state.pending.insert(file, Pending { from: bytes, bytes: Vec::new() });
                state.changes += 1;
            }
            is_cut
        };
        if is_cut {
            return Ok(());
        }
        self.change(file, bytes, |pending| pending.bytes.resize((bytes - pending.from) as usize, 0))
    }

    /// Changes what is pending of a file, which begins at `from` or before it.
    fn change(&self, file: u64, from: u64, change: impl FnOnce(&mut Pending)) -> io::Result<()> {
        loop {
            let (start, end) = {
                let state = &mut *self.state.lock();
                state.check_writer()?;
                let durable = state.table.len(file);
                let pending = state.pending.entry(file).or_insert_with(|| Pending { from: durable, bytes: Vec::new() });
                if pending.from <= from {
                    change(pending);
                    state.changes += 1;
                    return Ok(());
                }
                (from, pending.from)
            };
            // Bytes in sheets are written over: they are read, and go with the next sheet.
            let before = self.read(file, start..end)?;
            let state = &mut *self.state.lock();
            if let Some(pending) = state.pending.get_mut(&file).filter(|pending| pending.from == end) {
                pending.bytes.splice(0..0, before);
                pending.from = start;
            }
        }
    }

    /// The bytes of a range of a file; fewer at its end.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn read(&self, file: u64, range: Range<u64>) -> io::Result<Vec<u8>> {
        let pieces = self.state.lock().pieces(file, range);
        let mut parts: Vec<Vec<u8>> = Vec::with_capacity(pieces.len());
        let mut places = Vec::new();
        for (place, piece) in pieces.into_iter().enumerate() {
            parts.push(match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::InSheet { sheet, range } => {
                    places.push((place, sheet, range));
                    Vec::new()
                }
            });
        }
        let (sender, receiver) = mpsc::channel();
        for (number, (place, sheet, range)) in places.iter().enumerate() {
            if number >= READS_UNDER_WAY {
                let (place, read): (usize, Option<Vec<u8>>) = receiver.recv().expect("there is a sender here");
                parts[place] = read.unwrap_or_default();
            }
            let (place, sender) = (*place, sender.clone());
            let done: RangeDone = Box::new(move |read| {
                // The reader has given up if nobody receives.
                sender.send((place, read.map(<[_]>::concat).ok())).ok();
            });
            self.store.begin_read(&name_of(*sheet), range.clone(), done);
        }
        drop(sender);
        for (place, read) in receiver {
            parts[place] = read.unwrap_or_default();
        }
        for (place, sheet, range) in places {
            let bytes = (range.end - range.start) as usize;
            if parts[place].len() != bytes {
                // It failed, or was cut short: once more, with patience.
                let mut part = vec![0; bytes];
                let read = self.again().ask(|| self.store.read_at(&name_of(sheet), &mut part, range.start))?;
                if read != bytes {
                    return Err(corrupt(sheet, "it is shorter than the table says"));
                }
                parts[place] = part;
            }
        }
        Ok(parts.concat())
    }

    /// Whether all that was written is durable.
    pub fn is_synced(&self) -> bool {
        let state = self.state.lock();
        state.failed.is_some() || state.durable == state.changes
    }

    /// Whether a name has changed that is in no sheet yet.
    pub fn has_changed_names(&self) -> bool {
        !self.state.lock().changed_names.is_empty()
    }

    /// Makes all that was written durable.
    ///
    /// # Errors
    ///
    /// `StaleNetworkFileHandle` if another writer has taken over; the store's. The same error comes from then on.
    pub fn sync(&self) -> io::Result<()> {
        let wanted = {
            let state = self.state.lock();
            state.check()?;
            state.changes
        };
        let _putting = self.putting.lock();
        let Some(NextSheet { mut number, mut bytes, changes, seen }) = self.next_sheet(wanted)? else { return Ok(()) };
        let begin = self.outside.clock.now();
        let mut outcome = loop {
            let outcome = self.put(number, &bytes);
            let Ok(Put::Taken(found)) = &outcome else { break outcome };
            let Some(guest) = guests::of_guest(number, found) else { break outcome };
            (number, bytes) = self.make_room(&bytes, &guest);
        };
        if matches!(outcome, Ok(Put::Own)) && self.outside.clock.now() > seen + UNSEEN {
            outcome = self.look_for_others(number + 1).map(|()| Put::Own);
        }
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let failed = match outcome {
            Ok(Put::Own) => {
                (state.durable, state.last_seen, state.under_way) = (changes, begin, None);
                state.sheets.insert(number);
                let gone = self.take_useless(state);
                drop(guard);
                self.remove_sheets(gone);
                return Ok(());
            }
            Ok(Put::Taken(bytes)) => fenced(state.table.epoch(), number, &bytes),
            Err(error) => (error.kind(), format!("{error}; open the database again to find out what is durable")),
        };
        state.failed = Some(failed);
        state.check()
    }

    /// The next sheet, with all changes that are in none; `None` if those up to `wanted` are durable.
    fn next_sheet(&self, wanted: u64) -> io::Result<Option<NextSheet>> {
        let now = self.outside.clock.now();
        let (mut seen, next) = {
            let state = self.state.lock();
            state.check()?;
            if state.durable >= wanted {
                return Ok(None);
            }
            state.check_writer()?;
            (state.last_seen, state.next)
        };
        if now > seen + UNSEEN {
            self.look_for_others(next)?;
            seen = now;
        }
        let token = self.token();
        let state = &mut *self.state.lock();
        let mut writer = SheetWriter::new(state.next, state.table.epoch(), token);
        state.since_table += 1;
        if state.since_table >= self.cuts.tables_every {
            state.since_table = 0;
            writer.table(&state.table);
        }
        for name in std::mem::take(&mut state.changed_names) {
            let file = state.names.get(&name).copied();
            if file != state.table.names.get(&name).copied() {
                writer.name(&name, file);
            }
        }
        for id in std::mem::take(&mut state.gone_branches) {
            writer.branch(id, None);
        }
        let mut files: Vec<u64> = state.pending.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            let pending = state.pending.remove(&file).expect("its key was listed");
            if pending.from != state.table.len(file) || !pending.bytes.is_empty() {
                writer.write(file, pending.from, &pending.bytes);
            }
        }
        let (bytes, changes) = writer.finish();
        let (number, bytes) = (state.next, Arc::new(bytes));
        state.table.apply(number, &changes).expect("the writer makes changes that follow from its table");
        state.next += 1;
        state.put += 1;
        state.under_way = Some((number, bytes.clone()));
        Ok(Some(NextSheet { number, bytes, changes: state.changes, seen }))
    }

    /// The sheets that can be removed now; notes those that will be able to.
    fn take_useless(&self, state: &mut State) -> Vec<u64> {
        // Only a table makes sheets useless, so it is looked at after one.
        if state.since_table != 0 {
            return Vec::new();
        }
        let now = self.outside.clock.now();
        let (useful, last) = (state.table.sheets(), state.next - 1);
        for sheet in &state.sheets {
            if *sheet < last && !useful.contains(sheet) && !state.table.begins.contains_key(sheet) {
                state.useless.entry(*sheet).or_insert(now);
            }
        }
        let gone = self.due(state);
        for sheet in &gone {
            state.useless.remove(sheet);
            state.sheets.remove(sheet);
        }
        gone
    }

    /// Removes sheets, in the background where there is one. What stays is found by the next writer.
    fn remove_sheets(&self, gone: Vec<u64>) {
        if gone.is_empty() {
            return;
        }
        let store = self.store.clone();
        self.outside.threads.hand_over(Box::new(move || {
            gone.into_iter().for_each(|sheet| store.remove(&name_of(sheet)).unwrap_or_default());
        }));
    }
}

fn decode_as(number: u64, bytes: &[u8]) -> io::Result<Sheet> {
    let sheet = decode(bytes).map_err(|why| corrupt(number, &why))?;
    if sheet.number != number {
        return Err(corrupt(number, &format!("it is sheet {}", sheet.number)));
    }
    Ok(sheet)
}

fn apply(table: &mut Table, number: u64, changes: &[Change]) -> io::Result<()> {
    table.apply(number, changes).map_err(|why| corrupt(number, &why))
}

fn apply_sheet(table: &mut Table, number: u64, bytes: &[u8]) -> io::Result<()> {
    let sheet = decode_as(number, bytes)?;
    let is_begin = sheet.changes.iter().any(|change| matches!(change, Change::Begin(_)));
    if !is_begin && !sheet.is_of_guest() && sheet.epoch != table.epoch() {
        return Err(corrupt(number, &format!("it is of epoch {}, after one of epoch {}", sheet.epoch, table.epoch())));
    }
    apply(table, number, &sheet.changes)
}

/// Why a writer of `epoch` writes no more, which has met `bytes` as sheet `number`.
fn fenced(epoch: u64, number: u64, bytes: &[u8]) -> (ErrorKind, String) {
    let who = decode(bytes).ok().and_then(|sheet| {
        sheet.changes.into_iter().find_map(|change| match change {
            Change::Begin(holder) => Some(holder),
            _ => None,
        })
    });
    let who = match who {
        Some(Holder { epoch, since, who }) => {
            format!("{who} has taken over the database with epoch {epoch}, {since} s after the start of 1970")
        }
        None => format!("another process has written sheet {number} of the journal"),
    };
    let why = format!("{who}; this process wrote with epoch {epoch}, and writes no more: close the database");
    (ErrorKind::StaleNetworkFileHandle, why)
}

/// A door for the fuzz target: reads a sheet, applies it to an empty table, and expects to read that table as it is written.
#[cfg(fuzzing)]
pub fn check_sheet(bytes: &[u8]) {
    let Ok(sheet) = decode(bytes) else { return };
    let mut table = Table::default();
    if table.apply(sheet.number, &sheet.changes).is_err() {
        return;
    }
    let mut writer = SheetWriter::new(sheet.number, sheet.epoch, [0, 0]);
    writer.table(&table);
    let (bytes, changes) = writer.finish();
    assert_eq!(decode(&bytes).map(|sheet| sheet.changes), Ok(changes));
}

#[cfg(test)]
mod tests;

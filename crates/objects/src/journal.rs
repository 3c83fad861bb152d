//! The journal: the sequence of sheets in a store, and the one writer that may add to it. It does not know what the
//! files mean.
//!
//! ```text
//! writer 1    31  32  33  34                            35: there is one already, and it is not mine: I am fenced
//! writer 2                    35 takes over  36  37 …
//! ```
//!
//! Invariants:
//! - A sheet is put only if none exists with its number, and a writer puts sheet n + 1 only after it knows that sheet n
//!   is its own. So all sheets after one that takes over are of that writer, until the next one takes over.
//! - What is synced is in a sheet that is known to be there.
//! - Once a put has failed for good, or has met the sheet of another writer, nothing is put or removed any more: every
//!   later call reports the same error.
//! - Whoever takes over puts sheets ahead of the writer: the first that is there ends the time of that one, which can
//!   put nothing behind it. A guest, who makes a branch, puts sheets ahead of the writer, too; they change nothing but
//!   the list of branches, and the writer goes on after them.
//!
//! Sheets that are of no use are removed, which leaves gaps. Three rules keep that safe, and none of them asks how late
//! it is:
//! - A *fence* stays: the sheet as which a writer before would put its next one, unless it has said that it ended.
//! - Whoever is not the writer looks at the newest sheets again after it has put its own. If it has put them into a
//!   gap, they are not among those that the newest ones follow from: nobody sees what they say, and it begins again.
//! - The newest sheet, and the newest with a table, are never removed.
//!
//! A sheet that is of no use stays for [`KEPT`], or, where the writer ends before, until one has taken over a day
//! later: readers may be reading it. This also bounds how old an answer of a store may be.
//!
//! Thread safe. One put is under way at a time; what is written meanwhile goes with the next one, which is how commits
//! share a sheet. No lock is held while the store is asked, but for that of putting.

mod bringing;
mod folding;
mod guests;
mod newest;
mod sheet;
mod table;
mod taking;

pub use bringing::LeftFile;
pub use table::{Branch, PARENTS, Table};

use crate::again::Again;
use crate::put::{Put, put_once};
use crate::wholes::{FIRST_BYTES, READS_UNDER_WAY};
use folding::{FOLDED_BYTES, Recent, SMALL_BYTES};
use newest::{READS_OF_DAMAGED, corrupt};
use os::store::RangeDone;
use os::sync::{Arc, Mutex};
use os::{Clock, Random, Store, Threads};
use sheet::{SheetWriter, decode};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;
use table::{Change, Extent, Holder};

/// The folder of the sheets.
const FOLDER: &str = "journal";

/// How long a sheet stays after it is of no use any more. Answers of the store are assumed to be younger than a quarter
/// of it; those of the services that we know are never old.
pub const KEPT: Duration = Duration::from_secs(60);

/// The most sheets that a writer removes at its end, which waits for that, beside as many as it has put: so their
/// number does not grow with writers that put many in a short life.
const MOST_REMOVED_AT_END: usize = 256;

/// How often one that is not the writer begins again, because others were in its way or sheets were removed.
const ATTEMPTS: u32 = 5;

/// Readers that find no next sheet look at the list of all sheets so often: theirs may have been removed while they
/// slept.
pub const ASKS_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// How a journal is cut.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// One sheet in this number of sheets has a table.
    pub tables_every: u64,
    /// The most that one sheet has of files that a writer has left elsewhere, in bytes. A store takes no put of any
    /// length.
    pub brought_bytes: u64,
}

/// As journals are cut, but for tests.
pub const CUTS: Cuts = Cuts { tables_every: 64, brought_bytes: 64 << 20 };

/// What is not durable yet is put when it is so long, without waiting for a sync.
const MOST_PENDING_BYTES: u64 = 16 << 20;

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
    /// Whether a put whose outcome is unknown is made again by the next sync. Otherwise it is the end of the writing:
    /// who waited for it was told so.
    pub puts_again: bool,
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
    /// The sheet whose put is made again.
    unfinished: Option<NextSheet>,
    /// The last sheet with a table.
    last_table: u64,
    /// The bytes in small pieces that came after it.
    small_bytes: u64,
    /// The last sheets, as they were put or read.
    recent: Recent,
    failed: Option<(ErrorKind, String)>,
    /// When the list of sheets was looked at, or what else says that no other writer has put one.
    last_list: Duration,
    /// When the writer has taken over.
    took_over: Duration,
    /// Whether the writer ends with the next sheet.
    is_ending: bool,
    /// Sheets of no use, and since when that is known.
    useless: BTreeMap<u64, Duration>,
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
#[derive(Debug)]
struct NextSheet {
    number: u64,
    bytes: Arc<Vec<u8>>,
    /// How many changes are durable with it.
    changes: u64,
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
            let in_sheet = range.start as usize..range.end as usize;
            let kept = match &self.under_way {
                Some((number, bytes)) if *number == sheet => bytes.get(in_sheet),
                _ => self.recent.get(sheet, in_sheet),
            };
            pieces.push(match kept {
                Some(bytes) => Piece::Bytes(bytes.to_vec()),
                None => Piece::InSheet { sheet, range },
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

impl Journal {
    pub fn new(store: Arc<dyn Store>, outside: Outside, cuts: Cuts) -> Journal {
        Journal { store, outside, cuts, puts_again: false, state: Mutex::default(), putting: Mutex::new(()) }
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

    /// Refuses what leaves something behind after another writer has taken over. A process that never was the writer
    /// may put objects, as a compaction worker does.
    pub fn check_not_fenced(&self) -> io::Result<()> {
        self.state.lock().check()
    }

    /// Refuses as [`Journal::check_writer`], and looks for others if that was not done for [`ASKS_AGAIN_AFTER`].
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
            if now <= state.last_list + ASKS_AGAIN_AFTER {
                return Ok(());
            }
            state.next
        };
        self.look_for_others(next)?;
        self.state.lock().last_list = now;
        Ok(())
    }

    /// Looks for sheets from `next` on. If another writer has put one, nothing may be put any more; those of guests are
    /// met later.
    fn look_for_others(&self, next: u64) -> io::Result<()> {
        let found: Vec<u64> = self.list()?.split_off(&next).into_iter().collect();
        for (number, read) in self.get_each(&found)? {
            if !read.sheet.is_of_guest() {
                let state = &mut *self.state.lock();
                state.failed = Some(fenced(state.table.epoch(), number, &read.bytes));
                break;
            }
        }
        self.state.lock().check()
    }

    /// Puts what was written, if that is possible, ends the writing, and removes sheets that are of no use.
    pub fn release(&self) {
        {
            let state = &mut *self.state.lock();
            if state.check_writer().is_ok() {
                state.is_ending = true;
                state.changes += 1;
            }
        }
        // What was not synced may be lost. If no sheet can say that this writer has ended, its fence stays.
        self.sync().ok();
        let _putting = self.putting.lock();
        let state = std::mem::take(&mut *self.state.lock());
        if state.check_writer().is_err() {
            return;
        }
        let gone: BTreeSet<u64> = self.due(&state).into_iter().chain(settled(&state)).collect();
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

    fn token(&self) -> [u64; 2] {
        [self.outside.random.next_u64(), self.outside.random.next_u64()]
    }

    /// Puts a sheet, and finds out whose the sheet with this number is.
    ///
    /// # Errors
    ///
    /// The store's. Then it is unknown whether the sheet is there.
    fn put(&self, number: u64, bytes: &[u8]) -> io::Result<Put> {
        let put = put_once(&*self.store, self.again(), &name_of(number), bytes)?;
        self.ascertain(number, bytes, put)
    }

    /// Reads again what has the number of a sheet that was to be `bytes`, if it seems to be damaged: that would make a
    /// sheet of one's own one of another.
    fn ascertain(&self, number: u64, bytes: &[u8], put: Put) -> io::Result<Put> {
        let Put::Taken(found) = &put else { return Ok(put) };
        if decode(found).is_ok() {
            return Ok(put);
        }
        match self.get(number) {
            Ok(Some(read)) if *read.bytes == bytes => Ok(Put::Own),
            Ok(Some(read)) => Ok(Put::Taken(read.bytes.to_vec())),
            // It is damaged, or a newer release has put it. It is not one's own.
            Ok(None) => Ok(put),
            Err(error) if error.kind() == ErrorKind::InvalidData => Ok(put),
            Err(error) => Err(error),
        }
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
        let (mut small, mut long) = (Vec::new(), Vec::new());
        for (place, piece) in pieces.into_iter().enumerate() {
            parts.push(match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::InSheet { sheet, range } => {
                    let places = if range.end < FIRST_BYTES { &mut small } else { &mut long };
                    places.push((place, sheet, range));
                    Vec::new()
                }
            });
        }
        // A sheet that is read whole is known to be undamaged.
        let sheets: BTreeSet<u64> = small.iter().map(|(_, sheet, _)| *sheet).collect();
        let sheets = self.get_each(&sheets.into_iter().collect::<Vec<_>>())?;
        for (place, sheet, range) in small {
            let missing = || io::Error::new(ErrorKind::NotFound, format!("there is no object {}", name_of(sheet)));
            let read = sheets.get(&sheet).ok_or_else(missing)?;
            let bytes = read.bytes.get(range.start as usize..range.end as usize);
            parts[place] = bytes.ok_or_else(|| corrupt(sheet, "it is shorter than the table says"))?.to_vec();
        }
        self.read_long(&long, &mut parts)?;
        Ok(parts.concat())
    }

    /// Reads pieces in long sheets, and puts each in its place.
    fn read_long(&self, long: &[(usize, u64, Range<u64>)], parts: &mut [Vec<u8>]) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        for (number, (place, sheet, range)) in long.iter().enumerate() {
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
        for (place, sheet, range) in long {
            let (bytes, mut again) = ((range.end - range.start) as usize, self.again());
            let mut attempt = 1;
            while parts[*place].len() != bytes {
                // It failed, or was cut short: again, with patience.
                let mut part = vec![0; bytes];
                let read = self.again().ask(|| self.store.read_at(&name_of(*sheet), &mut part, range.start))?;
                part.truncate(read);
                parts[*place] = part;
                if read != bytes && (attempt >= READS_OF_DAMAGED || !again.pause()) {
                    return Err(corrupt(*sheet, "it is shorter than the table says"));
                }
                attempt += 1;
            }
        }
        Ok(())
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
        while let Some(next) = self.next_sheet(wanted)? {
            self.put_next(next)?;
        }
        Ok(())
    }

    /// Puts the next sheet.
    fn put_next(&self, NextSheet { mut number, mut bytes, changes }: NextSheet) -> io::Result<()> {
        let outcome = loop {
            let outcome = self.put(number, &bytes);
            let Ok(Put::Taken(found)) = &outcome else { break outcome };
            let guests = self.guests_from(number, found);
            if guests.is_empty() {
                break outcome;
            }
            (number, bytes) = self.make_room(&bytes, &guests);
        };
        let now = self.outside.clock.now();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let failed = match outcome {
            Ok(Put::Own) => {
                (state.durable, state.last_list, state.under_way) = (changes, now, None);
                state.recent.add(number, &bytes);
                state.sheets.insert(number);
                let gone = self.take_useless(state);
                drop(guard);
                self.remove_sheets(gone);
                return Ok(());
            }
            Ok(Put::Taken(bytes)) => fenced(state.table.epoch(), number, &bytes),
            Err(error) if self.puts_again => {
                state.unfinished = Some(NextSheet { number, bytes, changes });
                return Err(error);
            }
            Err(error) => (error.kind(), format!("{error}; open the database again to find out what is durable")),
        };
        state.failed = Some(failed);
        state.check()
    }

    /// The next sheet, with all changes that are in none; `None` if those up to `wanted` are durable.
    fn next_sheet(&self, wanted: u64) -> io::Result<Option<NextSheet>> {
        let token = self.token();
        let state = &mut *self.state.lock();
        state.check()?;
        if let Some(unfinished) = state.unfinished.take() {
            return Ok(Some(unfinished));
        }
        if state.durable >= wanted {
            return Ok(None);
        }
        state.check_writer()?;
        let mut writer = SheetWriter::new(state.next, state.table.epoch(), token);
        let small = |bytes: u64| if bytes <= SMALL_BYTES { bytes } else { 0 };
        state.small_bytes += state.pending.values().map(|pending| small(pending.bytes.len() as u64)).sum::<u64>();
        if state.next >= state.last_table + self.cuts.tables_every || state.small_bytes >= FOLDED_BYTES {
            writer.table(&state.table);
            state.fold();
            (state.last_table, state.small_bytes) = (state.next, 0);
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
        if state.is_ending {
            writer.end();
        }
        let (bytes, changes) = writer.finish();
        let (number, bytes, epoch) = (state.next, Arc::new(bytes), state.table.epoch());
        state.table.apply(number, epoch, &changes).expect("the writer makes changes that follow from its table");
        state.next += 1;
        state.put += 1;
        state.under_way = Some((number, bytes.clone()));
        Ok(Some(NextSheet { number, bytes, changes: state.changes }))
    }

    /// The sheets that can be removed now; notes those that will be able to.
    fn take_useless(&self, state: &mut State) -> Vec<u64> {
        // Only a table makes sheets useless, so it is looked at after one.
        if state.last_table + 1 != state.next {
            return Vec::new();
        }
        let now = self.outside.clock.now();
        let (useful, last) = (state.table.sheets(), state.next - 1);
        for sheet in &state.sheets {
            if *sheet < last && !useful.contains(sheet) && !state.table.fences.contains_key(sheet) {
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

    /// Removes sheets, in the background where the machine has threads for it. What stays is found by the next writer.
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

/// The sheets of no use that were of none already when this writer took over, and are from before the time of one that
/// took over a day before another.
fn settled(state: &State) -> impl Iterator<Item = u64> {
    let until = state.table.marks.settled;
    state
        .useless
        .iter()
        .filter(move |(sheet, since)| **sheet < until && **since == state.took_over)
        .map(|(sheet, _)| *sheet)
}

/// Why a writer of `epoch` writes no more, which has met `bytes` as sheet `number`.
fn fenced(epoch: u64, number: u64, bytes: &[u8]) -> (ErrorKind, String) {
    let who = decode(bytes).ok().and_then(|sheet| {
        sheet.changes.into_iter().find_map(|change| match change {
            Change::Begin(Holder { since, who, .. }) | Change::Claim { since, who, .. } => Some((since, who)),
            _ => None,
        })
    });
    let who = match who {
        Some((since, who)) => format!("{who} has taken over the database, {since} s after the start of 1970"),
        None => format!("another process has written sheet {number} of the journal"),
    };
    let why = format!("{who}; this process wrote with epoch {epoch}, and writes no more: close the database");
    (ErrorKind::StaleNetworkFileHandle, why)
}

/// A door for the fuzz target: reads a sheet, applies it to an empty table, and expects to read that table as it is
/// written.
#[cfg(fuzzing)]
pub fn check_sheet(bytes: &[u8]) {
    let Ok(sheet) = decode(bytes) else { return };
    let mut table = Table::default();
    if table.apply(sheet.number, sheet.epoch, &sheet.changes).is_err() {
        return;
    }
    let mut writer = SheetWriter::new(sheet.number, sheet.epoch, [0, 0]);
    writer.table(&table);
    let (bytes, changes) = writer.finish();
    assert_eq!(decode(&bytes).map(|sheet| sheet.changes), Ok(changes));
}

#[cfg(test)]
mod tests;

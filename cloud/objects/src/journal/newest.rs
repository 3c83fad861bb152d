//! Reads the newest sheets: a bounded number of them, however many a writer puts meanwhile. This module changes
//! nothing in the store.
//!
//! The list of objects says which sheets exist. The sheets from the newest table on are read concurrently, and give
//! the journal's state when the store answered with the list. Later sheets are read when somebody looks again.
//!
//! A number may be missing after the newest table, if a process that takes over puts sheets ahead and dies before
//! it can put those before them. The journal then ends at this gap for now, and the next sheet is put there.

use super::sheet::{Sheet, decode};
use super::sheet_name::{FOLDER, name_of, number_of};
use super::state::{Journal, NO_NEXT};
use super::table::{Change, Table};
use crate::wholes::read_each;
use os::sync::Arc;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How many attempts a process that is not the writer makes, if other processes get in its way or remove sheets
/// that it needs.
pub const ATTEMPTS: u32 = 5;

/// How long a reader that finds no next sheet waits before it asks for the list of all sheets again. It needs the
/// list because its next sheet may have been removed while it was idle.
pub const ASKS_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// How many times a sheet that seems damaged is read, because the damage may have happened in transit.
pub const READS_OF_DAMAGED: u32 = 4;

/// How many of the last sheets are read first, concurrently. If none of them has a table, the next ones are read in
/// batches as long as the usual distance between two tables.
const FIRST_READS: usize = 8;

/// How many sheets a reader asks for in each round when it continues after the last sheet that it has read. If all
/// of them exist, it asks for the list.
const READS_AHEAD: [u64; 7] = [1, 1, 2, 4, 8, 16, 32];

/// A sheet with its bytes.
#[derive(Clone, Debug)]
pub struct Read {
    pub sheet: Sheet,
    pub bytes: Arc<Vec<u8>>,
}

/// What the newest sheets say.
#[derive(Debug, Default)]
pub struct Newest {
    /// The table after all sheets before sheet `next`.
    pub table: Table,
    pub next: u64,
    /// The numbers of all sheets, including those from `next` on.
    pub sheets: BTreeSet<u64>,
    /// The sheets that were read: those from the newest table on, or all if none has a table.
    pub read: BTreeMap<u64, Read>,
}

impl Newest {
    /// The first sheet that was read for the table.
    pub fn first(&self) -> u64 {
        self.read.first_key_value().map_or(1, |(number, _)| *number)
    }
}

/// Decodes `bytes` as the sheet with the number `number`.
pub fn read_as(number: u64, bytes: Vec<u8>) -> io::Result<Read> {
    let sheet = decode(&bytes).map_err(|why| corrupt(number, &why))?;
    if sheet.number != number {
        return Err(corrupt(number, &format!("it is sheet {}", sheet.number)));
    }
    Ok(Read { sheet, bytes: Arc::new(bytes) })
}

/// Applies a sheet to `table`.
pub fn apply(table: &mut Table, sheet: &Sheet) -> io::Result<()> {
    let Sheet { number, epoch, changes } = sheet;
    let takes_over = changes.iter().any(|change| matches!(change, Change::Begin(_) | Change::Claim { .. }));
    let is_first = sheet.has_table();
    if !takes_over && !is_first && !sheet.is_of_guest() && *epoch != table.epoch() {
        return Err(corrupt(*number, &format!("it is of epoch {epoch}, after one of epoch {}", table.epoch())));
    }
    table.apply(*number, *epoch, changes).map_err(|why| corrupt(*number, &why))
}

pub fn corrupt(sheet: u64, why: &str) -> io::Error {
    let name = name_of(sheet);
    io::Error::new(ErrorKind::InvalidData, format!("{name} is corrupt: {why}; restore the database from a backup"))
}

impl Journal {
    /// The numbers of all sheets.
    pub(super) fn list(&self) -> io::Result<BTreeSet<u64>> {
        let listed = self.again().ask(|| self.store.list(FOLDER))?;
        Ok(listed.iter().filter_map(|object| number_of(&object.name)).collect())
    }

    /// The sheet with this number; `None` if it does not seem to exist.
    pub(super) fn get(&self, number: u64) -> io::Result<Option<Read>> {
        let mut again = self.again();
        for attempt in 1.. {
            let bytes = match self.again().ask(|| self.store.get(&name_of(number))) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            let read = read_as(number, bytes);
            if read.is_ok() || attempt >= READS_OF_DAMAGED || !again.pause() {
                return read.map(Some);
            }
        }
        Ok(None)
    }

    /// Those of the sheets that seem to exist, all requested at the same time.
    pub(super) fn get_each(&self, numbers: &[u64]) -> io::Result<BTreeMap<u64, Read>> {
        let names: Vec<String> = numbers.iter().map(|number| name_of(*number)).collect();
        let mut sheets = BTreeMap::new();
        for (number, read) in numbers.iter().zip(read_each(&*self.store, &names)) {
            let read = match read {
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                // The read has failed, or the sheet is damaged: read it again, this time with repetitions after
                // errors.
                read => match read.and_then(|bytes| read_as(*number, bytes)) {
                    Ok(read) => Some(read),
                    Err(_) => self.get(*number)?,
                },
            };
            sheets.extend(read.map(|read| (*number, read)));
        }
        Ok(sheets)
    }

    /// Reads the state of the journal. The sheets in `known` certainly exist, even if the store's list lacks them.
    pub(super) fn read_newest(&self, known: &BTreeMap<u64, Read>) -> io::Result<Newest> {
        let mut again = self.again();
        for attempt in 1.. {
            let mut sheets = self.list()?;
            sheets.extend(known.keys());
            let last = sheets.last().copied().unwrap_or_default();
            if let Some(newest) = self.read_listed(sheets, known)? {
                return Ok(newest);
            }
            // A needed sheet is missing: the list was too old, or the sheet was removed after it.
            if !again.pause() && attempt >= ATTEMPTS {
                return Err(corrupt(last, "a sheet before it is missing"));
            }
        }
        unreachable!("it begins again, or ends")
    }

    /// Like [`Journal::read_newest`], but for one list of sheets; `None` if a needed sheet is missing.
    fn read_listed(&self, sheets: BTreeSet<u64>, known: &BTreeMap<u64, Read>) -> io::Result<Option<Newest>> {
        let (mut found, mut first) = (BTreeMap::new(), None);
        let (mut left, mut many) = (sheets.iter().rev().copied().peekable(), FIRST_READS);
        while first.is_none() && left.peek().is_some() {
            let numbers: Vec<u64> = left.by_ref().take(many).collect();
            let unknown: Vec<u64> = numbers.iter().copied().filter(|number| !known.contains_key(number)).collect();
            let read = self.get_each(&unknown)?;
            if read.len() < unknown.len() {
                return Ok(None);
            }
            found.extend(read);
            found.extend(numbers.iter().filter_map(|number| Some((*number, known.get(number)?.clone()))));
            first = numbers.into_iter().find(|number| found[number].sheet.has_table());
            many = self.cuts.tables_every.max(1) as usize;
        }
        let begins = first.unwrap_or(1);
        let is_of_writer = |read: &Read| !read.sheet.is_of_guest() && !read.sheet.takes_over();
        if !found.contains_key(&begins) && found.values().any(is_of_writer) {
            // Without any table, sheet 1 is needed, but it was not found.
            return Ok(None);
        }
        let (mut table, mut next, mut read) = (Table::default(), begins, BTreeMap::new());
        while let Some(sheet) = found.remove(&next) {
            apply(&mut table, &sheet.sheet)?;
            read.insert(next, sheet);
            next += 1;
        }
        Ok(Some(Newest { table, next, sheets, read }))
    }

    /// Reads the sheets that were put since the last call, if another process is the writer.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; an error of the store.
    pub fn refresh(&self) -> io::Result<()> {
        let (is_writer, mut table, mut next, last_list) = {
            let state = self.state.lock();
            (state.is_writer, state.table.clone(), state.next, state.last_list)
        };
        if is_writer || next == NO_NEXT {
            return Ok(());
        }
        let now = self.outside.clock.now();
        let (begin, mut is_behind) = (next, next == 0);
        let mut read = BTreeMap::new();
        if !is_behind {
            is_behind = true;
            for many in READS_AHEAD {
                let numbers: Vec<u64> = (next..next + many).collect();
                let mut found = self.get_each(&numbers)?;
                let mut is_from_gap = false;
                while let Some(sheet) = found.remove(&next).filter(|_| !is_from_gap) {
                    // A sheet that contradicts those before it was put into a gap that a removal has left. Only the
                    // list can help then.
                    is_from_gap = apply(&mut table, &sheet.sheet).is_err();
                    read.insert(next, sheet);
                    next += 1;
                }
                if is_from_gap {
                    next = 0;
                    break;
                }
                if next <= numbers[numbers.len() - 1] {
                    is_behind = false;
                    break;
                }
            }
        }
        // If no next sheet was found, it and later ones may have been removed. Only the list can tell.
        let looks = is_behind || (next == begin && now > last_list + ASKS_AGAIN_AFTER);
        if is_behind || (looks && self.list()?.last().is_some_and(|last| *last >= next)) {
            let newest = self.read_newest(&BTreeMap::new())?;
            if newest.next > next {
                (table, next, read) = (newest.table, newest.next, newest.read);
            }
        }
        let state = &mut *self.state.lock();
        if !state.is_writer && next >= state.next {
            (state.table, state.next) = (table, next);
            state.last_list = if looks { now } else { last_list };
            read.iter().for_each(|(number, read)| state.recent.add(*number, &read.bytes));
        }
        Ok(())
    }
}

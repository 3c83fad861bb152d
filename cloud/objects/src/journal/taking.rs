//! Makes a process the writer, even while the present writer puts sheets.
//!
//! ```text
//! the writer     34  35  36      37 is there already, and not mine
//! the newcomer   1  lists: 34 is the last
//!                2  puts 35: it is taken, so there is a busy writer
//!                3  puts 36 to 51, all at once: 36 is taken, 37 to 51 are its own; reads 35 and 36
//!                4  reads the newest sheets, its own among them, and goes on with 52
//! ```
//!
//! The process that takes over is called the newcomer. The writer has only one put under way at a time, but the
//! faster its requests are, the more numbers it uses up during one request of the newcomer. If it has used up all
//! numbers of a try, the newcomer tries again with many more (see `SECOND_TRY`). The writer stops at the first
//! number that the newcomer has got. The newcomer also fills every free number before its sheets. So no gap is left
//! in which the writer, or a request that arrives late, could still put a sheet.
//!
//! A sheet with which a process takes over is a *claim*. It says who the process is, and nothing about files. So it
//! can be put before anything is read, and does no harm in a gap that a removal of sheets has left. A *fence* is a
//! sheet that is kept so that an earlier writer meets it (decision 90).

use super::bringing::{self, LeftFile};
use super::folding::FOLDED_BYTES;
use super::newest::{ATTEMPTS, Newest, Read, read_as};
use super::sheet::SheetWriter;
use super::sheet_name::{FOLDER, name_of};
use super::state::{Journal, State};
use super::table::CLAIM;
use crate::put::{Begun, Put, put_together};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::mpsc;

/// How many numbers the second try to put a claim uses. Each later try uses `GROWTH` times as many as the one
/// before.
const SECOND_TRY: u64 = 16;
const GROWTH: u64 = 4;

/// An object that is put to find out whether the store obeys the condition "only if no object has this name". It is
/// never removed.
fn probe_name() -> String {
    format!("{FOLDER}/probe")
}

/// The contents of the probe, for people who read it.
const PROBE: &[u8] =
    b"Put again and again, on the condition that there is none: so a writer learns that the store keeps conditions.\n";

/// The sheet under a number for which this process has tried to put its own.
pub struct Ahead {
    pub read: Read,
    pub is_own: bool,
}

impl Journal {
    /// Takes over as the writer, and returns its epoch. `find_left` returns the files that the writer with the
    /// given epoch has left on this machine; they replace the files with the same names in the journal. It returns
    /// `None` if writers leave no files on this machine.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if this process is the writer already; `InvalidData` if a sheet is damaged; `Unsupported` if
    /// the store ignores the conditions of puts; `TimedOut` if other processes took over again and again; an error
    /// of the store or of `find_left`.
    pub fn take_over(&self, find_left: impl Fn(u64) -> io::Result<Option<Vec<LeftFile>>>) -> io::Result<u64> {
        let putting = self.putting.lock();
        if self.state.lock().is_writer {
            return Err(io::Error::new(ErrorKind::WouldBlock, "this process writes to it already"));
        }
        let (id, since) = (self.outside.random.next_u64().max(1), self.outside.clock.wall().as_secs());
        let claim = |number| {
            let mut writer = SheetWriter::new(number, CLAIM, self.token());
            writer.claim(id, since, &self.outside.who);
            writer.finish().0
        };
        let mut last = self.list_and_probe()?.last().copied().unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let ahead = self.put_ahead(last, &claim)?;
            let first = ahead.iter().find(|(_, ahead)| ahead.is_own).map(|(number, _)| *number);
            let mut known: BTreeMap<u64, Read> =
                ahead.into_iter().map(|(number, ahead)| (number, ahead.read)).collect();
            let first = first.expect("it puts until one is its own");
            // Read this process's own sheet again, to see whether the store really has its bytes.
            let own = known.remove(&first).expect("it was just put");
            let newest = loop {
                let newest = self.read_newest(&known)?;
                let end = known.last_key_value().map_or(first, |(number, _)| *number).max(first);
                if newest.next > end || newest.first() > end {
                    break newest;
                }
                // Another process could still put a sheet into a gap before this process's sheets, so fill the
                // gaps.
                let missing = (newest.next..=end).filter(|number| !newest.sheets.contains(number)).collect::<Vec<_>>();
                let filled = self.put_at(&missing, &claim)?;
                known.extend(filled.into_iter().map(|(number, ahead)| (number, ahead.read)));
            };
            if newest.read.get(&first).is_some_and(|read| read.bytes != own.bytes) {
                return Err(ignores_conditions(&format!("{} was put over", name_of(first))));
            }
            if newest.table.term.id == id {
                let epoch = newest.table.epoch();
                let left = find_left(bringing::source(&newest.table))?;
                let is_brought = left.is_some() || newest.table.names.keys().any(|name| bringing::is_passing(name));
                *self.state.lock() = self.state_of_writer(newest);
                drop(putting);
                if is_brought {
                    self.bring(&left.unwrap_or_default(), self.cuts.brought_bytes)?;
                }
                return Ok(epoch);
            }
            // Another process is the writer: it took over later, or this process's sheets are in a gap that a
            // removal has left. Try again.
            last = newest.sheets.last().copied().unwrap_or_default();
        }
        let why = format!(
            "other processes have taken it over {ATTEMPTS} times meanwhile; find out who else opens it for writing"
        );
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }

    fn state_of_writer(&self, newest: Newest) -> State {
        let now = self.outside.clock.now();
        let first = newest.first();
        let useful = newest.table.sheets();
        let is_useless =
            |sheet: &u64| *sheet < first && !useful.contains(sheet) && !newest.table.fences.contains_key(sheet);
        let mut state = State {
            next: newest.next,
            is_writer: true,
            names: newest.table.names.clone(),
            useless: newest.sheets.iter().copied().filter(is_useless).map(|sheet| (sheet, now)).collect(),
            last_table: first,
            // So that the writer's first sheet has a table.
            small_bytes: FOLDED_BYTES,
            last_list: now,
            took_over: now,
            sheets: newest.sheets,
            table: newest.table,
            ..State::default()
        };
        newest.read.iter().for_each(|(number, read)| state.recent.add(*number, &read.bytes));
        state
    }

    /// The numbers of all sheets. Also checks that the store obeys the conditions of puts.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the store puts an object under a name that is taken, because two writers would then destroy
    /// each other's commits; an error of the store.
    pub(super) fn list_and_probe(&self) -> io::Result<BTreeSet<u64>> {
        let (sender, receiver) = mpsc::channel::<io::Result<()>>();
        let done = Box::new(move |put| sender.send(put).unwrap_or_default());
        self.store.begin_put_if_absent(&probe_name(), PROBE.to_vec(), done);
        let listed = self.list()?;
        let is_there = |put: io::Result<()>| put.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
        if receiver.recv().is_ok_and(is_there) {
            return Ok(listed);
        }
        // If the first put succeeds, it has made the object, and the second must be refused.
        for _ in 0..2 {
            match self.again().ask(|| self.store.put_if_absent(&probe_name(), PROBE)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(listed),
                put => put?,
            }
        }
        Err(ignores_conditions(&format!("{} was put over, twice", probe_name())))
    }

    /// Puts sheets under the numbers after `last`, with more numbers in each try, until a put succeeds. Returns all
    /// sheets from the number after `last` to the last one tried.
    pub(super) fn put_ahead(&self, last: u64, sheet: &dyn Fn(u64) -> Vec<u8>) -> io::Result<BTreeMap<u64, Ahead>> {
        let (mut ahead, mut taken) = (BTreeMap::new(), Vec::new());
        let (mut first, mut many) = (last + 1, 1);
        loop {
            let numbers: Vec<u64> = (first..first + many).collect();
            // Read other processes' sheets only after the last try, because the writer would put more meanwhile.
            taken.extend(self.put_free(&numbers, sheet, &mut ahead)?);
            if !ahead.is_empty() {
                break;
            }
            first += many;
            many = if many == 1 { SECOND_TRY } else { many * GROWTH };
        }
        self.read_taken(taken, &mut ahead)?;
        Ok(ahead)
    }

    /// Puts a sheet under each of these numbers, or reads the sheet that has the number already.
    fn put_at(&self, numbers: &[u64], sheet: &dyn Fn(u64) -> Vec<u8>) -> io::Result<BTreeMap<u64, Ahead>> {
        let mut ahead = BTreeMap::new();
        let taken = self.put_free(numbers, sheet, &mut ahead)?;
        self.read_taken(taken, &mut ahead)?;
        Ok(ahead)
    }

    /// Puts a sheet under each free number of `numbers`, and adds these sheets to `ahead`. Returns the taken
    /// numbers, with the bytes that could not be put.
    fn put_free(
        &self,
        numbers: &[u64],
        sheet: &dyn Fn(u64) -> Vec<u8>,
        ahead: &mut BTreeMap<u64, Ahead>,
    ) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let objects: Vec<(String, Vec<u8>)> = numbers.iter().map(|number| (name_of(*number), sheet(*number))).collect();
        let begun = put_together(&*self.store, &objects);
        let mut taken = Vec::new();
        for ((number, (_, bytes)), begun) in numbers.iter().copied().zip(objects).zip(begun) {
            match begun {
                Begun::Done => _ = ahead.insert(number, Ahead { read: read_as(number, bytes)?, is_own: true }),
                Begun::Taken => taken.push((number, bytes)),
                Begun::Unknown => match self.put(number, &bytes)? {
                    Put::Own => _ = ahead.insert(number, Ahead { read: read_as(number, bytes)?, is_own: true }),
                    Put::Taken(_) => taken.push((number, bytes)),
                },
            }
        }
        Ok(taken)
    }

    /// Reads the sheets under the taken numbers, some of which an earlier attempt of this process may have put, and
    /// adds them to `ahead`.
    fn read_taken(&self, taken: Vec<(u64, Vec<u8>)>, ahead: &mut BTreeMap<u64, Ahead>) -> io::Result<()> {
        let numbers: Vec<u64> = taken.iter().map(|(number, _)| *number).collect();
        let mut found = self.get_each(&numbers)?;
        for (number, bytes) in taken {
            let found = match found.remove(&number) {
                Some(read) => Ahead { is_own: *read.bytes == bytes, read },
                // Either the store has answered with an older state, or the sheet was removed after the put, and
                // the number is free.
                None => match self.put(number, &bytes)? {
                    Put::Own => Ahead { read: read_as(number, bytes)?, is_own: true },
                    Put::Taken(found) => Ahead { read: read_as(number, found)?, is_own: false },
                },
            };
            ahead.insert(number, found);
        }
        Ok(())
    }
}

/// The error for a store that puts an object under a name that is taken.
fn ignores_conditions(what: &str) -> io::Error {
    let why = "the store, or a proxy before it, ignores the condition If-None-Match of a put, so it cannot keep two writers apart; use \
               one that keeps it";
    io::Error::new(ErrorKind::Unsupported, format!("{what}: {why}"))
}

//! Sheets of guests. A guest is a process that makes a branch of a database while another process may be writing to
//! it. A guest does not take over, and the writer goes on after its sheets.
//!
//! ```text
//! writer   31  32  33                34: there is one, of a guest      34 becomes 35
//! guest                34: a branch at a/b
//! ```
//!
//! A busy writer puts one sheet right after the other. To get in between, a guest puts the same sheet under several
//! later numbers at once, as a process that takes over does. Only the first of them has an effect. The writer reads
//! all of them in one round trip, and goes on after the last.
//!
//! So the making of a branch has a place in the order of all sheets, and the branch gets the state of the database
//! before this place. Every later writer reads the guest's sheet before it can put a sheet that gives up a file, so
//! it learns of the branch in time.

use super::bringing::is_passing;
use super::newest::{ATTEMPTS, Read, apply, read_as};
use super::sheet::{Sheet, SheetWriter, decode};
use super::sheet_name::name_of;
use super::state::{CUTS, Journal, NO_NEXT, Outside, Pending, State};
use super::table::{Branch, Change, GUEST, Holder, Table, new_file};
use crate::put::Put;
use os::Store;
use os::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

/// Decodes a guest's sheet; `None` if `bytes` are not one with this number.
pub fn of_guest(number: u64, bytes: &[u8]) -> Option<Sheet> {
    decode(bytes).ok().filter(|sheet| sheet.is_of_guest() && sheet.number == number)
}

/// How many further numbers a writer reads at once when it meets a guest's sheet, because a guest puts several
/// sheets if the writer is busy.
const MET_TOGETHER: u64 = 16;

impl State {
    fn note_guest(&mut self, guest: &Sheet) {
        // The writer already knows everything in a table of this sheet, so it is not applied.
        self.table.apply_branches(&guest.changes);
        self.sheets.insert(guest.number);
    }
}

impl Journal {
    /// A journal of a database as it was at one moment, with `table` and the contents of all files. It never looks
    /// for newer sheets, and takes no writes.
    pub fn fixed(store: Arc<dyn Store>, outside: Outside, table: Table, contents: &[(String, Vec<u8>)]) -> Journal {
        let bytes_of: BTreeMap<&str, &Vec<u8>> = contents.iter().map(|(name, bytes)| (&**name, bytes)).collect();
        let pending = table.names.iter().filter_map(|(name, file)| {
            let bytes = (*bytes_of.get(&**name)?).clone();
            Some((*file, Pending { from: 0, bytes }))
        });
        let pending = pending.collect();
        let state = Mutex::new(State { table, pending, next: NO_NEXT, ..State::default() });
        Journal { store, outside, cuts: CUTS, puts_again: false, state, putting: Mutex::new(()) }
    }

    /// The names and contents of all files in `table`, a table of this journal, except files that are still being
    /// brought.
    ///
    /// # Errors
    ///
    /// `NotFound` if a sheet was removed meanwhile; an error of the store.
    pub fn contents(&self, table: &Table) -> io::Result<Vec<(String, Vec<u8>)>> {
        let fixed = Journal::fixed(self.store.clone(), self.outside.clone(), table.clone(), &[]);
        let read = |(name, file): (&String, &u64)| Ok((name.clone(), fixed.read(*file, 0..fixed.len(*file))?));
        table.names.iter().filter(|(name, _)| !is_passing(name)).map(read).collect()
    }

    /// The table after the last sheet, and the number of the next sheet.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; an error of the store.
    pub fn newest(&self) -> io::Result<(Table, u64)> {
        let newest = self.read_newest(&BTreeMap::new())?;
        Ok((newest.table, newest.next))
    }

    /// As a guest, adds a branch to the list of branches. Returns the table before the guest's sheet, which has
    /// everything that was durable before this sheet, and nothing later.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; `Unsupported` if the store ignores the conditions of puts; `TimedOut`
    /// if sheets were removed again and again before this process could read them; an error of the store. After an
    /// error, the branch may or may not exist.
    pub fn add_branch(&self, id: u64, branch: &Branch) -> io::Result<Table> {
        self.list_and_probe()?;
        let sheet = |number| {
            let mut writer = SheetWriter::new(number, GUEST, self.token());
            writer.branch(id, Some(branch));
            writer.finish().0
        };
        for _ in 0..ATTEMPTS {
            let seen = self.read_newest(&BTreeMap::new())?;
            let ahead = self.put_ahead(seen.next - 1, &sheet)?;
            let (mut table, mut known) = (seen.table, BTreeMap::new());
            let mut is_before = true;
            for (number, ahead) in ahead {
                if is_before {
                    apply(&mut table, &ahead.read.sheet)?;
                }
                is_before &= !ahead.is_own;
                known.insert(number, ahead.read);
            }
            if self.read_newest(&known)?.table.branches.contains_key(&id) {
                return Ok(table);
            }
            // The newest sheets do not have the branch, so this guest's sheets are in a gap that a removal has
            // left. Start again.
        }
        let why = format!("sheets were removed while they were read, {ATTEMPTS} times");
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }

    /// Puts sheet `number`, with which a new database begins. It has `files`, and an epoch greater than `epoch`.
    /// `table` is the journal's table before this sheet, and must have no files.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if a sheet with this number exists, or if another database was made here; an error of the
    /// store, after which the sheet may or may not exist.
    pub fn begin_at(&self, number: u64, table: &Table, epoch: u64, files: &[(String, Vec<u8>)]) -> io::Result<()> {
        let (epoch, since) = (table.epoch().max(epoch) + 1, self.outside.clock.wall().as_secs());
        let mut writer = SheetWriter::new(number, epoch, self.token());
        writer.table(table);
        writer.begin(&Holder { epoch, since, who: self.outside.who.clone() });
        for (count, (name, bytes)) in (1..).zip(files) {
            let file = new_file(epoch, count);
            writer.name(name, Some(file));
            writer.write(file, 0, bytes);
        }
        let bytes = writer.finish().0;
        if let Put::Taken(_) = self.put(number, &bytes)? {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let known = BTreeMap::from([(number, read_as(number, bytes)?)]);
        let newest = self.read_newest(&known)?;
        if newest.first() <= number || newest.table.fences.contains_key(&number) || newest.table.term.sheet == number {
            return Ok(());
        }
        // The sheet is in a gap, so later sheets exist: another database was made under this prefix.
        Err(ErrorKind::AlreadyExists.into())
    }

    /// The branches of this database, as far as the writer knows.
    pub fn branches(&self) -> BTreeMap<u64, Branch> {
        let state = self.state.lock();
        let branches = state.table.branches.iter().filter(|(id, _)| !state.gone_branches.contains(id));
        branches.map(|(id, branch)| (*id, branch.clone())).collect()
    }

    /// Drops a branch that no longer needs files from the list of branches, with the next sheet.
    pub fn forget_branch(&self, id: u64) {
        let state = &mut *self.state.lock();
        if state.is_writer && state.table.branches.contains_key(&id) && state.gone_branches.insert(id) {
            state.changes += 1;
        }
    }

    /// Makes a file with the contents `bytes` in one step, in place of a file that has this name already.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if this process is not the writer; the error that ended its writing.
    pub fn replace(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        let state = &mut *self.state.lock();
        state.check_writer()?;
        state.files_made += 1;
        let file = new_file(state.table.epoch(), state.files_made);
        state.pending.insert(file, Pending { from: 0, bytes });
        state.change_name(name, Some(file));
        Ok(())
    }

    /// Reads the sheets of guests from number `number` on. `found` is the first of them.
    pub(super) fn guests_from(&self, number: u64, found: &[u8]) -> Vec<Sheet> {
        let Some(first) = of_guest(number, found) else { return Vec::new() };
        let numbers: Vec<u64> = (number + 1..=number + MET_TOGETHER).collect();
        // An error is ignored: sheets that cannot be read now are met by the next put.
        let mut others = self.get_each(&numbers).unwrap_or_default();
        let others = numbers.iter().map_while(|number| others.remove(number)).map(|Read { sheet, .. }| sheet);
        std::iter::once(first).chain(others.take_while(Sheet::is_of_guest)).collect()
    }

    /// Moves the sheet `bytes`, whose number a guest has taken, to the number after the last sheet of `guests`. The
    /// table is adjusted, so that it finds bytes of files in the moved sheet.
    pub(super) fn make_room(&self, bytes: &[u8], guests: &[Sheet]) -> (u64, Arc<Vec<u8>>) {
        let own = decode(bytes).expect("it was written here");
        let (number, next) = (own.number, guests.last().map_or(own.number, |guest| guest.number + 1));
        let mut writer = SheetWriter::new(next, own.epoch, self.token());
        for change in &own.changes {
            match change {
                Change::Table(table) => {
                    let mut table = table.clone();
                    guests.iter().for_each(|guest| table.apply_branches(&guest.changes));
                    writer.table(&table);
                }
                Change::Begin(holder) => writer.begin(holder),
                Change::Write { file, from, at, bytes: count } => {
                    writer.write(*file, *from, &bytes[*at as usize..][..*count as usize]);
                }
                Change::Name { name, file } => writer.name(name, *file),
                Change::Branch { id, branch } => writer.branch(*id, branch.as_ref()),
                Change::End => writer.end(),
                Change::Claim { .. } => unreachable!("it is the only change of a sheet that takes over"),
            }
        }
        let (bytes, changes) = writer.finish();
        let bytes = Arc::new(bytes);
        let state = &mut *self.state.lock();
        for change in &changes {
            let Change::Write { file, at, .. } = change else { continue };
            // A sheet has at most one write, and so at most one extent, per file.
            let extents = state.table.files.get_mut(file).into_iter().flatten();
            for extent in extents.filter(|extent| extent.sheet == number) {
                (extent.sheet, extent.at) = (next, *at);
            }
        }
        guests.iter().for_each(|guest| state.note_guest(guest));
        state.table.apply_branches(&changes);
        state.table.last.sheet = next;
        if own.has_table() {
            state.last_table = next;
        }
        (state.next, state.under_way) = (next + 1, Some((next, bytes.clone())));
        (next, bytes)
    }

    /// Puts a sheet even if nothing has changed. A put meets all earlier sheets of guests, so afterwards the writer
    /// knows all that guests put before this call.
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::sync`]; `PermissionDenied` if this process is not the writer.
    pub fn put_now(&self) -> io::Result<()> {
        {
            let state = &mut *self.state.lock();
            state.check_writer()?;
            state.changes += 1;
        }
        self.sync()
    }

    /// Removes the names of all files, and makes the removal durable.
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::sync`].
    pub fn drop_files(&self) -> io::Result<()> {
        {
            let state = &mut *self.state.lock();
            state.check_writer()?;
            for name in state.names.keys().cloned().collect::<Vec<_>>() {
                state.change_name(&name, None);
            }
        }
        self.sync()
    }

    /// Removes all sheets before the takeover of this writer, except the fences. The database must have been
    /// dropped.
    ///
    /// # Errors
    ///
    /// An error of the store; this process is not the writer.
    pub fn remove_sheets_before_begin(&self) -> io::Result<()> {
        let (fences, begin) = {
            let state = self.state.lock();
            state.check_writer()?;
            (state.table.fences.clone(), state.table.term.sheet)
        };
        for sheet in self.list()?.range(..begin).filter(|sheet| !fences.contains_key(sheet)) {
            self.again().ask(|| self.store.remove(&name_of(*sheet)))?;
        }
        Ok(())
    }
}

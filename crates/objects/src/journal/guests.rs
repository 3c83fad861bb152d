//! Sheets of guests. A guest is a process that makes a branch of a database, while another process may be writing
//! to this database. Guests do not take over, and the writer goes on after their sheets.
//!
//! ```text
//! writer   31  32  33                34: there is one, of a guest      34 becomes 35
//! guest                34: a branch at a/b
//! ```
//!
//! A guest comes between two puts of a busy writer in the same way as a process that takes over: it puts its sheet
//! under several later numbers at once. The first of these sheets counts. The writer reads all of these sheets in
//! one round trip, and goes on after the last of them.
//!
//! So the journal says which branches exist, in one order with everything else. A branch is made from what the
//! sheets before its guest's sheet say. A process that writes later knows the branch in time: before it can say in
//! a sheet that it does not need a file any more.

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

/// Decodes a sheet, if a guest has put it under this number.
pub fn of_guest(number: u64, bytes: &[u8]) -> Option<Sheet> {
    decode(bytes).ok().filter(|sheet| sheet.is_of_guest() && sheet.number == number)
}

/// When a writer meets the sheet of a guest, it looks for this many further sheets at once, because beside a busy
/// writer a guest puts several.
const MET_TOGETHER: u64 = 16;

impl State {
    fn note_guest(&mut self, guest: &Sheet) {
        // If the sheet has a table, the table is not applied, because the writer already knows everything in it.
        self.table.apply_branches(&guest.changes);
        self.sheets.insert(guest.number);
    }
}

impl Journal {
    /// A journal that shows a database as it was at one moment. It has `table` and the contents of all files. It
    /// never looks for newer sheets, and nothing can be written to it.
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

    /// The names and the contents of all files in `table`, which belongs to this journal. Files that are not
    /// complete yet are left out.
    ///
    /// # Errors
    ///
    /// `NotFound` if a sheet was removed meanwhile; an error of the store.
    pub fn contents(&self, table: &Table) -> io::Result<Vec<(String, Vec<u8>)>> {
        let fixed = Journal::fixed(self.store.clone(), self.outside.clone(), table.clone(), &[]);
        let read = |(name, file): (&String, &u64)| Ok((name.clone(), fixed.read(*file, 0..fixed.len(*file))?));
        table.names.iter().filter(|(name, _)| !is_passing(name)).map(read).collect()
    }

    /// The table as it is after the last sheet, and the number of the next sheet.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; an error of the store.
    pub fn newest(&self) -> io::Result<(Table, u64)> {
        let newest = self.read_newest(&BTreeMap::new())?;
        Ok((newest.table, newest.next))
    }

    /// Adds a branch in the role of a guest. Returns the table as it is at the guest's sheet. It has everything
    /// that was durable before this sheet and nothing that came later.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; `Unsupported` if the store ignores the conditions of puts; `TimedOut`
    /// if sheets were removed again and again while this process was slow; an error of the store. After an error,
    /// the branch may or may not exist.
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
            // The sheets of this guest are in a gap that a removal has left, so the guest begins again.
        }
        let why = format!("sheets were removed while they were read, {ATTEMPTS} times");
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }

    /// Puts sheet `number`, with which a database begins. The sheet has `files`, and an epoch that is greater than
    /// `epoch`. The new database takes the place of `table`, which must have no files.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if a sheet with this number exists; an error of the store. After an error of the store, the
    /// sheet may or may not exist.
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
        // The sheet is in a gap. So another database was here a long time ago.
        Err(ErrorKind::AlreadyExists.into())
    }

    /// The branches of this database, as far as the writer knows.
    pub fn branches(&self) -> BTreeMap<u64, Branch> {
        let state = self.state.lock();
        let branches = state.table.branches.iter().filter(|(id, _)| !state.gone_branches.contains(id));
        branches.map(|(id, branch)| (*id, branch.clone())).collect()
    }

    /// Notes that a branch needs nothing any more. The next sheet will say so.
    pub fn forget_branch(&self, id: u64) {
        let state = &mut *self.state.lock();
        if state.is_writer && state.table.branches.contains_key(&id) && state.gone_branches.insert(id) {
            state.changes += 1;
        }
    }

    /// Makes a file with the content `bytes` in one step. If another file already has this name, the new file
    /// replaces it.
    ///
    /// # Errors
    ///
    /// This process is not the writer.
    pub fn replace(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        let state = &mut *self.state.lock();
        state.check_writer()?;
        state.files_made += 1;
        let file = new_file(state.table.epoch(), state.files_made);
        state.pending.insert(file, Pending { from: 0, bytes });
        state.change_name(name, Some(file));
        Ok(())
    }

    /// The sheets of guests from the number `number` on. `found` has the bytes of the first of them.
    pub(super) fn guests_from(&self, number: u64, found: &[u8]) -> Vec<Sheet> {
        let Some(first) = of_guest(number, found) else { return Vec::new() };
        let numbers: Vec<u64> = (number + 1..=number + MET_TOGETHER).collect();
        // If some of these sheets cannot be read now, a later put meets them again.
        let mut others = self.get_each(&numbers).unwrap_or_default();
        let others = numbers.iter().map_while(|number| others.remove(number)).map(|Read { sheet, .. }| sheet);
        std::iter::once(first).chain(others.take_while(Sheet::is_of_guest)).collect()
    }

    /// Moves the sheet `bytes` behind sheets of guests. The first guest has taken the number that this sheet was to
    /// have. So this sheet gets the number after the last guest. From now on, the bytes of files are looked up in
    /// this sheet under its new number.
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
            // A sheet has at most one write for each file.
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

    /// Puts a sheet, even if nothing has changed. After this call, the writer knows everything that guests had put
    /// before the call.
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::sync`]; this process is not the writer.
    pub fn put_now(&self) -> io::Result<()> {
        {
            let state = &mut *self.state.lock();
            state.check_writer()?;
            state.changes += 1;
        }
        self.sync()
    }

    /// Removes the names of all files and makes this durable.
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

    /// Removes the sheets before the takeover of this writer. The database must have been dropped. Sheets that
    /// earlier writers may still meet are kept.
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

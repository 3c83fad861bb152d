//! Sheets of guests: of those who make a branch of a database that another process may be writing to. They do not take over, and the
//! writer goes on after them.
//!
//! ```text
//! writer   31  32  33                34: there is one, of a guest      34 becomes 35
//! guest                34: a branch at a/b
//! ```
//!
//! So the journal says which branches there are, in the same order as everything else. A branch is made of what the sheets before that
//! of its guest say. Whoever writes later knows it, before it can say in a sheet that it does not need a file any more.

use super::bringing::is_passing;
use super::sheet::{GUEST, Sheet, SheetWriter, decode};
use super::table::{Branch, Change, Holder, Table};
use super::{ATTEMPTS, CUTS, Journal, Outside, Pending, Put, State, UNSEEN, apply_sheet, name_of, new_file};
use os::Store;
use os::store::is_certain;
use os::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

/// The number of the next sheet, of a journal that does not look for one.
pub const NO_NEXT: u64 = u64::MAX;

/// The sheet, if a guest has put it as this number.
pub fn of_guest(number: u64, bytes: &[u8]) -> Option<Sheet> {
    decode(bytes).ok().filter(|sheet| sheet.is_of_guest() && sheet.number == number)
}

/// What a sheet says of branches. A table in it is left out: the writer has all that is in it.
fn of_branches(changes: &[Change]) -> Vec<Change> {
    changes.iter().filter(|change| matches!(change, Change::Branch { .. })).cloned().collect()
}

impl State {
    /// Goes on after the sheet of a guest, which has the next number.
    pub fn pass(&mut self, guest: &Sheet) {
        self.note_guest(guest);
        self.next = guest.number + 1;
    }

    fn note_guest(&mut self, guest: &Sheet) {
        self.table.apply(guest.number, &of_branches(&guest.changes)).expect("a branch contradicts no table");
        self.sheets.insert(guest.number);
    }
}

impl Journal {
    /// What a database was at one moment: `table`, with the contents of all files. It asks no store, and goes on with none.
    pub fn fixed(store: Arc<dyn Store>, outside: Outside, table: Table, contents: &[(String, Vec<u8>)]) -> Journal {
        let bytes_of: BTreeMap<&str, &Vec<u8>> = contents.iter().map(|(name, bytes)| (&**name, bytes)).collect();
        let pending = table.names.iter().filter_map(|(name, file)| {
            let bytes = (*bytes_of.get(&**name)?).clone();
            Some((*file, Pending { from: 0, bytes }))
        });
        let pending = pending.collect();
        let state = Mutex::new(State { table, pending, next: NO_NEXT, ..State::default() });
        Journal { store, outside, cuts: CUTS, state, putting: Mutex::new(()) }
    }

    /// The names and the contents of all files of a table of this journal, but for those that are not there as a whole yet.
    ///
    /// # Errors
    ///
    /// `NotFound` if a sheet was removed since; the store's.
    pub fn contents(&self, table: &Table) -> io::Result<Vec<(String, Vec<u8>)>> {
        let fixed = Journal::fixed(self.store.clone(), self.outside.clone(), table.clone(), &[]);
        let read = |(name, file): (&String, &u64)| Ok((name.clone(), fixed.read(*file, 0..fixed.len(*file))?));
        table.names.iter().filter(|(name, _)| !is_passing(name)).map(read).collect()
    }

    /// The table as of the last sheet, and the number after it.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; the store's.
    pub fn newest(&self) -> io::Result<(Table, u64)> {
        let (table, next, _) = self.read_newest()?;
        Ok((table, next))
    }

    /// Adds a branch, as a guest. Returns the table as of that sheet: all that was durable before it, and nothing after.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a sheet is damaged; `TimedOut` if the writer was faster all the time; the store's. Then the branch may be there.
    pub fn add_branch(&self, id: u64, branch: &Branch) -> io::Result<Table> {
        for _ in 0..ATTEMPTS {
            let (begin, mut again) = (self.outside.clock.now(), self.again());
            let (mut table, known, _) = self.read_newest()?;
            let mut number = known;
            loop {
                let mut writer = SheetWriter::new(number, GUEST, self.token());
                if number == known {
                    writer.table(&table);
                }
                writer.branch(id, Some(branch));
                match self.store.put_if_absent(&name_of(number), &writer.finish().0) {
                    Ok(()) => break,
                    // A look at that sheet would take as long as the writer needs to put the next one. It may be one's own: then
                    // the branch is added twice.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                    Err(error) if is_certain(error.kind()) || !again.pause() => return Err(error),
                    Err(_) => {}
                }
                if self.outside.clock.now() > begin + UNSEEN {
                    break;
                }
            }
            if self.outside.clock.now() > begin + UNSEEN {
                // The sheet may lie in a gap that a removal has left.
                continue;
            }
            for sheet in known..=number {
                let missing = || io::Error::new(ErrorKind::NotFound, format!("{} was removed", name_of(sheet)));
                let bytes = self.get_there(sheet)?.ok_or_else(missing)?;
                apply_sheet(&mut table, sheet, &bytes)?;
            }
            return Ok(table);
        }
        let why = format!("the writer or the store was in the way for {ATTEMPTS} times {} s", UNSEEN.as_secs());
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }

    /// Puts sheet `number`, with which a database begins in place of `table`, which has no files: with an epoch after `epoch`, and
    /// with these files.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is such a sheet; the store's. Then it may be there.
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
        match self.put(number, &writer.finish().0)? {
            Put::Own => Ok(()),
            Put::Taken(_) => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    /// The branches of this database, as far as the writer knows.
    pub fn branches(&self) -> BTreeMap<u64, Branch> {
        let state = self.state.lock();
        let branches = state.table.branches.iter().filter(|(id, _)| !state.gone_branches.contains(id));
        branches.map(|(id, branch)| (*id, branch.clone())).collect()
    }

    /// Takes notice that a branch needs nothing any more. The next sheet says so.
    pub fn forget_branch(&self, id: u64) {
        let state = &mut *self.state.lock();
        if state.is_writer && state.table.branches.contains_key(&id) && state.gone_branches.insert(id) {
            state.changes += 1;
        }
    }

    /// Makes a file of `bytes`, in place of the file that has the name, in one step.
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

    /// A sheet that is there; `None` if it was removed, and does not only seem to be missing.
    pub(super) fn get_there(&self, number: u64) -> io::Result<Option<Vec<u8>>> {
        let mut again = self.again();
        loop {
            let bytes = self.get(number)?;
            if bytes.is_some() || !again.pause() {
                return Ok(bytes);
            }
        }
    }

    /// The sheet `bytes`, which was to be `number`, as the next one, after that of a guest. Bytes of files are found in it from now on.
    pub(super) fn make_room(&self, bytes: &[u8], guest: &Sheet) -> (u64, Arc<Vec<u8>>) {
        let own = decode(bytes).expect("it was written here");
        let (number, next) = (guest.number, guest.number + 1);
        let mut writer = SheetWriter::new(next, own.epoch, self.token());
        for change in &own.changes {
            match change {
                Change::Table(table) => {
                    let mut table = table.clone();
                    table.apply(number, &of_branches(&guest.changes)).expect("a branch contradicts no table");
                    writer.table(&table);
                }
                Change::Begin(holder) => writer.begin(holder),
                Change::Write { file, from, at, bytes: count } => {
                    writer.write(*file, *from, &bytes[*at as usize..][..*count as usize]);
                }
                Change::Name { name, file } => writer.name(name, *file),
                Change::Branch { id, branch } => writer.branch(*id, branch.as_ref()),
            }
        }
        let (bytes, changes) = writer.finish();
        let bytes = Arc::new(bytes);
        let state = &mut *self.state.lock();
        for change in &changes {
            let Change::Write { file, at, .. } = change else { continue };
            // A sheet has one write of a file.
            let extents = state.table.files.get_mut(file).into_iter().flatten();
            for extent in extents.filter(|extent| extent.sheet == number) {
                (extent.sheet, extent.at) = (next, *at);
            }
        }
        state.note_guest(guest);
        state.table.apply(next, &of_branches(&changes)).expect("a branch contradicts no table");
        (state.next, state.under_way) = (next + 1, Some((next, bytes.clone())));
        (next, bytes)
    }

    /// Puts a sheet, also if nothing has changed. Then all is known that guests have put before the call.
    ///
    /// # Errors
    ///
    /// As [`Journal::sync`]; this process is not the writer.
    pub fn put_now(&self) -> io::Result<()> {
        {
            let state = &mut *self.state.lock();
            state.check_writer()?;
            state.changes += 1;
        }
        self.sync()
    }

    /// Takes the names of all files away, durably.
    ///
    /// # Errors
    ///
    /// As [`Journal::sync`].
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

    /// Removes the sheets of a database that was dropped from before this writer took over, but for those in which writers took over
    /// within a week.
    ///
    /// No writer puts its sheet into the gap: one that has looked before finds the sheet in which this one took over.
    ///
    /// # Errors
    ///
    /// The store's; this process is not the writer.
    pub fn remove_sheets_before_begin(&self) -> io::Result<()> {
        let begins = {
            let state = self.state.lock();
            state.check_writer()?;
            state.table.begins.clone()
        };
        let begin = begins.last_key_value().map_or(0, |(sheet, _)| *sheet);
        for sheet in self.list()?.range(..begin).filter(|sheet| !begins.contains_key(sheet)) {
            self.again().ask(|| self.store.remove(&name_of(*sheet)))?;
        }
        Ok(())
    }
}

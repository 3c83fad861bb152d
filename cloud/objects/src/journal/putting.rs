//! Puts the writer's sheets, until another process takes over, and removes sheets that are no longer needed. This
//! module does not know what the files mean.

use super::folding::{FOLDED_BYTES, SMALL_BYTES};
use super::newest::ASKS_AGAIN_AFTER;
use super::sheet::{SheetWriter, decode};
use super::sheet_name::name_of;
use super::state::{Journal, NextSheet, State};
use super::table::{Change, Holder};
use crate::put::{Put, put_once};
use os::sync::Arc;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How long a sheet stays after it is no longer needed. The assumption is that the store never answers with a state
/// that is older than a quarter of this time. The known services never answer with an old state.
pub const KEPT: Duration = Duration::from_secs(60);

/// A writer that ends waits for its last removals, so it removes at most this many sheets, plus as many as it has
/// put. The latter bounds the number of all sheets even if writers are short-lived and put many sheets.
const MOST_REMOVED_AT_END: usize = 256;

impl Journal {
    /// Whether everything that was written is durable.
    pub fn is_synced(&self) -> bool {
        let state = self.state.lock();
        state.failed.is_some() || state.durable == state.changes
    }

    /// Whether a name was changed since the last sheet.
    pub fn has_changed_names(&self) -> bool {
        !self.state.lock().changed_names.is_empty()
    }

    /// Makes everything that was written durable.
    ///
    /// # Errors
    ///
    /// `StaleNetworkFileHandle` if another writer has taken over; an error of the store. Every later call returns
    /// the same error. But after an error of the store, the next call repeats the put if [`Journal::puts_again`] is
    /// set.
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

    /// Makes the next sheet, with all changes that are in no sheet yet; `None` if the first `wanted` changes are
    /// already durable.
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

    /// Puts a sheet. If its number is taken, finds out whose sheet has it.
    ///
    /// # Errors
    ///
    /// An error of the store. It is then unknown whether the sheet exists.
    pub(super) fn put(&self, number: u64, bytes: &[u8]) -> io::Result<Put> {
        let put = put_once(&*self.store, self.again(), &name_of(number), bytes)?;
        self.ascertain(number, bytes, put)
    }

    /// Checks the sheet that `put` has found in place of `bytes`. If it seems damaged, it is read again, because
    /// damage in transit could make this process's own sheet look like another's.
    fn ascertain(&self, number: u64, bytes: &[u8], put: Put) -> io::Result<Put> {
        let Put::Taken(found) = &put else { return Ok(put) };
        if decode(found).is_ok() {
            return Ok(put);
        }
        match self.get(number) {
            Ok(Some(read)) if *read.bytes == bytes => Ok(Put::Own),
            Ok(Some(read)) => Ok(Put::Taken(read.bytes.to_vec())),
            // Really damaged, or by a newer release. In both cases it is not this process's sheet.
            Ok(None) => Ok(put),
            Err(error) if error.kind() == ErrorKind::InvalidData => Ok(put),
            Err(error) => Err(error),
        }
    }

    /// Like [`Journal::check_writer`], but first looks for sheets of other writers, if this process has not done so
    /// for [`ASKS_AGAIN_AFTER`].
    ///
    /// # Errors
    ///
    /// `StaleNetworkFileHandle` if another writer has taken over; an error of the store.
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

    /// Looks for other writers' sheets with numbers from `next` on. If one exists, this process is no longer the
    /// writer. Sheets of guests are left to the next put, which meets them.
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

    /// Ends the writing. Puts the bytes that are in no sheet yet, if the store takes them, and removes sheets that
    /// nobody needs any more.
    pub fn release(&self) {
        {
            let state = &mut *self.state.lock();
            if state.check_writer().is_ok() {
                state.is_ending = true;
                state.changes += 1;
            }
        }
        // If this fails, only bytes that were not synced are lost. If no sheet says that this writer has ended, its
        // fence stays.
        self.sync().ok();
        let _putting = self.putting.lock();
        let state = std::mem::take(&mut *self.state.lock());
        if state.check_writer().is_err() {
            return;
        }
        let gone: BTreeSet<u64> = self.due(&state).into_iter().chain(settled(&state)).collect();
        // The next writer finds the sheets that are left. Stop at the first failure, because later removals would
        // mostly fail for the same reason.
        let mut gone = gone.into_iter().take(MOST_REMOVED_AT_END + state.put);
        gone.try_for_each(|sheet| self.store.remove(&name_of(sheet))).ok();
    }

    /// The sheets that have been unneeded for [`KEPT`].
    fn due(&self, state: &State) -> Vec<u64> {
        let now = self.outside.clock.now();
        let is_due = |since: &Duration| now >= *since + KEPT;
        state.useless.iter().filter(|(_, since)| is_due(since)).map(|(sheet, _)| *sheet).collect()
    }

    /// Notes the sheets that are no longer needed, and returns those that can be removed now.
    fn take_useless(&self, state: &mut State) -> Vec<u64> {
        // A sheet is needed until a later sheet has a table. So look only right after a sheet with a table.
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

    /// Removes sheets, in the background if the machine has threads. If a removal fails, the next writer finds the
    /// sheet.
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

/// The old sheets among those that were already useless when this writer took over: those from before a takeover
/// that was followed by another one at least a day later.
fn settled(state: &State) -> impl Iterator<Item = u64> {
    let until = state.table.marks.settled;
    state
        .useless
        .iter()
        .filter(move |(sheet, since)| **sheet < until && **since == state.took_over)
        .map(|(sheet, _)| *sheet)
}

/// The error of the writer with epoch `epoch` that has met the sheet `bytes` of another writer under the number
/// `number`.
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

//! The files of a journal, which can grow. The writer changes them, and all processes read them. This module does
//! not know when a sheet is put.

use super::bringing::is_passing;
use super::newest::{READS_OF_DAMAGED, corrupt};
use super::sheet_name::name_of;
use super::state::{Journal, Pending, Piece};
use super::table::new_file;
use crate::wholes::{FIRST_BYTES, READS_UNDER_WAY};
use os::store::RangeDone;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::mpsc;

/// Once this many bytes are in no sheet yet, they are put even without a sync.
const MOST_PENDING_BYTES: u64 = 16 << 20;

impl Journal {
    /// The number of the file with this name.
    pub fn file(&self, name: &str) -> Option<u64> {
        self.state.lock().file(name)
    }

    /// The names and lengths of all files.
    pub fn list_files(&self) -> Vec<(String, u64)> {
        let state = self.state.lock();
        let names = if state.is_writer { &state.names } else { &state.table.names };
        let names = names.iter().filter(|(name, _)| !is_passing(name));
        names.map(|(name, file)| (name.clone(), state.len(*file))).collect()
    }

    /// Whether the journal was read.
    pub fn is_known(&self) -> bool {
        self.state.lock().next != 0
    }

    /// The number of files in the table.
    #[cfg(test)]
    pub fn files(&self) -> usize {
        self.state.lock().table.files.len()
    }

    /// Creates a file.
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

    /// Renames a file. A file that has the name `to` loses it.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let state = &mut *self.state.lock();
        state.check_writer()?;
        let file = state.names.get(from).copied().ok_or(ErrorKind::NotFound)?;
        state.change_name(to, Some(file));
        state.change_name(from, None);
        Ok(())
    }

    /// Removes a name.
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

    /// Writes bytes at an offset. If the file ends before the offset, the gap is filled with zeros.
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

    /// Sets the length of a file: cuts it, or appends zeros.
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

    /// Lets `change` change the pending bytes of a file, which are in no sheet yet. If they begin after `from`, the
    /// bytes between are first read from sheets and made pending, too.
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
            // The change overwrites bytes that are already in sheets. Read them; they will be put again in the next
            // sheet.
            let before = self.read(file, start..end)?;
            let state = &mut *self.state.lock();
            if let Some(pending) = state.pending.get_mut(&file).filter(|pending| pending.from == end) {
                pending.bytes.splice(0..0, before);
                pending.from = start;
            }
        }
    }

    /// Reads a range of a file, or less if the file ends within it.
    ///
    /// # Errors
    ///
    /// `NotFound` if a sheet was removed; `InvalidData` if one is damaged; an error of the store.
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
        // Sheets with a piece near their beginning are read as a whole, so that their checksums reveal damage.
        let sheets: BTreeSet<u64> = small.iter().map(|(_, sheet, _)| *sheet).collect();
        let sheets = self.get_each(&sheets.into_iter().collect::<Vec<_>>())?;
        for (place, sheet, range) in small {
            let missing = || io::Error::new(ErrorKind::NotFound, format!("the store has no object {}", name_of(sheet)));
            let read = sheets.get(&sheet).ok_or_else(missing)?;
            let bytes = read.bytes.get(range.start as usize..range.end as usize);
            parts[place] = bytes.ok_or_else(|| corrupt(sheet, "it is shorter than the table says"))?.to_vec();
        }
        self.read_long(&long, &mut parts)?;
        Ok(parts.concat())
    }

    /// Reads pieces of long sheets, and stores each piece at its place in `parts`.
    fn read_long(&self, long: &[(usize, u64, Range<u64>)], parts: &mut [Vec<u8>]) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        for (number, (place, sheet, range)) in long.iter().enumerate() {
            if number >= READS_UNDER_WAY {
                let (place, read): (usize, Option<Vec<u8>>) = receiver.recv().expect("there is a sender here");
                parts[place] = read.unwrap_or_default();
            }
            let (place, sender) = (*place, sender.clone());
            let done: RangeDone = Box::new(move |read| {
                // An error is ignored: if the receiver does not exist any more, nobody waits for this piece.
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
                // The read has failed or has returned too few bytes. It is made again here, and repeated after
                // errors.
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
}

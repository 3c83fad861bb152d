//! A journal's state in memory. This module does not know how sheets are put, or who reads them.

use super::recent::Recent;
use super::table::{Extent, Table};
use crate::again::Again;
use os::sync::{Arc, Mutex};
use os::{Clock, Random, Store, Threads};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::time::Duration;

/// The number of the next sheet in a journal that never looks for newer sheets.
pub const NO_NEXT: u64 = u64::MAX;

/// How a journal is divided into sheets.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// At least one in this many sheets has a table.
    pub tables_every: u64,
    /// Files that a writer has left on this machine are brought in sheets of at most this many bytes, because a
    /// store limits the length of a put.
    pub brought_bytes: u64,
}

/// How journals are divided into sheets, except in tests.
pub const CUTS: Cuts = Cuts { tables_every: 64, brought_bytes: 64 << 20 };

/// What a journal needs besides the store.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Random numbers, for tokens, ids and pauses.
    pub random: Arc<dyn Random>,
    /// The threads for background work, such as removing sheets and putting logs.
    pub threads: Arc<dyn Threads>,
    /// A text that names the machine and the process, for people who want to know which process writes.
    pub who: String,
}

/// The journal of a database, with the files that can grow.
#[derive(Debug)]
pub struct Journal {
    pub(super) store: Arc<dyn Store>,
    pub outside: Outside,
    pub(super) cuts: Cuts,
    /// Whether the next sync repeats a put whose outcome is unknown. If not, such a put ends the writing, and every
    /// caller that waits for it gets its error.
    pub puts_again: bool,
    pub(super) state: Mutex<State>,
    /// Held while a sheet is put.
    pub(super) putting: Mutex<()>,
}

#[derive(Debug, Default)]
pub struct State {
    /// The table after all sheets before `next`, including the changes of a sheet that is still being put.
    pub(super) table: Table,
    /// The number of the next sheet; 0 if the journal was not read yet.
    pub(super) next: u64,
    /// Whether this process is the writer.
    pub(super) is_writer: bool,
    /// All names of files, including changes that are in no sheet yet.
    pub(super) names: BTreeMap<String, u64>,
    /// The names that differ from the names in the table.
    pub(super) changed_names: BTreeSet<String>,
    /// For each file, what was written since the last sheet.
    pub(super) pending: HashMap<u64, Pending>,
    /// How many files this writer has made.
    pub(super) files_made: u64,
    /// How many sheets this writer has put since it took over.
    pub(super) put: usize,
    /// How many changes this writer has made, and how many of them are durable.
    pub(super) changes: u64,
    pub(super) durable: u64,
    /// The last sheet and its number, until it is known to exist.
    pub(super) under_way: Option<(u64, Arc<Vec<u8>>)>,
    /// A sheet whose put must be repeated.
    pub(super) unfinished: Option<NextSheet>,
    /// The number of the last sheet with a table.
    pub(super) last_table: u64,
    /// How many bytes in small pieces were written since the sheet `last_table`.
    pub(super) small_bytes: u64,
    /// The sheets that were put or read last.
    pub(super) recent: Recent,
    pub(super) failed: Option<(ErrorKind, String)>,
    /// When an answer of the store last showed that no other writer had put a sheet.
    pub(super) last_list: Duration,
    /// When the writer took over.
    pub(super) took_over: Duration,
    /// Whether the next sheet says that this writer puts no more sheets.
    pub(super) is_ending: bool,
    /// The sheets that are no longer needed, each with the time when this was found out.
    pub(super) useless: BTreeMap<u64, Duration>,
    /// The sheets that exist, as far as the writer knows.
    pub(super) sheets: BTreeSet<u64>,
    /// Branches in the table that no longer need files. The next sheet will say this.
    pub(super) gone_branches: BTreeSet<u64>,
}

/// What was written to a file and is in no sheet yet: the file is cut at `from` and continues with `bytes`.
#[derive(Debug, Default)]
pub struct Pending {
    pub(super) from: u64,
    pub(super) bytes: Vec<u8>,
}

/// A sheet that is about to be put.
#[derive(Debug)]
pub struct NextSheet {
    pub(super) number: u64,
    pub(super) bytes: Arc<Vec<u8>>,
    /// How many of the writer's changes are durable once this sheet is.
    pub(super) changes: u64,
}

/// A piece of a file.
pub enum Piece {
    Bytes(Vec<u8>),
    InSheet { sheet: u64, range: Range<u64> },
}

impl State {
    pub(super) fn check(&self) -> io::Result<()> {
        match &self.failed {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn check_writer(&self) -> io::Result<()> {
        self.check()?;
        if self.is_writer {
            return Ok(());
        }
        Err(io::Error::new(ErrorKind::PermissionDenied, "this process does not hold the lock of the database"))
    }

    pub(super) fn len(&self, file: u64) -> u64 {
        match self.pending.get(&file) {
            Some(pending) => pending.from + pending.bytes.len() as u64,
            None => self.table.len(file),
        }
    }

    pub(super) fn file(&self, name: &str) -> Option<u64> {
        let names = if self.is_writer { &self.names } else { &self.table.names };
        names.get(name).copied()
    }

    pub(super) fn change_name(&mut self, name: &str, file: Option<u64>) {
        match file {
            Some(file) => self.names.insert(name.to_owned(), file),
            None => self.names.remove(name),
        };
        self.changed_names.insert(name.to_owned());
        self.changes += 1;
        // A file without a name is forgotten: nobody can read it, so its bytes need not be put.
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.pending.retain(|file, _| named.contains(file));
    }

    /// The pieces that make up a range of a file, in order.
    pub(super) fn pieces(&self, file: u64, range: Range<u64>) -> Vec<Piece> {
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

    /// Returns an error if this process is not the writer, or if it knows that another writer has taken over.
    pub fn check_writer(&self) -> io::Result<()> {
        self.state.lock().check_writer()
    }

    /// Returns an error if this process was the writer and another writer has taken over; this process must then
    /// put no more objects. A process that was never the writer, such as a compaction worker, may put objects.
    pub fn check_not_fenced(&self) -> io::Result<()> {
        self.state.lock().check()
    }

    pub(super) fn token(&self) -> [u64; 2] {
        [self.outside.random.next_u64(), self.outside.random.next_u64()]
    }
}

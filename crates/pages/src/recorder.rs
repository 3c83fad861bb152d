//! A session that notes what it was asked for: which pages of which files, and how each was found. It does not know why
//! they are read.
//!
//! * A page counts once a step, however often the step runs again or asks for it; but one that the cache drops between two
//!   runs is found first and read then, and was both.
//! * A page that was brought for this reader is no hit when it is first given, be it steps later: it was read for that.
//! * Pages, bytes and rounds read are those that the session itself counts.
//! * What is noted is a few numbers for each file touched, the first [`MAX_VISITS`] visits, the pages of the step, and up to
//!   16,384 pages that were brought and not asked for since.

use crate::session::PageRead;
use crate::{Address, PageHeader, PageKind, PageRef, PageSource, PagedFile, Reader, Result, Session, Stop};
use os::sync::Arc;
use std::cell::{Ref, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Visits noted one by one: enough for every page of a point read, and for the beginning of a long scan.
pub const MAX_VISITS: usize = 1000;

/// Pages read ahead that are remembered until they are used: 256 MiB of them. A page beyond that counts as a hit when it
/// is used.
const MAX_UNUSED: usize = 16 << 10;

/// A session, and notes of what it did.
pub struct Recorder {
    session: Session,
    notes: RefCell<Notes>,
}

/// How a page was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was in memory.
    Hit,
    /// It was missing, and read.
    Fault,
    /// It had been read ahead.
    Ahead,
    /// It was missing, and another reader was just bringing it.
    Shared,
}

impl Found {
    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Fault => "fault",
            Self::Ahead => "read ahead",
            Self::Shared => "shared",
        }
    }
}

/// A page that a step was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Id of its file.
    pub file: u64,
    /// Where it lies there.
    pub at: Address,
    /// What it is for.
    pub kind: PageKind,
    /// Of an index node, its height above the lowest pages of its tree; 0 for other pages.
    pub level: u8,
    /// How it was found.
    pub found: Found,
    /// Rounds of waiting before it was given.
    pub round: u64,
}

/// Pages of one kind in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Found in memory, once a step.
    pub hits: u64,
    /// Read because a step could not go on without.
    pub faults: u64,
    /// Read before a step needed them.
    pub ahead: u64,
    /// Missing, and brought by another reader meanwhile.
    pub shared: u64,
    /// Stored bytes of the pages read, in both ways.
    pub read_bytes: u64,
}

/// What was asked for of one file.
#[derive(Clone, Debug)]
pub struct FileNotes {
    /// Its id.
    pub id: u64,
    /// Its path.
    pub path: PathBuf,
    kinds: [Touched; PageKind::ALL.len()],
}

impl FileNotes {
    fn new(id: u64, path: &Path) -> Self {
        Self { id, path: path.to_owned(), kinds: Default::default() }
    }

    /// Pages of a kind.
    pub fn of(&self, kind: PageKind) -> Touched {
        self.kinds[kind.index()]
    }
}

/// What was noted.
#[derive(Debug, Default)]
pub struct Notes {
    /// In the order in which they were first asked for a page.
    files: Vec<FileNotes>,
    places: HashMap<u64, usize>,
    visits: Vec<Visit>,
    visits_left_out: u64,
    /// Asked for in this step and not in memory.
    missing: BTreeSet<Page>,
    /// Given in this step.
    given: HashSet<Page>,
    /// Brought and not given since.
    brought: HashMap<Page, Found>,
}

/// Id of the file, offset, kind.
type Page = (u64, u64, PageKind);

impl Notes {
    /// Files asked for pages, in the order in which they first were.
    pub fn files(&self) -> &[FileNotes] {
        &self.files
    }

    /// The first pages given, in order.
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// How many pages were given after those.
    pub fn visits_left_out(&self) -> u64 {
        self.visits_left_out
    }

    fn meet(&mut self, file: &PagedFile) {
        self.places.entry(file.id()).or_insert_with(|| {
            self.files.push(FileNotes::new(file.id(), file.path()));
            self.files.len() - 1
        });
    }

    fn touched(&mut self, file: u64, kind: PageKind) -> &mut Touched {
        let place = *self.places.get(&file).expect("a page is read after it was asked for");
        &mut self.files[place].kinds[kind.index()]
    }

    fn give(&mut self, file: &PagedFile, page: &PageRef, round: u64) {
        let (id, at, kind) = (file.id(), page.address(), page.kind());
        let place = (id, at.offset, kind);
        if !self.given.insert(place) {
            return;
        }
        self.meet(file);
        let found = self.brought.remove(&place).unwrap_or(Found::Hit);
        if found == Found::Hit {
            self.touched(id, kind).hits += 1;
        }
        if self.visits.len() == MAX_VISITS {
            self.visits_left_out += 1;
            return;
        }
        let level = PageHeader::decode(page).map_or(0, |header| header.level);
        self.visits.push(Visit { file: id, at, kind, level, found, round });
    }

    fn read(&mut self, read: &PageRead) {
        let PageRead { file, at, kind, needed, .. } = *read;
        let touched = self.touched(file, kind);
        *if needed { &mut touched.faults } else { &mut touched.ahead } += 1;
        touched.read_bytes += u64::from(at.bytes);
        let place = (file, at.offset, kind);
        self.missing.remove(&place);
        self.given.remove(&place);
        self.bring(place, if needed { Found::Fault } else { Found::Ahead });
    }

    fn bring(&mut self, page: Page, found: Found) {
        if self.brought.len() < MAX_UNUSED || found == Found::Fault {
            self.brought.insert(page, found);
        }
    }
}

impl Recorder {
    /// Notes what `session`, of which nothing was asked yet, is asked for.
    pub fn new(session: Session) -> Self {
        Self { session, notes: RefCell::default() }
    }

    /// What was noted so far.
    pub fn notes(&self) -> Ref<'_, Notes> {
        self.notes.borrow()
    }
}

impl Reader for Recorder {
    fn session(&self) -> &Session {
        &self.session
    }
}

impl Recorder {
    fn note(
        &self,
        answer: Result<PageRef, Stop>,
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Result<PageRef, Stop> {
        let notes = &mut *self.notes.borrow_mut();
        match &answer {
            Ok(page) => notes.give(file, page, self.session.rounds()),
            Err(Stop::Fault) => {
                notes.meet(file);
                notes.missing.insert((file.id(), at.offset, kind));
            }
            Err(Stop::Failed(_)) => {}
        }
        answer
    }

    fn note_peek(&self, page: Option<PageRef>, file: &Arc<PagedFile>) -> Option<PageRef> {
        let page = page?;
        self.notes.borrow_mut().give(file, &page, self.session.rounds());
        Some(page)
    }
}

impl PageSource for Recorder {
    fn page(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Result<PageRef, Stop> {
        self.note(self.session.page(file, at, kind), file, at, kind)
    }

    fn child(
        &self,
        parent: (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Result<PageRef, Stop> {
        self.note(self.session.child(parent, file, at, kind), file, at, kind)
    }

    fn peek(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.note_peek(self.session.peek(file, at, kind), file)
    }

    fn glance(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.session.glance(file, at, kind)
    }

    fn peek_child(
        &self,
        parent: (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Option<PageRef> {
        self.note_peek(self.session.peek_child(parent, file, at, kind), file)
    }

    fn ahead(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> bool {
        let is_noted = self.session.ahead(file, at, kind);
        if is_noted {
            self.notes.borrow_mut().meet(file);
        }
        is_noted
    }

    fn take_read(&self, file: &Arc<PagedFile>, at: &Address) -> bool {
        self.session.take_read(file, at)
    }

    fn fetch(&self) -> Result<()> {
        let notes = &mut *self.notes.borrow_mut();
        self.session.fetch_telling(|read| notes.read(read))?;
        for page in std::mem::take(&mut notes.missing) {
            notes.touched(page.0, page.2).shared += 1;
            notes.bring(page, Found::Shared);
        }
        Ok(())
    }

    fn release(&self) {
        let notes = &mut *self.notes.borrow_mut();
        notes.missing.clear();
        notes.given.clear();
        self.session.release_telling(|read| notes.read(read));
    }
}

#[cfg(test)]
mod tests;

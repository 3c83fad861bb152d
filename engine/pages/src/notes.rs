//! Notes on what a session was asked for: which pages of which files, and how each page was found. The notes do not
//! know why the pages are read.
//!
//! * A page counts once per step, however often the step runs again or asks for it. If the cache drops a page
//!   between two runs, the page is first found and then read, and counts as both.
//! * A page that was read for this reader does not count as a hit at its first use, even if that comes some steps
//!   later: the page was read for this use.
//! * The session itself also counts the pages and bytes that it read, and its rounds. The numbers agree.
//! * The notes keep a few numbers per touched file, the first [`MAX_VISITS`] visits, the pages of the current step,
//!   and up to 16,384 pages that were brought and not asked for since.

use crate::page_read::PageRead;
use crate::{Address, PageAt, PageHeader, PageKind, PageRef, PagedFile};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// How many visits are noted one by one: enough for every page of a point read, and for the beginning of a long
/// scan.
pub const MAX_VISITS: usize = 1000;

/// How many pages that were read ahead are remembered until they are used; they take 256 MiB. Further ones count as
/// hits when they are used.
const MAX_UNUSED: usize = 16 << 10;

/// How a page was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFound {
    /// It was in memory.
    Hit,
    /// The page was missing, and was read for the step.
    Fault,
    /// The page had been read ahead.
    Ahead,
    /// The page was missing, and another reader was already bringing it.
    Shared,
}

impl PageFound {
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
    /// The id of the page's file.
    pub file: u64,
    /// Offset, length and checksum in the file.
    pub at: Address,
    /// What the page is for.
    pub kind: PageKind,
    /// The height of an index node above the lowest pages of its tree; 0 for other pages.
    pub level: u8,
    /// How the page was found.
    pub found: PageFound,
    /// How many rounds the reader had waited before the page was given.
    pub round: u64,
}

/// Pages of one kind in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Pages that were found in memory, counted once in each step.
    pub hits: u64,
    /// Pages that were read because a step needed them.
    pub faults: u64,
    /// Pages that were read ahead.
    pub ahead: u64,
    /// Pages that were missing, and that another reader brought.
    pub shared: u64,
    /// The stored bytes of the pages that count as faults or as read ahead.
    pub read_bytes: u64,
}

/// What a session asked for in one file.
#[derive(Clone, Debug)]
pub struct FileNotes {
    /// The file's id.
    pub id: u64,
    /// The file's path.
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

/// What was noted for one session.
#[derive(Debug, Default)]
pub struct Notes {
    /// In the order in which they were first asked for a page.
    files: Vec<FileNotes>,
    visits: Vec<Visit>,
    visits_left_out: u64,
}

impl Notes {
    /// The files that were asked for pages, in the order of the first requests.
    pub fn files(&self) -> &[FileNotes] {
        &self.files
    }

    /// The first pages that were given to the reader, in the order in which they were given.
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// How many pages were given to the reader after those in [`Notes::visits`].
    pub fn visits_left_out(&self) -> u64 {
        self.visits_left_out
    }
}

/// Takes the notes of one session.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    notes: Notes,
    /// File id → place in the notes.
    places: HashMap<u64, usize>,
    /// Pages that this step asked for and that were not in memory.
    missing: BTreeSet<NotedPage>,
    /// Pages given in this step.
    given: HashSet<NotedPage>,
    /// Pages that were brought into memory and not given to the reader since.
    brought: HashMap<NotedPage, PageFound>,
}

/// Id of the file, offset, kind.
type NotedPage = (u64, u64, PageKind);

impl Notebook {
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Notes that the file was asked for a page.
    pub fn meet(&mut self, file: &PagedFile) {
        let files = &mut self.notes.files;
        self.places.entry(file.id()).or_insert_with(|| {
            files.push(FileNotes::new(file.id(), file.path()));
            files.len() - 1
        });
    }

    fn touched(&mut self, file: u64, kind: PageKind) -> &mut Touched {
        let place = *self.places.get(&file).expect("a page is read after it was asked for");
        &mut self.notes.files[place].kinds[kind.index()]
    }

    /// Notes that the session gave `page` to a step, after `round` rounds of waiting.
    pub fn give(&mut self, at: PageAt<'_>, page: &PageRef, round: u64) {
        let (file, at, kind) = (at.file, page.address(), page.kind());
        let place = (file.id(), at.offset, kind);
        if !self.given.insert(place) {
            return;
        }
        self.meet(file);
        let found = self.brought.remove(&place).unwrap_or(PageFound::Hit);
        if found == PageFound::Hit {
            self.touched(file.id(), kind).hits += 1;
        }
        if self.notes.visits.len() == MAX_VISITS {
            self.notes.visits_left_out += 1;
            return;
        }
        let level = PageHeader::decode(page).map_or(0, |header| header.level);
        self.notes.visits.push(Visit { file: file.id(), at, kind, level, found, round });
    }

    /// Notes that a step missed a page.
    pub fn miss(&mut self, at: PageAt<'_>) {
        self.meet(at.file);
        self.missing.insert((at.file.id(), at.address.offset, at.kind));
    }

    /// Notes that the session reads a page from disk.
    pub fn read(&mut self, read: &PageRead) {
        let PageRead { file, at, kind, needed, .. } = *read;
        let touched = self.touched(file, kind);
        *if needed { &mut touched.faults } else { &mut touched.ahead } += 1;
        touched.read_bytes += u64::from(at.bytes);
        let place = (file, at.offset, kind);
        self.missing.remove(&place);
        self.given.remove(&place);
        self.bring(place, if needed { PageFound::Fault } else { PageFound::Ahead });
    }

    fn bring(&mut self, page: NotedPage, found: PageFound) {
        if self.brought.len() < MAX_UNUSED || found == PageFound::Fault {
            self.brought.insert(page, found);
        }
    }

    /// Notes that a round is over. Missing pages that this session did not read were brought by another reader.
    pub fn end_round(&mut self) {
        for page in std::mem::take(&mut self.missing) {
            self.touched(page.0, page.2).shared += 1;
            self.bring(page, PageFound::Shared);
        }
    }

    /// Notes that a step is over.
    pub fn end_step(&mut self) {
        self.missing.clear();
        self.given.clear();
    }
}

#[cfg(test)]
mod tests;

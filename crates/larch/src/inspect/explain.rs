//! What a read did: which files it visited and why, and what of them it found in memory, read and waited for.
//!
//! A read is explained by doing it: the code of [`Table::get`] and [`Table::range`] runs over a session that takes notes.
//! What is told here beside its notes is which files it left out, from their bounds.

use crate::bounds::{self, IntoKeyRange};
use crate::core::snapshots::PinnedVersion;
use crate::error::Result;
use crate::handle::selection::Selection;
use crate::handle::snapshot::Snapshot;
use crate::handle::table::Table;
use crate::manifest::{DbFile, TableFiles};
use crate::read::level::files_between;
use crate::read::point::{self, Answer, PointRead, ask_memtable, files_of};
use crate::read::range::RangeRows;
use crate::read::view::TableView;
use crate::read::{FoundRow, PartList, Reader};
use os::sync::Arc;
use pages::notes::{FileNotes, Notes, Touched};
use pages::{Admit, PageKind, Reason, Session, retry};
use sst::{Direction, Version};
use std::collections::{HashMap, HashSet};
use std::ops::Bound;

mod text;

pub use pages::notes::PageFound;

/// What a read did. Printed, it is a table for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Version it read at.
    pub version: Version,
    /// What came of it.
    pub answer: Explained,
    /// Memtables it asked.
    pub memtables: u64,
    /// Rows of the answer that were in memtables.
    pub memory_rows: u64,
    /// Files it touched pages of, in the order in which it came to them.
    pub files: Vec<ExplainedFile>,
    /// Every level that has files, from the top: how many were visited and why the others were not.
    pub levels: Vec<ExplainedLevel>,
    /// Rounds of waiting for the disk.
    pub rounds: u64,
    /// The first thousand pages it was given, in order.
    pub visits: Vec<PageVisit>,
    /// Pages it was given after those.
    pub visits_left_out: u64,
}

/// What came of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explained {
    /// The key has a row, of this many bytes in the parts that were wanted.
    Found {
        /// Bytes of the value, or of its parts.
        value_bytes: u64,
    },
    /// Nothing is known of the key.
    Absent,
    /// The newest that is known of the key is that it was erased, by itself or with a range.
    Erased,
    /// A scan gave rows.
    Rows {
        /// How many.
        rows: u64,
        /// Bytes of their values, or of the parts that were wanted.
        value_bytes: u64,
    },
}

/// A file that was visited.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedFile {
    /// Its level; `None` if it came and went while a scan ran, too fast to tell. Then its rows and bytes are 0.
    pub level: Option<usize>,
    /// Its number.
    pub number: u64,
    /// Its rows, newest versions.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// What the visit came to.
    pub verdict: Verdict,
    /// The pages touched, by kind.
    pub pages: Vec<ExplainedPages>,
}

/// What a visit of a file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It has the row that is the answer.
    Row,
    /// It says that the key was erased.
    Erased,
    /// By its bounds it might have had the key; it says nothing of it.
    Nothing,
    /// By its bounds it might have had the key; its filter says that it has not, and none of its data pages was asked for.
    SavedByFilter,
    /// A scan went through it.
    Walked,
}

/// Pages of one kind, of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedPages {
    /// What they are for.
    pub kind: PageKind,
    /// Found in memory. A page counts once a step, however often the step had to be run again; one that this read brought
    /// itself is no hit when it is first used.
    pub hits: u64,
    /// Missing, and read from disk.
    pub faults: u64,
    /// Read from disk in the same rounds, before they were needed.
    pub ahead: u64,
    /// Missing, and brought by another reader meanwhile.
    pub shared: u64,
    /// Stored bytes of the pages read, faults and those ahead.
    pub read_bytes: u64,
}

/// Files of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedLevel {
    /// Its number.
    pub level: usize,
    /// Files in it.
    pub files: u64,
    /// Of these, visited.
    pub visited: u64,
    /// Of these, left out because by their bounds they have none of the keys.
    pub outside_bounds: u64,
    /// Of these, left out because the answer was complete before.
    pub not_reached: u64,
}

/// A page that a read was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageVisit {
    /// Number of its file.
    pub file: u64,
    /// What it is for.
    pub kind: PageKind,
    /// Of an index node, its height above the lowest pages of its tree; 0 for other pages.
    pub level: u8,
    /// Where it lies in the file.
    pub offset: u64,
    /// Its stored bytes.
    pub bytes: u64,
    /// How it was found.
    pub found: PageFound,
    /// Rounds of waiting that there were before.
    pub round: u64,
}

impl Explanation {
    /// All pages that were touched, of every kind.
    pub fn pages(&self) -> impl Iterator<Item = &ExplainedPages> {
        self.files.iter().flat_map(|file| &file.pages)
    }

    /// Pages read from disk.
    pub fn page_reads(&self) -> u64 {
        self.pages().map(|pages| pages.faults + pages.ahead).sum()
    }

    /// Stored bytes of those.
    pub fn read_bytes(&self) -> u64 {
        self.pages().map(|pages| pages.read_bytes).sum()
    }

    /// Pages found in memory.
    pub fn page_hits(&self) -> u64 {
        self.pages().map(|pages| pages.hits).sum()
    }
}

impl Table {
    /// Gets `key` and says what that took; the value goes. See [`Table::get`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// db.flush()?;
    /// let explanation = fruit.explain_get("apple")?;
    /// assert_eq!(explanation.answer, larch::Explained::Found { value_bytes: 3 });
    /// assert_eq!(explanation.files.len(), 1);
    /// println!("{explanation}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain_get(&self, key: impl AsRef<[u8]>) -> Result<Explanation> {
        self.inner().check_whole()?;
        self.explain_get_of(key.as_ref(), &PartList::whole(), None)
    }

    /// Reads the rows in `range`, at most `limit` of them, and says what that took; the rows go. See [`Table::range`] and
    /// [`Range::limit`](crate::Range::limit).
    pub fn explain_scan(
        &self,
        range: impl IntoKeyRange,
        limit: Option<u64>,
        direction: Direction,
    ) -> Result<Explanation> {
        self.inner().check_whole()?;
        self.explain_scan_of(bounds::owned(&range), limit, direction, PartList::whole(), self.inner().pin())
    }

    fn explain_get_of(&self, key: &[u8], wanted: &PartList, pin: Option<&Arc<PinnedVersion>>) -> Result<Explanation> {
        Reader::new(self.inner(), pin, *wanted).look(|table| self.explain_get_in(table, key, wanted))
    }

    fn explain_get_in(&self, table: TableView<'_>, key: &[u8], wanted: &PartList) -> Result<Explanation> {
        let (cache, at) = (&self.core().env.cache, table.at);
        let session = Session::new(cache, Reason::Point, Admit::Keep).with_notes();
        let mut read = PointRead::new(table, key);
        let (answer, memory_rows, decided) = match retry(&session, || read.answer(&session))? {
            Answer::Silent => (Explained::Absent, 0, Verdict::Nothing),
            Answer::Gone => (Explained::Erased, 0, Verdict::Erased),
            Answer::Row(found) => {
                let is_memory = matches!(found, FoundRow::Memory(_));
                let parts = point::load(&session, cache, found, wanted)?;
                let value_bytes = parts.iter().map(|part| part.len() as u64).sum();
                (Explained::Found { value_bytes }, u64::from(is_memory), Verdict::Row)
            }
        };
        let is_silent = |answer: &Answer<'_>| matches!(answer, Answer::Silent);
        let mut is_open = true;
        let memtables = table
            .memtables()
            .take_while(|memtable| std::mem::replace(&mut is_open, is_silent(&ask_memtable(memtable, at, key))))
            .count() as u64;
        let known = Known::new(table, |files| files_of(files, key).map(|file| file.number).collect());
        let visited = session.notes().map_or(0, |notes| notes.files().len());
        // Sources are asked until one decides: that is the last.
        let verdict = |i: usize| if i + 1 == visited { decided } else { Verdict::Nothing };
        Ok(known.explain(&session, verdict, ReadOutcome { version: at, answer, memtables, memory_rows }))
    }

    fn explain_scan_of(
        &self,
        range: bounds::Owned,
        limit: Option<u64>,
        direction: Direction,
        wanted: PartList,
        pin: Arc<PinnedVersion>,
    ) -> Result<Explanation> {
        let version = pin.version();
        // As a range does, this holds no view: what it has to know of one it takes down.
        let (memtables, mut generation, mut known) = {
            let view = self.core().views.of_pin(&pin);
            let table = view.table(self.identity(), version)?;
            let (low, high) = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
            let known = Known::new(table, |files| numbers_between(files, low, high));
            (table.memtables().count() as u64, view.generation, known)
        };
        let session = Session::new(&self.core().env.cache, Reason::Scan, Admit::Keep).with_notes();
        let rows = RangeRows::new(session, self.inner(), wanted, pin, range);
        let mut scan = rows.limit(limit.unwrap_or(u64::MAX));
        let (mut rows, mut memory_rows, mut value_bytes) = (0, 0, 0);
        while let Some(row) = scan.next(direction)? {
            rows += 1;
            memory_rows += u64::from(row.is_in_memtable());
            value_bytes += row.parts()?.iter().map(|part| part.len() as u64).sum::<u64>();
            if self.core().views.generation() != generation {
                let view = self.core().views.newest();
                generation = view.generation;
                known.learn(view.table(self.identity(), version)?);
            }
        }
        let answer = Explained::Rows { rows, value_bytes };
        Ok(known.explain(scan.session(), |_| Verdict::Walked, ReadOutcome { version, answer, memtables, memory_rows }))
    }
}

/// Files that a scan from `low` to `high` may come to, as far as their bounds tell.
fn numbers_between(files: &TableFiles, low: Bound<&[u8]>, high: Bound<&[u8]>) -> HashSet<u64> {
    let (level0, deeper) = files.levels.split_first().expect("a table has levels");
    let runs = level0.chunks(1).chain(deeper.iter().map(|level| level.as_slice()));
    runs.flat_map(|run: &[Arc<DbFile>]| &run[files_between(run, low, high)]).map(|file| file.number).collect()
}

impl Selection {
    /// Gets the parts of the row `key` and says what that took. See [`Selection::get`].
    pub fn explain_get(&self, key: impl AsRef<[u8]>) -> Result<Explanation> {
        self.table().explain_get_of(key.as_ref(), self.wanted(), self.pinned())
    }

    /// Reads the rows in `range`, at most `limit` of them, and says what that took. See [`Selection::range`].
    pub fn explain_scan(
        &self,
        range: impl IntoKeyRange,
        limit: Option<u64>,
        direction: Direction,
    ) -> Result<Explanation> {
        self.table().explain_scan_of(bounds::owned(&range), limit, direction, *self.wanted(), self.reader().pin())
    }
}

impl Snapshot {
    /// As [`Table::explain_get`], at this snapshot. For groups see [`Selection::at`].
    pub fn explain_get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Explanation> {
        let pin = self.pin_of(table)?;
        table.inner().check_whole()?;
        table.explain_get_of(key.as_ref(), &PartList::whole(), Some(pin))
    }

    /// As [`Table::explain_scan`], at this snapshot. For groups see [`Selection::at`].
    pub fn explain_scan(
        &self,
        table: &Table,
        range: impl IntoKeyRange,
        limit: Option<u64>,
        direction: Direction,
    ) -> Result<Explanation> {
        let pin = self.pin_of(table)?.clone();
        table.inner().check_whole()?;
        table.explain_scan_of(bounds::owned(&range), limit, direction, PartList::whole(), pin)
    }
}

/// What came of a read, beside its pages.
struct ReadOutcome {
    version: Version,
    answer: Explained,
    memtables: u64,
    memory_rows: u64,
}

/// Files that a read may have come to, as numbers: it keeps none of them.
struct Known {
    /// By id.
    files: HashMap<u64, KnownFile>,
    /// Those of the view that the read began with: level, number, and whether by their bounds they are of concern.
    first: Vec<(usize, u64, bool)>,
}

#[derive(Clone, Copy)]
struct KnownFile {
    level: Option<usize>,
    number: u64,
    rows: u64,
    bytes: u64,
}

impl Known {
    /// The files of a table; `candidates` says the numbers of those that by their bounds are of concern.
    fn new(table: TableView<'_>, candidates: impl FnOnce(&TableFiles) -> HashSet<u64>) -> Self {
        let mut known = Self { files: HashMap::new(), first: Vec::new() };
        let files = table.files;
        known.learn(table);
        let candidates = candidates(files);
        let all = files.files().map(|(level, file)| (level, file.number, candidates.contains(&file.number)));
        known.first.extend(all);
        known
    }

    /// Takes in the files that are not known yet.
    fn learn(&mut self, table: TableView<'_>) {
        for (level, file) in table.files.files() {
            let (number, rows, bytes) = (file.number, file.sst.meta.rows(), file.bytes());
            let known = KnownFile { level: Some(level), number, rows, bytes };
            self.files.entry(file.sst.file.id()).or_insert(known);
        }
    }

    fn file(&self, notes: &FileNotes) -> KnownFile {
        self.files.get(&notes.id).copied().unwrap_or_else(|| {
            // NNNNNNNN-E.sst
            let name = notes.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let number = name.split('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
            KnownFile { level: None, number, rows: 0, bytes: 0 }
        })
    }

    /// Puts together what the reader noted and what the read came to: `verdict` is that of the file visited at a place in the
    /// order, unless its filter had it.
    fn explain(&self, session: &Session, verdict: impl Fn(usize) -> Verdict, read: ReadOutcome) -> Explanation {
        let notes = &*session.notes().expect("a read that is explained takes notes");
        let files = notes.files().iter().enumerate().map(|(i, file)| {
            let KnownFile { level, number, rows, bytes } = self.file(file);
            let verdict = match verdict(i) {
                // One that says an erase by its range erases said something, whatever its filter did.
                Verdict::Nothing | Verdict::Walked if saved_by_filter(|kind| file.of(kind)) => Verdict::SavedByFilter,
                verdict => verdict,
            };
            ExplainedFile { level, number, rows, bytes, verdict, pages: pages_of(file) }
        });
        let files: Vec<ExplainedFile> = files.collect();
        let visited: HashSet<u64> = files.iter().map(|file| file.number).collect();
        let (levels, rounds) = (self.levels(&visited), session.rounds());
        let (visits, visits_left_out) = (self.visits(notes), notes.visits_left_out());
        let ReadOutcome { version, answer, memtables, memory_rows } = read;
        Explanation { version, answer, memtables, memory_rows, files, levels, rounds, visits, visits_left_out }
    }

    fn levels(&self, visited: &HashSet<u64>) -> Vec<ExplainedLevel> {
        let levels = self.first.chunk_by(|(a, ..), (b, ..)| a == b).map(|files| {
            let mut here = ExplainedLevel { level: files[0].0, ..ExplainedLevel::default() };
            for (_, number, is_candidate) in files {
                here.files += 1;
                match (visited.contains(number), is_candidate) {
                    (true, _) => here.visited += 1,
                    (false, true) => here.not_reached += 1,
                    (false, false) => here.outside_bounds += 1,
                }
            }
            here
        });
        levels.collect()
    }

    fn visits(&self, notes: &Notes) -> Vec<PageVisit> {
        let numbers: HashMap<u64, u64> = notes.files().iter().map(|file| (file.id, self.file(file).number)).collect();
        let visits = notes.visits().iter().map(|visit| PageVisit {
            file: numbers[&visit.file],
            kind: visit.kind,
            level: visit.level,
            offset: visit.at.offset,
            bytes: u64::from(visit.at.bytes),
            found: visit.found,
            round: visit.round,
        });
        visits.collect()
    }
}

fn is_touched(pages: Touched) -> bool {
    pages != Touched::default()
}

/// Whether the file was asked no further than its filter.
fn saved_by_filter(touched: impl Fn(PageKind) -> Touched) -> bool {
    is_touched(touched(PageKind::Filter)) && !is_touched(touched(PageKind::Data))
}

fn pages_of(file: &FileNotes) -> Vec<ExplainedPages> {
    let kinds = PageKind::ALL.into_iter().map(|kind| (kind, file.of(kind)));
    let touched = kinds.filter(|(_, pages)| is_touched(*pages));
    let explained = touched.map(|(kind, Touched { hits, faults, ahead, shared, read_bytes })| ExplainedPages {
        kind,
        hits,
        faults,
        ahead,
        shared,
        read_bytes,
    });
    explained.collect()
}

#[cfg(test)]
mod tests;

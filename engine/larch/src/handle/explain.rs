//! Explains a read: which files it visited and why, which pages were in memory, which pages it read from the disk,
//! and how often it waited.
//!
//! To explain a read, this module does it: the code of [`Reader::get`] and [`Reader::range`] runs in a session that
//! takes notes. This file adds which files the read skipped because of their bounds.

use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::handle::index::Index;
use crate::indexes::entry::{self, IndexEntry};
use crate::indexes::read::MOST_IN_ROUND;
use crate::manifest::{DbFile, TableFiles};
use crate::read::content::GivesRows;
use crate::read::multi::AnswerBytes;
use crate::read::range::RangeRows;
use crate::read::{Content, Reader, multi};
use crate::view::TableView;
use crate::view::fold::fold;
use crate::view::found::FoundRow;
use crate::view::level::files_between;
use crate::view::part_list::PartList;
use crate::view::point::{Answer, PointRead, ask_memtable};
use crate::view::value::Parts;
use os::sync::Arc;
use pages::notes::{FileNotes, Notes, Touched};
use pages::{Admit, PageKind, Reason, Session, retry};
use sst::{Direction, SoughtKey, Version};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Bound;
use store::StoreWatch;

mod store;
mod text;

pub use pages::notes::PageFound;
pub use store::ExplainedStore;

/// What a read did, see [`Table::explain_get`](crate::Reader::explain_get) and
/// [`Table::explain_scan`](crate::Reader::explain_scan). `Display` prints it as a table for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The version that the read saw.
    pub version: Version,
    /// What the read found.
    pub answer: Explained,
    /// How many memtables the read searched.
    pub memtables: u64,
    /// How many rows of the answer were in memtables.
    pub memory_rows: u64,
    /// The files whose pages the read used, in the order of their first use.
    pub files: Vec<ExplainedFile>,
    /// All levels that have files, from level 0 down: how many of their files were visited, and why the others were
    /// not.
    pub levels: Vec<ExplainedLevel>,
    /// How often the read waited for the disk. In a store, each wait is a round trip.
    pub rounds: u64,
    /// The requests to the store during the read. `None` if the database is not in a store.
    pub store: Option<ExplainedStore>,
    /// The first thousand pages that the read used, in the order of their use.
    pub visits: Vec<PageVisit>,
    /// How many pages the read used after the first thousand.
    pub visits_left_out: u64,
}

/// What a read by an index did, see [`Index::explain_range_by`]. `Display` prints it as a table for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedByIndex {
    /// The read of the entries, which uses pages of the index.
    pub entries: Explanation,
    /// The lookups of the rows, which use pages of the table.
    pub rows: Explanation,
}

impl ExplainedByIndex {
    /// How often the read waited for the disk.
    pub fn rounds(&self) -> u64 {
        self.entries.rounds + self.rows.rounds
    }
}

/// Prints both reads, first the read of the entries.
impl fmt::Display for ExplainedByIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entries of the index\n{}\nrows of the table\n{}", self.entries, self.rows)
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explained {
    /// The key has a row.
    Found {
        /// The bytes of the value, or of the parts of it that were read.
        value_bytes: u64,
    },
    /// No version of the key was found.
    Absent,
    /// The newest version of the key is an erase, or a range erase hides the newest version.
    Erased,
    /// A scan found rows.
    Rows {
        /// The number of rows.
        rows: u64,
        /// The bytes of the values, or of the parts of them that were read.
        value_bytes: u64,
    },
}

/// A file that the read visited.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedFile {
    /// The level of the file. `None` if the file was created during the scan and replaced before the scan ended;
    /// `rows` and `bytes` are 0 then.
    pub level: Option<usize>,
    /// The number of the file.
    pub number: u64,
    /// The number of rows in the file. Older versions are not counted.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What the read found in the file.
    pub verdict: Verdict,
    /// The pages of the file that the read used, by kind.
    pub pages: Vec<ExplainedPages>,
}

/// What the read found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The file has the row that the read returned.
    Row,
    /// The file has an erase or a range erase of the key, so the key has no value.
    Erased,
    /// The key is within the bounds of the file, but the file has no version of it.
    Nothing,
    /// The key is within the bounds of the file, but the filter says that the file does not have it, so no data
    /// page was used.
    SavedByFilter,
    /// A scan went through the file, or several keys were looked up in it together.
    Walked,
}

/// The pages of one kind in one file that the read used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedPages {
    /// The kind of the pages.
    pub kind: PageKind,
    /// How many pages were found in memory. A page counts once for each step of the read that used it, even if the
    /// step had to be repeated. The first use of a page that the read itself has loaded does not count.
    pub hits: u64,
    /// How many pages were missing and were read from the disk.
    pub faults: u64,
    /// How many pages were read ahead, together with missing pages, before the read needed them.
    pub ahead: u64,
    /// How many pages were missing, but another reader loaded them at the same time.
    pub shared: u64,
    /// The stored bytes of all pages that were read from the disk, those of `faults` and of `ahead`.
    pub read_bytes: u64,
}

/// The files of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedLevel {
    /// The number of the level.
    pub level: usize,
    /// The number of files in the level.
    pub files: u64,
    /// How many of these files the read visited.
    pub visited: u64,
    /// How many files were skipped because the keys are outside of their bounds.
    pub outside_bounds: u64,
    /// How many files were skipped because the answer was already complete.
    pub not_reached: u64,
}

/// One use of a page by a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageVisit {
    /// The number of the page's file.
    pub file: u64,
    /// The kind of the page.
    pub kind: PageKind,
    /// The height of an index node above the leaves of its tree. 0 for other pages.
    pub level: u8,
    /// The offset of the page in the file, in bytes.
    pub offset: u64,
    /// The stored bytes of the page.
    pub bytes: u64,
    /// Whether the page was found in memory or was read from the disk.
    pub found: PageFound,
    /// How often the read had waited for the disk before this use.
    pub round: u64,
}

impl Explanation {
    /// The pages that the read used, grouped by file and kind.
    pub fn pages(&self) -> impl Iterator<Item = &ExplainedPages> {
        self.files.iter().flat_map(|file| &file.pages)
    }

    /// How many pages were read from disk.
    pub fn page_reads(&self) -> u64 {
        self.pages().map(|pages| pages.faults + pages.ahead).sum()
    }

    /// The stored bytes of the pages that were read from disk.
    pub fn read_bytes(&self) -> u64 {
        self.pages().map(|pages| pages.read_bytes).sum()
    }

    /// How many pages were found in memory.
    pub fn page_hits(&self) -> u64 {
        self.pages().map(|pages| pages.hits).sum()
    }
}

impl<V: Content> Reader<'_, V> {
    /// Gets `key` as [`Reader::get`] does, but returns what the read did instead of the value. In a transaction, it
    /// ignores the transaction's own writes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// db.flush()?;
    /// let explanation = fruit.explain_get("apple")?;
    /// assert_eq!(explanation.answer, larch::explain::Explained::Found { value_bytes: 3 });
    /// assert_eq!(explanation.files.len(), 1);
    /// println!("{explanation}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::get`] does.
    pub fn explain_get(&self, key: impl AsRef<[u8]>) -> Result<Explanation> {
        V::check(self.handle())?;
        self.look(|table| self.explain_get_in(table, key.as_ref()))
    }

    /// Reads the first `limit` rows in `range`, or all rows if `limit` is `None`, and returns what the read did
    /// instead of the rows. See [`Reader::range`] and [`Range::limit`](crate::Range::limit).
    ///
    /// # Errors
    ///
    /// Fails as a read of the rows of [`Reader::range`] does.
    pub fn explain_scan(
        &self,
        range: impl IntoKeyRange,
        limit: Option<u64>,
        direction: Direction,
    ) -> Result<Explanation> {
        V::check(self.handle())?;
        self.explain_scan_with((bounds::owned(&range), limit, direction), |_, _| {})
    }

    fn explain_get_in(&self, table: TableView<'_>, key: &[u8]) -> Result<Explanation> {
        let env = &self.handle().core().env;
        let (cache, at) = (&env.cache, table.at);
        let watch = StoreWatch::begin(&*env.machine.disk);
        let session = Session::new(cache, Reason::Point, Admit::Keep).with_notes();
        let mut read = PointRead::new(table, key);
        let sought = SoughtKey::new(key);
        let found = retry(&session, || match read.answer(&session)? {
            Answer::Merge => fold(&session, table, &sought).map(|row| Answer::Row(FoundRow::Memory(row))),
            answer => Ok(answer),
        })?;
        let (answer, memory_rows, decided) = match found {
            Answer::Silent => (Explained::Absent, 0, Verdict::Nothing),
            Answer::Gone | Answer::Merge => (Explained::Erased, 0, Verdict::Erased),
            Answer::Row(found) => {
                let is_memory = matches!(found, FoundRow::Memory(_));
                let load = || Parts::load_found(&found, &session, cache, self.wanted());
                let parts = retry(&session, load)?;
                let value_bytes = parts.iter().map(|part| part.len() as u64).sum();
                (Explained::Found { value_bytes }, u64::from(is_memory), Verdict::Row)
            }
        };
        let store = watch.end();
        let is_silent = |answer: &Answer<'_>| matches!(answer, Answer::Silent);
        let mut is_open = true;
        let memtables = table
            .memtables()
            .take_while(|memtable| {
                std::mem::replace(&mut is_open, is_silent(&ask_memtable(table, memtable, at, &sought)))
            })
            .count() as u64;
        let known = Known::new(table, |files| files.files_with_key(key).map(|file| file.number).collect());
        let visited = session.notes().map_or(0, |notes| notes.files().len());
        // The search goes through memtables and files in turn, and stops at the first one that decides the answer.
        // So if a file has decided it, that is the last visited file.
        let verdict = |i: usize| if i + 1 == visited { decided } else { Verdict::Nothing };
        Ok(known.explain(&session, verdict, ReadOutcome { version: at, answer, memtables, memory_rows, store }))
    }

    /// Looks up `keys` together, as a read by an index does, and returns what the read did.
    fn explain_rows(&self, keys: &[Vec<u8>]) -> Result<Explanation> {
        self.look(|table| {
            let env = &self.handle().core().env;
            let (cache, at) = (&env.cache, table.at);
            let watch = StoreWatch::begin(&*env.machine.disk);
            let session = Session::new(cache, Reason::Point, Admit::Keep).with_notes();
            let candidates = |files: &TableFiles| {
                let files = keys.iter().flat_map(|key| files.files_with_key(key));
                files.map(|file| file.number).collect()
            };
            let known = Known::new(table, candidates);
            let (mut rows, mut value_bytes) = (0, 0);
            let mut rest = keys;
            while !rest.is_empty() {
                let next = &rest[..rest.len().min(MOST_IN_ROUND)];
                let found = multi::get::<Parts, _>(&session, cache, table, next, (self.wanted(), AnswerBytes::ROUND))?;
                rest = &rest[found.len()..];
                for row in found.into_iter().flatten() {
                    rows += 1;
                    value_bytes += row.iter().map(|part| part.len() as u64).sum::<u64>();
                }
            }
            let is_row = |answer: &Answer<'_>| matches!(answer, Answer::Row(_));
            let in_memory = |key: &&Vec<u8>| {
                let key = SoughtKey::new(key);
                table.memtables().any(|memtable| is_row(&ask_memtable(table, memtable, at, &key)))
            };
            let (memtables, memory_rows) =
                (table.memtables().count() as u64, keys.iter().filter(in_memory).count() as u64);
            let answer = Explained::Rows { rows, value_bytes };
            let outcome = ReadOutcome { version: at, answer, memtables, memory_rows, store: watch.end() };
            Ok(known.explain(&session, |_| Verdict::Walked, outcome))
        })
    }

    /// Does a scan, and calls `each` with the key and the first part of each row.
    fn explain_scan_with(
        &self,
        (range, limit, direction): (bounds::Owned, Option<u64>, Direction),
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<Explanation> {
        let (core, identity, pin) = (self.handle().core(), &self.handle().identity, self.pin());
        let version = pin.version();
        // Like a range, this scan does not hold one view during the whole read. So note what the explanation needs
        // to know about each view while it is at hand.
        let (memtables, mut generation, mut known) = {
            let view = core.views.of_pin(&pin);
            let table = view.table(identity, version)?;
            let (low, high) = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
            let known = Known::new(table, |files| numbers_between(files, low, high));
            (table.memtables().count() as u64, view.generation, known)
        };
        let watch = StoreWatch::begin(&*core.env.machine.disk);
        let session = Session::new(&core.env.cache, Reason::Scan, Admit::Keep).with_notes();
        let rows = RangeRows::new(session, self.handle(), *self.wanted(), pin, range);
        let mut scan = rows.limit(limit.unwrap_or(u64::MAX));
        let (mut rows, mut memory_rows, mut value_bytes) = (0, 0, 0);
        while let Some(row) = scan.next(direction)? {
            rows += 1;
            memory_rows += u64::from(row.is_in_memtable());
            let parts = row.parts()?;
            value_bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            each(row.key(), parts.first().map_or(&[], |part| &part[..]));
            if core.views.generation() != generation {
                let view = core.views.newest();
                generation = view.generation;
                known.learn(view.table(identity, version)?);
            }
        }
        let answer = Explained::Rows { rows, value_bytes };
        let outcome = ReadOutcome { version, answer, memtables, memory_rows, store: watch.end() };
        Ok(known.explain(scan.session(), |_| Verdict::Walked, outcome))
    }
}

impl Index {
    /// Reads the first `limit` rows with index keys in `range`, as [`Index::range_by`] does, but returns what the
    /// read did instead of the rows: the pages of the index, the pages of the rows, and the rounds. It reads all
    /// parts of the rows.
    ///
    /// # Errors
    ///
    /// Fails as a read of the rows of [`Index::range_by`] does.
    pub fn explain_range_by(
        &self,
        range: impl IntoKeyRange,
        limit: Option<u64>,
        direction: Direction,
    ) -> Result<ExplainedByIndex> {
        let table = self.table();
        let row_parts = table.identity().options.groups.len().max(1);
        let all = (0..row_parts).try_fold(PartList::nothing(row_parts), PartList::with).expect("each once");
        let pin = table.inner().pin();
        let mut keys = Vec::new();
        let each = |key: &[u8], value: &[u8]| {
            keys.extend(IndexEntry::of(key, value).map(|entry| entry.row_key().to_vec()));
        };
        let entries = (entry::bounds_of(&bounds::owned(&range)), limit, direction);
        let index: Reader<'_> = Reader::new(self.entry_table().inner(), Some(&pin), PartList::whole());
        let rows: Reader<'_, Parts> = Reader::new(table.inner(), Some(&pin), all);
        Ok(ExplainedByIndex { entries: index.explain_scan_with(entries, each)?, rows: rows.explain_rows(&keys)? })
    }
}

/// The numbers of the files whose bounds overlap the range from `low` to `high`, which a scan may visit.
fn numbers_between(files: &TableFiles, low: Bound<&[u8]>, high: Bound<&[u8]>) -> HashSet<u64> {
    let (level0, deeper) = files.levels.split_first().expect("a table has levels");
    let runs = level0.chunks(1).chain(deeper.iter().map(|level| level.as_slice()));
    runs.flat_map(|run: &[Arc<DbFile>]| &run[files_between(run, low, high)]).map(|file| file.number).collect()
}

/// The result of a read, without its pages.
struct ReadOutcome {
    version: Version,
    answer: Explained,
    memtables: u64,
    memory_rows: u64,
    store: Option<ExplainedStore>,
}

/// What is known about the files that a read may visit. It does not keep them alive.
struct Known {
    /// All known files, by id.
    files: HashMap<u64, KnownFile>,
    /// The files of the read's first view: level, number, and whether keys of the read are within the file's
    /// bounds.
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
    /// Begins with the files of `table`. `candidates` returns the numbers of the files whose bounds include keys of
    /// the read.
    fn new(table: TableView<'_>, candidates: impl FnOnce(&TableFiles) -> HashSet<u64>) -> Self {
        let mut known = Self { files: HashMap::new(), first: Vec::new() };
        let files = table.files;
        known.learn(table);
        let candidates = candidates(files);
        let all = files.files().map(|(level, file)| (level, file.number, candidates.contains(&file.number)));
        known.first.extend(all);
        known
    }

    /// Adds the files of `table` that are not known yet.
    fn learn(&mut self, table: TableView<'_>) {
        for (level, file) in table.files.files() {
            let (number, rows, bytes) = (file.number, file.sst.meta.rows(), file.bytes());
            let known = KnownFile { level: Some(level), number, rows, bytes };
            self.files.entry(file.sst.file.id()).or_insert(known);
        }
    }

    fn file(&self, notes: &FileNotes) -> KnownFile {
        self.files.get(&notes.id).copied().unwrap_or_else(|| {
            // The name of an SST has the form NNNNNNNN-E.sst.
            let name = notes.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let number = name.split('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
            KnownFile { level: None, number, rows: 0, bytes: 0 }
        })
    }

    /// Makes the explanation from the session's notes and the result of the read. `verdict` says what the read
    /// found in the n-th visited file. Only [`Verdict::SavedByFilter`] is decided here.
    fn explain(&self, session: &Session, verdict: impl Fn(usize) -> Verdict, read: ReadOutcome) -> Explanation {
        let notes = &*session.notes().expect("a read that is explained takes notes");
        let files = notes.files().iter().enumerate().map(|(i, file)| {
            let KnownFile { level, number, rows, bytes } = self.file(file);
            let verdict = match verdict(i) {
                // Keep `Row` and `Erased`: even if a file's filter does not have the key, a range erase in the file
                // can be the answer.
                Verdict::Nothing | Verdict::Walked if saved_by_filter(|kind| file.of(kind)) => Verdict::SavedByFilter,
                verdict => verdict,
            };
            ExplainedFile { level, number, rows, bytes, verdict, pages: pages_of(file) }
        });
        let files: Vec<ExplainedFile> = files.collect();
        let visited: HashSet<u64> = files.iter().map(|file| file.number).collect();
        let (levels, rounds) = (self.levels(&visited), session.rounds());
        let (visits, visits_left_out) = (self.visits(notes), notes.visits_left_out());
        let ReadOutcome { version, answer, memtables, memory_rows, store } = read;
        Explanation { version, answer, memtables, memory_rows, files, levels, rounds, store, visits, visits_left_out }
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

/// Whether the read used the filter of the file, but no data page of the file.
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

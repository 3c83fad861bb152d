//! Looks up many keys in a view, as of a version. The keys are looked up together: a round fetches the missing pages
//! of all keys in all files where they may be. So the number of rounds is the number of pages on the longest way
//! down. This module does not know who reads.
//!
//! * An answer is kept when a step is run again. If a newer source has answered a key, no older source is asked.
//! * An answer is written to its place among all answers. It is written at once if the page of the row has all of
//!   it. Otherwise it is written when the parts in other pages are loaded. It replaces the answer of an older file
//!   which had its pages in memory first.
//! * Keys are looked up in batches, so that their pins stay within a quarter of the cache; a batch of one key may
//!   take more.
//! * A caller that hands rows on one after the other says how many bytes of answers it holds at once. The search
//!   ends when it has that many bytes, and gives the answers for the first keys. It gives at least one answer, so a
//!   row that is larger than the limit is answered, too.

use super::content::Content;
use crate::base::error::Result;
use crate::manifest::db_file::DbFile;
use crate::view::TableView;
use crate::view::found::FoundRow;
use crate::view::part_list::PartList;
use crate::view::point::{Answer, ask_file, ask_memory};
use crate::view::value::{Parts, Value};
use pages::{PageCache, PageSource, Stop, retry, together};
use sst::{Row, RowPlace, SoughtKey, StoredValue, Ways};

/// The largest number of keys in a batch: their pages keep a disk busy, and their answers take some ten KiB.
const MAX_BATCH_KEYS: usize = 256;

/// How many look-ups wait for the memory together. They ask for the first lines of a page and for a record. All of
/// this has to stay in the first-level cache of a processor, which has 32 KiB.
const INTERLEAVED: usize = 16;

/// The `wanted` contents of the rows of `keys`, in the order of the keys. If the answers of the first keys take
/// about `most_answers`, it returns only those. It waits for pages.
pub fn get<V: Content, S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    table: TableView<'_>,
    keys: &[impl AsRef<[u8]>],
    (wanted, most_answers): (&PartList, AnswerBytes),
) -> Result<Vec<Option<V>>> {
    let mut read = MultiRead::new(table, keys, (wanted, most_answers), cache);
    Ok(retry(source, || read.get(source, cache))?)
}

/// How many bytes of answers a search gives at most; a single answer may have more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnswerBytes(pub u64);

impl AnswerBytes {
    /// Answers for all keys, whatever memory they take.
    pub const ALL: Self = Self(u64::MAX);
    /// What a reader holds while it hands rows on one after the other.
    pub const ROUND: Self = Self(2 << 20);
}

/// A search for many keys.
pub struct MultiRead<'v, 'k, K, V> {
    table: TableView<'v>,
    keys: &'k [K],
    wanted: &'k PartList,
    /// Memory for the pages of a batch.
    most_bytes: u64,
    /// Memory for answers.
    most_answers: AnswerBytes,
    /// The answers for the first keys: the answers that are done, and the answers of the batch.
    answers: Vec<Option<V>>,
    stage: Stage<'v>,
}

/// What is being done for the first keys whose answers are not done.
enum Stage<'v> {
    Begin,
    Find(KeyBatch<'v>),
    Load(PartLoads<'v>),
}

impl<'v, 'k, K: AsRef<[u8]>, V: Content> MultiRead<'v, 'k, K, V> {
    /// A search that has asked nothing yet.
    pub fn new(
        table: TableView<'v>,
        keys: &'k [K],
        (wanted, most_answers): (&'k PartList, AnswerBytes),
        cache: &PageCache,
    ) -> Self {
        let (most_bytes, answers) = (cache.budget_bytes() / 4, Vec::with_capacity(keys.len()));
        Self { table, keys, wanted, most_bytes, most_answers, answers, stage: Stage::Begin }
    }

    /// How many bytes of answers the search may still give. `None` if it has no limit.
    fn answers_left(&self) -> Option<u64> {
        let AnswerBytes(most) = (self.most_answers != AnswerBytes::ALL).then_some(self.most_answers)?;
        Some(most.saturating_sub(self.answers.iter().flatten().map(V::bytes).sum()))
    }

    /// Returns the wanted contents of all rows in key order. If the answers of the first rows use up the byte limit,
    /// it returns only those. It keeps its results: when it is run again after a fault, it goes on where it was.
    pub fn get<S: PageSource + ?Sized>(&mut self, source: &S, cache: &PageCache) -> Result<Vec<Option<V>>, Stop> {
        loop {
            let left = self.answers_left();
            match &mut self.stage {
                Stage::Begin => {
                    let is_full = !self.answers.is_empty() && left == Some(0);
                    if self.answers.len() == self.keys.len() || is_full {
                        return Ok(std::mem::take(&mut self.answers));
                    }
                    self.stage = Stage::Find(self.begin_batch(source, cache)?);
                }
                Stage::Find(batch) => {
                    let mut answers = Answers { cache, wanted: self.wanted, all: &mut self.answers };
                    batch.find(source, self.table, self.keys, &mut answers)?;
                    let mut loads = PartLoads::new();
                    // Faults may have changed the order of the rows.
                    batch.rows.sort_unstable_by_key(|(key, _)| *key);
                    for (key, row) in batch.rows.drain(..) {
                        loads.add(key, row, self.wanted);
                    }
                    source.release();
                    self.stage = if loads.rows.is_empty() { Stage::Begin } else { Stage::Load(loads) };
                }
                Stage::Load(loads) => {
                    loads.run(source, cache, (self.most_bytes, left.unwrap_or(u64::MAX)))?;
                    source.release();
                    if let Stage::Load(loads) = std::mem::replace(&mut self.stage, Stage::Begin) {
                        if let Some(first) = loads.first_not_loaded(self.wanted) {
                            // These are the last answers. The caller asks for the other keys when it has handed
                            // these answers on.
                            self.answers.truncate(first);
                            self.most_answers = AnswerBytes(0);
                        }
                        loads.answer(&mut self.answers, self.wanted);
                    }
                }
            }
        }
    }

    /// A batch of at least one key. Keys whose answers are in memory need no room, and are answered here. If the
    /// transaction has files, these are asked here, too, and then this is a composite step.
    fn begin_batch<S: PageSource + ?Sized>(&mut self, source: &S, cache: &PageCache) -> Result<KeyBatch<'v>, Stop> {
        let files = self.table.files;
        // All rows that the version shows are in the memtables already.
        let has_memory = self.table.own.is_some() || self.table.memtables().any(|memtable| !memtable.is_empty());
        // Keys that are far apart share neither their data page nor the node above this page.
        let way_bytes = u64::from(files.info.options.page_bytes) + u64::from(files.info.options.node_bytes);
        let group_ways = self.wanted.set().beside_main().count();
        let (first, mut ways, mut is_missing) = (self.answers.len(), 0, false);
        let keys = self.keys[first..].iter().take(MAX_BATCH_KEYS).enumerate();
        let mut batch = KeyBatch { rows: Vec::new(), asked: Vec::with_capacity(keys.len()) };
        let mut left = self.answers_left();
        for (i, key) in keys {
            if left == Some(0) && i > 0 {
                break;
            }
            let key = key.as_ref();
            let before = batch.asked.len();
            let mut answer = None;
            let own_files = self.table.own.map_or(0, |own| own.files_with_key(key).count());
            if own_files > 0 {
                ways += own_files;
                if i > 0 && ways as u64 * way_bytes > self.most_bytes {
                    break;
                }
            }
            let said = match has_memory.then(|| ask_memory(source, self.table, &SoughtKey::new(key))).transpose() {
                Err(Stop::Fault) => {
                    is_missing = true;
                    continue;
                }
                said => said?,
            };
            match said.unwrap_or(Answer::Silent) {
                Answer::Silent => {
                    let asked = |file| Asked { key: first + i, file, said: Said::Open };
                    files.files_with_key(key).for_each(|file| batch.asked.push(asked(file)));
                }
                Answer::Gone => {}
                Answer::Row(row) => {
                    answer = V::of_row(&row, cache, self.wanted);
                    if answer.is_none()
                        && let FoundRow::File(row, file) = row
                    {
                        batch.rows.push((first + i, (row, file)));
                    }
                }
            }
            if batch.asked.len() > before {
                ways += batch.asked.len() - before + group_ways;
                if i > 0 && ways as u64 * way_bytes > self.most_bytes {
                    batch.asked.truncate(before);
                    break;
                }
            }
            if let (Some(left), Some(answer)) = (&mut left, &answer) {
                *left = left.saturating_sub(answer.bytes());
            }
            self.answers.push(answer);
        }
        if is_missing {
            self.answers.truncate(first);
            return Err(Stop::Fault);
        }
        Ok(batch)
    }
}

/// Where answers are written.
struct Answers<'a, V> {
    cache: &'a PageCache,
    wanted: &'a PartList,
    all: &'a mut [Option<V>],
}

/// The keys that are looked up at once: the next keys, as many as have room.
struct KeyBatch<'v> {
    /// The rows whose page does not have all that is wanted, and the places of their keys.
    rows: Vec<(usize, FileRow<'v>)>,
    /// For each key that memory does not have: the files that may have it, newest first. They are sorted by key.
    asked: Vec<Asked<'v>>,
}

/// A row in a file.
type FileRow<'v> = (Row, &'v DbFile);

struct Asked<'v> {
    /// The place of the key among all keys.
    key: usize,
    file: &'v DbFile,
    said: Said,
}

/// What a file has said about a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// The file was not asked, or a page is missing.
    Open,
    /// The file does not decide.
    Silent,
    /// The file's answer stands among the answers, unless a newer file has put its answer there.
    Decided,
}

impl<'v> KeyBatch<'v> {
    /// Finds the rows of the keys of the batch. If the page of a row has all that is wanted, it writes the answer. A
    /// composite step: it is run until it does not fault.
    fn find<S: PageSource + ?Sized, V: Content>(
        &mut self,
        source: &S,
        table: TableView<'v>,
        keys: &[impl AsRef<[u8]>],
        answers: &mut Answers<'_, V>,
    ) -> Result<(), Stop> {
        let Self { rows, asked } = self;
        if asked.len() == 1 {
            // No other look-up could wait at the same time.
            return ask_files(source, table, asked, None, keys, rows, answers);
        }
        let has_values = !answers.wanted.set().any_beside_main();
        let mut ways = Ways::default();
        together(interleaved(asked), |asked| {
            go_down(source, asked, keys, &mut ways);
            let mut first = 0;
            together(asked.chunk_by_mut(|a, b| a.key == b.key), |files| {
                let i = first;
                first += files.len();
                if has_values && answers.take_value(table, files, &mut ways, i) {
                    return Ok(());
                }
                ask_files(source, table, files, Some((&ways, i)), keys, rows, answers)
            })
        })
    }
}

impl<V: Content> Answers<'_, V> {
    /// Whether way `i` has led to the value of the key in the newest of its `files`. Then this value is the answer.
    #[inline]
    fn take_value<'v>(
        &mut self,
        table: TableView<'v>,
        files: &mut [Asked<'v>],
        ways: &mut Ways<'v, '_>,
        i: usize,
    ) -> bool {
        if files.iter().any(|file| file.said != Said::Open) {
            return false;
        }
        let Asked { key, file, said } = &mut files[0];
        let Some((page, place)) = file.sst.take_value(ways, i, table.at) else { return false };
        *said = Said::Decided;
        self.all[*key] = Some(V::of_value_in(page, place, self.cache, self.wanted));
        true
    }
}

/// The look-ups that wait for the memory together: all files of a key, and as many keys as have room.
fn interleaved<'a, 'v>(mut asked: &'a mut [Asked<'v>]) -> impl Iterator<Item = &'a mut [Asked<'v>]> {
    std::iter::from_fn(move || {
        let mut end = 0;
        for files in asked.chunk_by(|a, b| a.key == b.key) {
            if end > 0 && end + files.len() > INTERLEAVED {
                break;
            }
            end += files.len();
        }
        if end == 0 {
            return None;
        }
        let (now, later) = std::mem::take(&mut asked).split_at_mut(end);
        asked = later;
        Some(now)
    })
}

/// Goes down to the rows that have not been found, with all keys together.
fn go_down<'v, 'k, S: PageSource + ?Sized>(
    source: &S,
    asked: &[Asked<'v>],
    keys: &'k [impl AsRef<[u8]>],
    ways: &mut Ways<'v, 'k>,
) {
    ways.clear();
    let mut decided = None;
    for Asked { key, file, said } in asked {
        match said {
            Said::Open if decided != Some(key) => file.sst.begin_way(ways, source, keys[*key].as_ref()),
            Said::Decided => {
                decided = Some(key);
                ways.add();
            }
            Said::Open | Said::Silent => ways.add(),
        }
    }
    ways.run(source);
}

/// Asks all files that have not answered about a key, newest first. It stops at the first file that decides. It also
/// stops at a file that is nearly sure to decide but of which a page is missing: pages of older files would be read
/// for nothing. A composite step.
fn ask_files<'v, S: PageSource + ?Sized, V: Content>(
    source: &S,
    table: TableView<'_>,
    files: &mut [Asked<'v>],
    went: Option<(&Ways<'_, '_>, usize)>,
    keys: &[impl AsRef<[u8]>],
    rows: &mut Vec<(usize, FileRow<'v>)>,
    answers: &mut Answers<'_, V>,
) -> Result<(), Stop> {
    let place = files[0].key;
    let (mut missing, key) = (false, SoughtKey::new(keys[place].as_ref()));
    for i in 0..files.len() {
        let Asked { file, said, .. } = files[i];
        match said {
            Said::Decided => break,
            Said::Silent => continue,
            Said::Open => {}
        }
        let reached = went.map(|(ways, first)| ways.reached(first + i));
        let answer = match ask_file(source, table, file, &key, reached) {
            Ok(answer) => answer,
            Err(Stop::Fault) => {
                missing = true;
                if file.sst.expects(source, &key) {
                    break;
                }
                continue;
            }
            Err(stop) => return Err(stop),
        };
        if matches!(answer, Answer::Silent) {
            files[i].said = Said::Silent;
            continue;
        }
        // An older file may have decided earlier, when a page of this file was missing.
        if files[i..].iter().any(|older| older.said == Said::Decided) {
            rows.retain(|(of, _)| *of != place);
        }
        files[i].said = Said::Decided;
        answers.all[place] = match answer {
            Answer::Row(row) => {
                let answer = V::of_row(&row, answers.cache, answers.wanted);
                if answer.is_none()
                    && let FoundRow::File(row, file) = row
                {
                    rows.push((place, (row, file)));
                }
                answer
            }
            Answer::Silent | Answer::Gone => None,
        };
        break;
    }
    if missing { Err(Stop::Fault) } else { Ok(()) }
}

/// A part of a row in a file.
struct SoughtPart<'v> {
    file: &'v DbFile,
    place: RowPlace,
    group: usize,
    state: PartState,
}

enum PartState {
    Sought,
    Stored(StoredValue),
    Loaded(Value),
}

impl SoughtPart<'_> {
    /// The number of bytes of the part that lie outside its page and have to be loaded.
    fn outside_bytes(&self) -> u64 {
        match &self.state {
            PartState::Stored(stored) if stored.inline().is_none() => stored.len(),
            _ => 0,
        }
    }
}

/// Loads the parts of rows whose own page does not have all of them. The parts in groups beside the main group are
/// found in one step. Then the parts that lie outside their pages are loaded: each step loads as many as have room.
struct PartLoads<'v> {
    /// The places of the answers of the rows.
    rows: Vec<usize>,
    parts: Vec<SoughtPart<'v>>,
    /// All parts are found.
    is_found: bool,
    /// The number of parts that are to be loaded, counted from the first part on.
    wanted: usize,
    /// The number of parts that are loaded, counted from the first part on.
    loaded: usize,
    /// The number of parts after the loaded ones that are being loaded.
    loading: usize,
}

impl<'v> PartLoads<'v> {
    fn new() -> Self {
        Self { rows: Vec::new(), parts: Vec::new(), is_found: false, wanted: 0, loaded: 0, loading: 0 }
    }

    /// Adds a row. Its answer belongs at `place`.
    fn add(&mut self, place: usize, (row, file): FileRow<'v>, wanted: &PartList) {
        self.rows.push(place);
        self.parts.extend((0..wanted.len()).map(|i| {
            let group = wanted.group(i);
            let state = if group == 0 { PartState::Stored(row.value.clone()) } else { PartState::Sought };
            SoughtPart { file, place: row.place, group, state }
        }));
    }

    /// Loads all parts. If they take more than about `most_answers`, it loads only the parts of the first rows: at
    /// least one row. It loads as many parts at once as fit in `most_bytes`. It consists of steps and is run until
    /// no step faults.
    fn run<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        cache: &PageCache,
        (most_bytes, most_answers): (u64, u64),
    ) -> Result<(), Stop> {
        if !self.is_found {
            let sought = self.parts.iter_mut().filter(|part| matches!(part.state, PartState::Sought));
            together(sought, |part| {
                part.state = PartState::Stored(part.file.sst.part(source, part.group, part.place)?);
                Ok(())
            })?;
            self.is_found = true;
            source.release();
            let (mut bytes, parts) = (0, self.parts.len() / self.rows.len().max(1));
            let rows = self.parts.chunks(parts.max(1)).take_while(|row| {
                let before = bytes;
                bytes += row.iter().map(SoughtPart::outside_bytes).sum::<u64>();
                before == 0 || bytes <= most_answers
            });
            self.wanted = rows.map(<[_]>::len).sum();
        }
        while self.loaded < self.wanted {
            let rest = &mut self.parts[self.loaded..self.wanted];
            if self.loading == 0 {
                let mut bytes = 0;
                let fits = |part: &&SoughtPart<'_>| {
                    let before = bytes;
                    bytes += part.outside_bytes();
                    before == 0 || bytes <= most_bytes
                };
                self.loading = rest.iter().take_while(fits).count();
            }
            together(&mut rest[..self.loading], |part| {
                if let PartState::Stored(stored) = &part.state {
                    part.state = PartState::Loaded(Value::from_file(cache, stored.load(source, &part.file.sst.file)?));
                }
                Ok(())
            })?;
            self.loaded += std::mem::take(&mut self.loading);
            source.release();
        }
        Ok(())
    }

    /// The place of the answer for the first row that was left out.
    fn first_not_loaded(&self, wanted: &PartList) -> Option<usize> {
        self.rows.get(self.loaded.checked_div(wanted.len())?).copied()
    }

    /// Writes the answers of the rows that are loaded to their places.
    fn answer<V: Content>(self, answers: &mut [Option<V>], wanted: &PartList) {
        let rows = self.loaded.checked_div(wanted.len()).unwrap_or(self.rows.len());
        let mut loaded = self.parts.into_iter().take(self.loaded).map(|part| match part.state {
            PartState::Loaded(value) => value,
            PartState::Sought | PartState::Stored(_) => unreachable!("these parts were loaded"),
        });
        for place in self.rows.into_iter().take(rows) {
            answers[place] = Some(V::of_parts(Parts::of(loaded.by_ref().take(wanted.len()))));
        }
    }
}

//! Looks up many keys in a view, as of one version. The keys are looked up together: each round fetches the missing
//! pages of all keys in all files that may contain them. So a batch of keys takes only as many rounds as the longest
//! path from a root to a value has pages. This module does not know who reads.
//!
//! * Answers survive a fault: when the step runs again, it goes on where it was. Once a newer source has answered a
//!   key, older sources are not asked about it.
//! * If the page of a row contains everything that is wanted, its answer is stored at once. Otherwise it is stored
//!   when the parts in other pages are loaded. The answer of a newer file replaces that of an older file whose pages
//!   happened to be in memory first.
//! * Keys are looked up in batches, so that the pins of a batch take at most a quarter of the cache. A batch of one
//!   key may take more.
//! * A caller that hands on rows one by one limits the bytes of answers that it holds at once. When the answers reach
//!   the limit, the search ends and returns the answers for the first keys. It returns at least one, however large it
//!   is.

use super::content::Content;
use crate::base::error::Result;
use crate::manifest::db_file::DbFile;
use crate::view::TableView;
use crate::view::fold::fold;
use crate::view::found::FoundRow;
use crate::view::part_list::PartList;
use crate::view::point::{Answer, ask_file, ask_file_reached, ask_memory};
use crate::view::value::{Parts, Value};
use pages::{PageCache, PageSource, Stop, retry, together};
use sst::{Row, RowPlace, SoughtKey, StoredValue, Ways};

/// The largest number of keys in a batch: enough to keep a disk busy, while the answers take only some ten KiB.
const MAX_BATCH_KEYS: usize = 256;

/// How many look-ups are interleaved so that their cache misses overlap. Each touches the first lines of a page and a
/// record, and all of them together must stay in a processor's first-level cache of 32 KiB.
const INTERLEAVED: usize = 16;

/// Returns the `wanted` contents of the rows of `keys`, in the order of the keys. If the answers reach
/// `most_answers`, it returns only those for the first keys. It blocks for pages.
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

/// The most bytes of answers that a search returns at once. A single answer may take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnswerBytes(pub u64);

impl AnswerBytes {
    /// No limit.
    pub const ALL: Self = Self(u64::MAX);
    /// The limit of a reader that hands on rows one by one: 2 MiB.
    pub const ROUND: Self = Self(2 << 20);
}

/// A search for many keys.
pub struct MultiRead<'v, 'k, K, V> {
    table: TableView<'v>,
    keys: &'k [K],
    wanted: &'k PartList,
    /// The most memory for the pages of a batch.
    most_bytes: u64,
    /// The most memory for answers.
    most_answers: AnswerBytes,
    /// The answers for the first keys: those of finished batches, followed by those of the current batch.
    answers: Vec<Option<V>>,
    stage: Stage<'v>,
}

/// What the search is doing with the current batch.
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

    /// Returns the wanted contents of all rows, in the order of the keys. If the answers reach the byte limit, it
    /// returns only the first of them. It is a composite step: when it runs again after a fault, it goes on where it
    /// was.
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
                    // Files answer in the order in which their pages arrive, so the rows may be out of order.
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
                            // These answers fill the limit. The caller asks for the other keys after it has handed
                            // these on.
                            self.answers.truncate(first);
                            self.most_answers = AnswerBytes(0);
                        }
                        loads.answer(&mut self.answers, self.wanted);
                    }
                }
            }
        }
    }

    /// Begins a batch of at least one key. Keys that memory answers are answered here and take no room in the batch.
    /// If the transaction has spilled writes to files, those files are asked here, too. A composite step.
    fn begin_batch<S: PageSource + ?Sized>(&mut self, source: &S, cache: &PageCache) -> Result<KeyBatch<'v>, Stop> {
        let files = self.table.files;
        // A row that this version shows cannot be added to a memtable any more, so empty memtables need not be asked.
        let has_memory = self.table.own.is_some() || self.table.memtables().any(|memtable| !memtable.is_empty());
        // Assumes that each key needs its own data page and its own node above that page, as keys far apart do.
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
            let said = match said.unwrap_or(Answer::Silent) {
                Answer::Merge => {
                    ways += files.files_with_key(key).count();
                    if i > 0 && ways as u64 * way_bytes > self.most_bytes {
                        break;
                    }
                    match fold(source, self.table, &SoughtKey::new(key)) {
                        Err(Stop::Fault) => {
                            is_missing = true;
                            continue;
                        }
                        folded => Answer::Row(FoundRow::Memory(folded?)),
                    }
                }
                said => said,
            };
            match said {
                Answer::Silent => {
                    let asked = |file| Asked { key: first + i, file, said: Said::Open };
                    files.files_with_key(key).for_each(|file| batch.asked.push(asked(file)));
                }
                Answer::Gone | Answer::Merge => {}
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

/// Where answers are stored.
struct Answers<'a, V> {
    cache: &'a PageCache,
    wanted: &'a PartList,
    all: &'a mut [Option<V>],
}

/// The keys that are looked up together: the next keys, as many as there is room for.
struct KeyBatch<'v> {
    /// Rows whose own page lacks some of the wanted parts, each with the index of its key.
    rows: Vec<(usize, FileRow<'v>)>,
    /// The files that may contain the keys that memory did not answer. Sorted by key, then newest first.
    asked: Vec<Asked<'v>>,
}

/// A row in a file.
type FileRow<'v> = (Row, &'v DbFile);

struct Asked<'v> {
    /// The index of the key among all keys.
    key: usize,
    file: &'v DbFile,
    said: Said,
}

/// What a file has said about a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// The file was not asked yet, or a page is missing.
    Open,
    /// The file has no visible version of the key, so an older file may have one.
    Silent,
    /// The file has decided. Its answer is stored, unless that of a newer file has replaced it.
    Decided,
}

impl<'v> KeyBatch<'v> {
    /// Finds the rows of all keys of the batch, and stores the answers of those whose page has all that is wanted. A
    /// composite step: run it again until it does not fault.
    fn find<S: PageSource + ?Sized, V: Content>(
        &mut self,
        source: &S,
        table: TableView<'v>,
        keys: &[impl AsRef<[u8]>],
        answers: &mut Answers<'_, V>,
    ) -> Result<(), Stop> {
        let Self { rows, asked } = self;
        if asked.len() == 1 {
            // With a single look-up, there is nothing to interleave.
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
                if has_values && answers.take_value(source, table, files, &mut ways, i) {
                    return Ok(());
                }
                ask_files(source, table, files, Some((&ways, i)), keys, rows, answers)
            })
        })
    }
}

impl<V: Content> Answers<'_, V> {
    /// If look-up `i` has led to the value of the key in the newest of its `files`, takes this value as the answer.
    #[inline]
    fn take_value<'v, S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        table: TableView<'v>,
        files: &mut [Asked<'v>],
        ways: &mut Ways<'v, '_>,
        i: usize,
    ) -> bool {
        if files.iter().any(|file| file.said != Said::Open) {
            return false;
        }
        let Asked { key, file, said } = &mut files[0];
        let Some((page, place)) = file.sst.take_value(source, ways, i, table.at) else { return false };
        *said = Said::Decided;
        self.all[*key] = Some(V::of_value_in(page, place, self.cache, self.wanted));
        true
    }
}

/// Splits the look-ups into groups that are interleaved: all files of a key, and as many keys as there is room for.
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

/// Descends the indexes for all open look-ups together, up to their rows.
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

/// Asks the files that have not answered about a key, newest first, up to the first one that decides. It also stops
/// at a file that very probably decides but misses a page, because reading pages of older files would probably be
/// wasted. A composite step.
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
        let answer = match went {
            Some((ways, first)) => ask_file_reached(source, table, file, &key, ways.reached(first + i)),
            None => ask_file(source, table, file, &key),
        };
        let answer = match answer {
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
        let answer = match answer {
            Answer::Silent => {
                files[i].said = Said::Silent;
                continue;
            }
            Answer::Merge => match fold(source, table, &key) {
                Ok(row) => Answer::Row(FoundRow::Memory(row)),
                Err(Stop::Fault) => {
                    missing = true;
                    break;
                }
                Err(stop) => return Err(stop),
            },
            answer => answer,
        };
        // An older file may have decided already, while a page of this file was missing.
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
            Answer::Silent | Answer::Gone | Answer::Merge => None,
        };
        break;
    }
    if missing { Err(Stop::Fault) } else { Ok(()) }
}

/// A wanted part of a row in a file.
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
    /// The bytes of the part that lie outside its page and have yet to be loaded.
    fn outside_bytes(&self) -> u64 {
        match &self.state {
            PartState::Stored(stored) if stored.inline().is_none() => stored.len(),
            _ => 0,
        }
    }
}

/// Loads the parts of rows whose own page does not contain all of them. One step finds the parts in groups beside the
/// main group. Further steps load the parts that lie outside their pages, each step as many as there is room for.
struct PartLoads<'v> {
    /// The indexes of the rows' answers.
    rows: Vec<usize>,
    parts: Vec<SoughtPart<'v>>,
    /// Whether all parts are found.
    is_found: bool,
    /// How many of the parts, from the first on, are to be loaded.
    wanted: usize,
    /// How many of the parts, from the first on, are loaded.
    loaded: usize,
    /// How many parts, after the loaded ones, are being loaded.
    loading: usize,
}

impl<'v> PartLoads<'v> {
    fn new() -> Self {
        Self { rows: Vec::new(), parts: Vec::new(), is_found: false, wanted: 0, loaded: 0, loading: 0 }
    }

    /// Adds a row whose answer has index `place`.
    fn add(&mut self, place: usize, (row, file): FileRow<'v>, wanted: &PartList) {
        self.rows.push(place);
        self.parts.extend((0..wanted.len()).map(|i| {
            let group = wanted.group(i);
            let state = if group == 0 { PartState::Stored(row.value.clone()) } else { PartState::Sought };
            SoughtPart { file, place: row.place, group, state }
        }));
    }

    /// Loads the parts, about `most_bytes` at a time. If all of them take more than `most_answers` bytes, it loads only
    /// those of the first rows, and of at least one row. It consists of steps; run it again until no step faults.
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

    /// The index of the answer of the first row that was left out.
    fn first_not_loaded(&self, wanted: &PartList) -> Option<usize> {
        self.rows.get(self.loaded.checked_div(wanted.len())?).copied()
    }

    /// Stores the answers of the loaded rows.
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

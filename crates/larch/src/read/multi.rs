//! Looks up many keys in a view, as of a version. They are looked up together: a round fetches the missing pages of all
//! keys in all files where they may be, so there are as many rounds as the longest way down has pages. It does not know
//! who reads.
//!
//! * An answer is kept when a step is run again, and a key that a newer source has answered asks no older source.
//! * An answer is written once, to its place among all answers: at once if the page of the row has all of it, otherwise when
//!   the parts in other pages are loaded.
//! * Keys are looked up in batches, so that their pins stay within a quarter of the cache; a batch of one key may take
//!   more.

use super::content::Content;
use super::found::FoundRow;
use super::part_list::PartList;
use super::point::{Answer, ask_file, ask_memory};
use super::view::TableView;
use super::{Parts, Value};
use crate::error::Result;
use crate::manifest::db_file::DbFile;
use pages::{PageCache, PageSource, Stop, retry, together};
use sst::{Approach, Row, RowPlace, SoughtKey, StoredValue};

/// The largest number of keys in a batch: their pages keep a disk busy, and their answers take some ten KiB.
const MAX_BATCH_KEYS: usize = 256;

/// How many look-ups wait for the memory together. What they ask for, the first lines of a page and a record, has to stay in
/// the first-level cache of a processor, which has 32 KiB.
const INTERLEAVED: usize = 16;

/// What is `wanted` of the rows of `keys`, in the order of the keys. It waits for pages.
pub fn get<V: Content, S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    table: TableView<'_>,
    keys: &[impl AsRef<[u8]>],
    wanted: &PartList,
) -> Result<Vec<Option<V>>> {
    let mut read = MultiRead::new(table, keys, wanted, cache);
    Ok(retry(source, || read.get(source, cache))?)
}

/// A search for many keys.
pub struct MultiRead<'v, 'k, K, V> {
    table: TableView<'v>,
    keys: &'k [K],
    wanted: &'k PartList,
    /// Memory for the pages of a batch.
    most_bytes: u64,
    /// The answers for the first keys: those that are done, and those whose parts are being loaded.
    answers: Vec<Option<V>>,
    stage: Stage<'v>,
}

/// What is being done for the first keys that are not done.
enum Stage<'v> {
    Begin,
    Find(KeyBatch<'v>),
    Load(PartLoads<'v>),
}

impl<'v, 'k, K: AsRef<[u8]>, V: Content> MultiRead<'v, 'k, K, V> {
    /// A search that has asked nothing yet.
    pub fn new(table: TableView<'v>, keys: &'k [K], wanted: &'k PartList, cache: &PageCache) -> Self {
        let most_bytes = cache.budget_bytes() / 4;
        Self { table, keys, wanted, most_bytes, answers: Vec::with_capacity(keys.len()), stage: Stage::Begin }
    }

    /// What is wanted of all rows, in the order of the keys. It keeps its results, so that it goes on where it was when it
    /// is run again after a fault.
    pub fn get<S: PageSource + ?Sized>(&mut self, source: &S, cache: &PageCache) -> Result<Vec<Option<V>>, Stop> {
        loop {
            match &mut self.stage {
                Stage::Begin => {
                    let keys = &self.keys[self.answers.len()..];
                    if keys.is_empty() {
                        return Ok(std::mem::take(&mut self.answers));
                    }
                    self.stage = Stage::Find(KeyBatch::begin(self.table, keys, self.wanted, self.most_bytes));
                }
                Stage::Find(batch) => {
                    batch.find(source, self.table, &self.keys[self.answers.len()..])?;
                    let mut loads = PartLoads::new();
                    for row in std::mem::take(&mut batch.rows) {
                        let answer = row.as_ref().and_then(|row| V::of_row(row, cache, self.wanted));
                        if answer.is_none()
                            && let Some(FoundRow::File(row, file)) = row
                        {
                            loads.add(self.answers.len(), (row, file), self.wanted);
                        }
                        self.answers.push(answer);
                    }
                    source.release();
                    self.stage = if loads.rows.is_empty() { Stage::Begin } else { Stage::Load(loads) };
                }
                Stage::Load(loads) => {
                    loads.run(source, cache, self.most_bytes)?;
                    source.release();
                    if let Stage::Load(loads) = std::mem::replace(&mut self.stage, Stage::Begin) {
                        loads.answer(&mut self.answers, self.wanted);
                    }
                }
            }
        }
    }
}

/// Keys that are looked up at once: the next ones, as many as there is room for.
struct KeyBatch<'v> {
    /// The rows of the keys that are known.
    rows: Vec<Option<FoundRow<&'v DbFile>>>,
    /// The files that may have the other keys: key by key, and the newest file first for each key.
    asked: Vec<Asked<'v>>,
}

struct Asked<'v> {
    key: usize,
    file: &'v DbFile,
    answer: Option<Answer<'v>>,
    /// Only within a step.
    approach: Approach,
}

impl<'v> KeyBatch<'v> {
    /// A batch of at least one key. Keys whose answers are in memory need no room.
    fn begin(table: TableView<'v>, keys: &[impl AsRef<[u8]>], wanted: &PartList, most_bytes: u64) -> Self {
        let most_keys = keys.len().min(MAX_BATCH_KEYS);
        let mut batch = Self { rows: Vec::with_capacity(most_keys), asked: Vec::with_capacity(most_keys) };
        let files = table.files;
        // Keys far apart share neither their data page nor the node above it.
        let way_bytes = u64::from(files.info.options.page_bytes) + u64::from(files.info.options.node_bytes);
        let group_ways = wanted.set().beside_main().count();
        let mut ways = 0;
        for (i, key) in keys.iter().take(MAX_BATCH_KEYS).enumerate() {
            let key = key.as_ref();
            let before = batch.asked.len();
            let row = match ask_memory(table, key) {
                Answer::Silent => {
                    files.files_with_key(key).for_each(|file| {
                        batch.asked.push(Asked { key: i, file, answer: None, approach: Approach::default() });
                    });
                    None
                }
                Answer::Gone => None,
                Answer::Row(row) => Some(row),
            };
            if batch.asked.len() > before {
                ways += batch.asked.len() - before + group_ways;
                if i > 0 && ways as u64 * way_bytes > most_bytes {
                    batch.asked.truncate(before);
                    break;
                }
            }
            batch.rows.push(row);
        }
        batch
    }

    /// Finds the rows of the keys of the batch, which are the first of `keys`. A composite step: it is run until it does not
    /// fault.
    fn find<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        table: TableView<'_>,
        keys: &[impl AsRef<[u8]>],
    ) -> Result<(), Stop> {
        together(interleaved(&mut self.asked), |asked| {
            approach(source, asked, keys);
            together(asked.chunk_by_mut(|a, b| a.key == b.key), |files| {
                ask_files(source, table, files, keys[files[0].key].as_ref())
            })
        })?;
        for Asked { key, answer, .. } in std::mem::take(&mut self.asked).into_iter().rev() {
            // The answers of newer files come later and replace those of older files. A missing answer was not needed.
            match answer {
                None | Some(Answer::Silent) => {}
                Some(Answer::Gone) => self.rows[key] = None,
                Some(Answer::Row(row)) => self.rows[key] = Some(row),
            }
        }
        Ok(())
    }
}

/// The look-ups that wait for the memory together: all files of a key, and as many keys as there is room for.
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

/// Goes towards the rows that have not been found, with all keys together.
fn approach<S: PageSource + ?Sized>(source: &S, asked: &mut [Asked<'_>], keys: &[impl AsRef<[u8]>]) {
    let mut each_open = |act: fn(&S, &mut Asked<'_>, &[u8])| {
        for files in asked.chunk_by_mut(|a, b| a.key == b.key) {
            let undecided = files.iter_mut().take_while(|asked| matches!(asked.answer, None | Some(Answer::Silent)));
            for asked in undecided.filter(|asked| asked.answer.is_none()) {
                act(source, asked, keys[asked.key].as_ref());
            }
        }
    };
    each_open(|source, asked, key| asked.approach = asked.file.sst.approach(source, key));
    each_open(|source, asked, key| asked.file.sst.approach_row(source, key, &mut asked.approach));
}

/// Asks all files that have not answered about a key, up to the first file that decides. A composite step.
fn ask_files<S: PageSource + ?Sized>(
    source: &S,
    table: TableView<'_>,
    files: &mut [Asked<'_>],
    key: &[u8],
) -> Result<(), Stop> {
    let (mut missing, key) = (false, SoughtKey::new(key));
    for Asked { file, answer, approach, .. } in files.iter_mut() {
        if answer.is_none() {
            match ask_file(source, table, file, &key, std::mem::take(approach)) {
                Ok(said) => *answer = Some(said),
                Err(Stop::Fault) => missing = true,
                Err(stop) => return Err(stop),
            }
        }
        if matches!(answer, Some(Answer::Gone | Answer::Row(_))) {
            break;
        }
    }
    // The step may end here and wait, and does not keep what it did not need.
    files.iter_mut().for_each(|asked| asked.approach = Approach::default());
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
    /// The bytes outside its page that have to be loaded.
    fn outside_bytes(&self) -> u64 {
        match &self.state {
            PartState::Stored(stored) if stored.inline().is_none() => stored.len(),
            _ => 0,
        }
    }
}

/// Loading the parts of rows of which the page of the row does not have all. The parts in groups beside the main one are found
/// in one step. Then parts that lie outside their pages are loaded, in one step for as many as there is room for.
struct PartLoads<'v> {
    /// The places of their answers.
    rows: Vec<usize>,
    parts: Vec<SoughtPart<'v>>,
    /// All parts are found.
    is_found: bool,
    /// Number of parts that are loaded, from the first on.
    loaded: usize,
    /// Number of parts after them that are being loaded.
    loading: usize,
}

impl<'v> PartLoads<'v> {
    fn new() -> Self {
        Self { rows: Vec::new(), parts: Vec::new(), is_found: false, loaded: 0, loading: 0 }
    }

    /// Adds a row, whose answer belongs at `place`.
    fn add(&mut self, place: usize, (row, file): (Row, &'v DbFile), wanted: &PartList) {
        self.rows.push(place);
        self.parts.extend((0..wanted.len()).map(|i| {
            let group = wanted.group(i);
            let state = if group == 0 { PartState::Stored(row.value.clone()) } else { PartState::Sought };
            SoughtPart { file, place: row.place, group, state }
        }));
    }

    /// Loads all parts. It consists of steps and is run until none faults.
    fn run<S: PageSource + ?Sized>(&mut self, source: &S, cache: &PageCache, most_bytes: u64) -> Result<(), Stop> {
        if !self.is_found {
            let sought = self.parts.iter_mut().filter(|part| matches!(part.state, PartState::Sought));
            together(sought, |part| {
                part.state = PartState::Stored(part.file.sst.part(source, part.group, part.place)?);
                Ok(())
            })?;
            self.is_found = true;
            source.release();
        }
        while self.loaded < self.parts.len() {
            let rest = &mut self.parts[self.loaded..];
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

    /// Writes the answers to their places.
    fn answer<V: Content>(self, answers: &mut [Option<V>], wanted: &PartList) {
        let mut loaded = self.parts.into_iter().map(|part| match part.state {
            PartState::Loaded(value) => value,
            PartState::Sought | PartState::Stored(_) => unreachable!("all parts were loaded"),
        });
        for place in self.rows {
            answers[place] = Some(V::of_parts(Parts::of(loaded.by_ref().take(wanted.len()))));
        }
    }
}

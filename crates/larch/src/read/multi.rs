//! What a view says about many keys at a version. They are looked up together: every round brings what all of them miss
//! in all files where they may be, so there are as many rounds as the longest way down has pages.
//!
//! * An answer is kept from run to run, and a key that a newer source has answered asks no older one again.
//! * Keys go in batches, so that what is pinned stays within a quarter of the cache; a batch of one key may take more.

use super::found::FoundRow;
use super::part_list::PartList;
use super::point::{Answer, ask_file, ask_memory, files_of};
use super::view::TableView;
use super::{Parts, Value};
use crate::error::Result;
use crate::manifest::db_file::DbFile;
use pages::{PageCache, PageSource, Stop, retry, together};
use sst::{RowPlace, StoredValue};

/// Most keys looked up at once: their pages are one long read for a disk, and their answers some ten KiB.
const MAX_BATCH_KEYS: usize = 256;

/// The parts wanted of the rows of `keys`, in the order of the keys; waits for them.
pub fn get_parts<S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    table: TableView<'_>,
    keys: &[impl AsRef<[u8]>],
    wanted: &PartList,
) -> Result<Vec<Option<Parts>>> {
    let mut read = MultiRead::new(table, keys, wanted, cache);
    Ok(retry(source, || read.get(source, cache))?)
}

/// Looking for many keys: how far it has come.
pub struct MultiRead<'v, 'k, K> {
    table: TableView<'v>,
    keys: &'k [K],
    wanted: &'k PartList,
    /// Memory for the pages of a batch.
    most_bytes: u64,
    /// Of the first keys, which are done.
    answers: Vec<Option<Parts>>,
    stage: Stage<'v>,
}

/// What is being done for the keys after those that are done.
enum Stage<'v> {
    Begin,
    Find(KeyBatch<'v>),
    Load(PartLoads<'v>),
}

impl<'v, 'k, K: AsRef<[u8]>> MultiRead<'v, 'k, K> {
    /// Nothing was asked yet.
    pub fn new(table: TableView<'v>, keys: &'k [K], wanted: &'k PartList, cache: &PageCache) -> Self {
        let most_bytes = cache.budget_bytes() / 4;
        Self { table, keys, wanted, most_bytes, answers: Vec::with_capacity(keys.len()), stage: Stage::Begin }
    }

    /// The parts wanted of all rows, in the order of the keys. Keeps what it came to, so that running it again after a fault
    /// goes on where it was.
    pub fn get<S: PageSource + ?Sized>(&mut self, source: &S, cache: &PageCache) -> Result<Vec<Option<Parts>>, Stop> {
        while self.answers.len() < self.keys.len() {
            let keys = &self.keys[self.answers.len()..];
            match &mut self.stage {
                Stage::Begin => {
                    self.stage = Stage::Find(KeyBatch::begin(self.table, keys, self.wanted, self.most_bytes))
                }
                Stage::Find(batch) => {
                    let rows = batch.find(source, self.table, keys)?;
                    source.release();
                    self.stage = Stage::Load(PartLoads::new(rows, self.wanted));
                }
                Stage::Load(load) => {
                    load.run(source, cache, self.most_bytes)?;
                    source.release();
                    if let Stage::Load(load) = std::mem::replace(&mut self.stage, Stage::Begin) {
                        self.answers.extend(load.into_answers(self.wanted));
                    }
                }
            }
        }
        Ok(std::mem::take(&mut self.answers))
    }
}

/// Keys that are looked up at once, as many of those to come as there is room for.
struct KeyBatch<'v> {
    /// Rows of the keys, as far as they are known.
    rows: Vec<Option<FoundRow<&'v DbFile>>>,
    /// The files that the others may be in: key by key, and for each the newest first.
    asked: Vec<Asked<'v>>,
}

struct Asked<'v> {
    key: usize,
    file: &'v DbFile,
    answer: Option<Answer<'v>>,
}

impl<'v> KeyBatch<'v> {
    /// At least one key, and as many as memory has the answers of.
    fn begin(table: TableView<'v>, keys: &[impl AsRef<[u8]>], wanted: &PartList, most_bytes: u64) -> Self {
        let mut batch = Self { rows: Vec::new(), asked: Vec::new() };
        let files = table.files;
        // A data page and the node above it, which keys far apart do not share.
        let way_bytes = u64::from(files.info.options.page_bytes) + u64::from(files.info.options.node_bytes);
        let group_ways = wanted.set().beside_main().count();
        let mut ways = 0;
        for (i, key) in keys.iter().take(MAX_BATCH_KEYS).enumerate() {
            let key = key.as_ref();
            let (row, files) = match ask_memory(table, key) {
                Answer::Silent => (None, Some(files_of(files, key))),
                Answer::Gone => (None, None),
                Answer::Row(row) => (Some(row), None),
            };
            let before = batch.asked.len();
            batch.asked.extend(files.into_iter().flatten().map(|file| Asked { key: i, file, answer: None }));
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

    /// The rows of the batch's keys, which are the first of `keys`. A composite step that is run until it does not fault.
    fn find<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        table: TableView<'_>,
        keys: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Option<FoundRow<&'v DbFile>>>, Stop> {
        together(self.asked.chunk_by_mut(|a, b| a.key == b.key), |files| {
            ask_files(source, table, files, keys[files[0].key].as_ref())
        })?;
        for Asked { key, answer, .. } in std::mem::take(&mut self.asked).into_iter().rev() {
            // Newer ones come later and overrule: an answer that is none was not needed.
            match answer {
                None | Some(Answer::Silent) => {}
                Some(Answer::Gone) => self.rows[key] = None,
                Some(Answer::Row(row)) => self.rows[key] = Some(row),
            }
        }
        Ok(std::mem::take(&mut self.rows))
    }
}

/// Asks all files about a key that have not answered, up to the first that decides. A composite step.
fn ask_files<S: PageSource + ?Sized>(
    source: &S,
    table: TableView<'_>,
    files: &mut [Asked<'_>],
    key: &[u8],
) -> Result<(), Stop> {
    let mut missing = false;
    for Asked { file, answer, .. } in files {
        if answer.is_none() {
            match ask_file(source, table, file, key) {
                Ok(said) => *answer = Some(said),
                Err(Stop::Fault) => missing = true,
                Err(stop) => return Err(stop),
            }
        }
        if matches!(answer, Some(Answer::Gone | Answer::Row(_))) {
            break;
        }
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
    /// Bytes that loading it will bring besides the page it lies in.
    fn outside_bytes(&self) -> u64 {
        match &self.state {
            PartState::Stored(stored) if stored.inline().is_none() => stored.len(),
            _ => 0,
        }
    }
}

/// The parts wanted of rows: all in groups beside the main one in one step, then all that lie outside their pages in one
/// step for as many as there is room for.
struct PartLoads<'v> {
    rows: Vec<Option<FoundRow<&'v DbFile>>>,
    parts: Vec<SoughtPart<'v>>,
    /// None of them is sought any more.
    is_found: bool,
    /// So many, the first, are loaded.
    loaded: usize,
    /// Of those after them, which are being loaded.
    loading: usize,
}

impl<'v> PartLoads<'v> {
    fn new(rows: Vec<Option<FoundRow<&'v DbFile>>>, wanted: &PartList) -> Self {
        let mut parts = Vec::new();
        for row in rows.iter().flatten() {
            let FoundRow::File(row, file) = row else { continue };
            parts.extend((0..wanted.len()).map(|i| {
                let group = wanted.group(i);
                let state = if group == 0 { PartState::Stored(row.value.clone()) } else { PartState::Sought };
                SoughtPart { file, place: row.place, group, state }
            }));
        }
        Self { rows, parts, is_found: false, loaded: 0, loading: 0 }
    }

    /// Loads them all. Steps, run until none faults.
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

    fn into_answers(self, wanted: &PartList) -> impl Iterator<Item = Option<Parts>> {
        let mut loaded = self.parts.into_iter().map(|part| match part.state {
            PartState::Loaded(value) => value,
            PartState::Sought | PartState::Stored(_) => unreachable!("all parts were loaded"),
        });
        let wanted = *wanted;
        self.rows.into_iter().map(move |row| {
            Some(match row? {
                FoundRow::Memory(row) => wanted.of_memory(&row),
                FoundRow::File(..) => Parts::of(loaded.by_ref().take(wanted.len())),
            })
        })
    }
}

//! An external merge sort: sorts rows that come in any order into one run of files that do not overlap and are not
//! part of a table yet. This module does not know what happens to the files.
//!
//! As long as rows come in key order, they are written straight to files. At the first row that is out of order, the
//! files so far become a sorted run, and from then on rows are collected in memory, up to three quarters of the write
//! buffer. When it is full, the rows are sorted and written as another run. At the end, all runs are merged. If a key
//! was added several times, its last value stays. If a run is dropped, its files are removed. Runs that will be
//! merged again are in the [place for temporary files](crate::core::scratch).

use crate::base::boundaries::Boundaries;
use crate::base::error::{Error, Result};
use crate::base::options::LevelOptions;
use crate::base::parts;
use crate::base::table::LEVELS;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::core::expiring::RowTimes;
use crate::core::handle::TableHandle;
use crate::core::scratch::ScratchPlace;
use crate::files::kept_files::KeptFiles;
use crate::files::merge::{MergePlan, merge_files};
use crate::files::output::{Outputs, Target};
use crate::gauge::Holding;
use crate::levels::pick;
use crate::manifest::db_file::FileOpener;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::directory::leftovers::Leftovers;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{DbFile, Level, NewFile};
use crate::write::limits;
use os::sync::Arc;
use sst::{KeyBounds, RowKind, Until, Version};
use std::cmp::Ordering as Compared;

/// At most this many runs are merged at once, because each run needs its share of the readahead.
const MAX_FAN_IN: usize = 128;

/// Sorts rows of a table into files.
///
/// If rows come in key order, the sorter keeps none in memory. Otherwise it buffers rows in up to three quarters of
/// the write buffer, writes each row at least twice, and needs free disk space for about two copies of all rows.
#[derive(Debug)]
pub struct RowSorter {
    table: TableHandle,
    runs: Vec<SortedRun>,
    /// The memory of the descriptions of the files in `runs`.
    runs_memory: Holding,
    state: SortPhase,
    user_bytes: u64,
    /// How the table gives times to its rows, if it does. Then each value that is sorted begins with its time.
    times: Option<RowTimes>,
    /// A buffer for a value that is joined from its parts, kept for its memory.
    joined: Vec<u8>,
    /// An error that has lost rows. No more rows can be added after it, and the whole sort fails.
    failed: Option<Error>,
}

/// The result of an import, or of building files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ImportReport {
    /// The number of rows in the files. Each key counts once.
    pub rows: u64,
    /// The bytes of all keys and values that were added.
    pub user_bytes: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// The number of files.
    pub files: u64,
    /// Whether the rows came in key order, so that nothing had to be sorted.
    pub sorted: bool,
    /// The number of sorted runs before the merge; 1 if the rows came in key order.
    pub runs: u64,
}

/// Files with sorted rows, which are not part of a table yet. All rows have version 0.
#[derive(Debug)]
pub struct SortedRun {
    /// The files, in key order.
    pub files: Vec<Arc<DbFile>>,
    /// Removes the files unless they are installed.
    pub fresh: FreshFiles,
    /// Whether the files are in the directory of the database, so that they can be installed.
    is_database: bool,
}

enum SortPhase {
    /// All rows so far came in key order.
    Streaming(Box<Stream>),
    /// A row was out of order.
    Sorting(SortBuffer),
}

impl std::fmt::Debug for SortPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Streaming(_) => "Streaming",
            Self::Sorting(_) => "Sorting",
        })
    }
}

/// A run that is being written. A row with the same key as the last row replaces that row. A last row that could not
/// be taken back out of its file is kept in memory until the next row comes.
#[derive(Default)]
struct Stream {
    outputs: Option<RunWriter>,
    /// The last row, if `waits`.
    key: Vec<u8>,
    value: Vec<u8>,
    waits: bool,
    /// Whether each value begins with its time.
    is_timed: bool,
}

impl RowSorter {
    /// A sorter without rows. `times` says how the table gives times to its rows, if it does.
    pub fn new(table: &TableHandle, times: Option<RowTimes>) -> Self {
        let runs_memory = table.core().env.held.imports.holding();
        let stream = Stream { is_timed: times.is_some(), ..Stream::default() };
        let (runs, joined, state) = (Vec::new(), Vec::new(), SortPhase::Streaming(Box::new(stream)));
        Self { table: table.clone(), runs, runs_memory, state, user_bytes: 0, times, joined, failed: None }
    }

    fn core(&self) -> &Arc<Core> {
        self.table.core()
    }

    /// Adds a row. If two rows have the same key, the later row replaces the earlier one.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`] if the table splits its values into column groups; [`Error::KeyTooLong`] or
    /// [`Error::ValueTooLong`] if the key or the value is too long; an error if a file cannot be written. After a
    /// disk error, nothing more can be added.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check_row(&self.core().env.options, &self.table.identity, key, value)?;
        self.user_bytes += (key.len() + value.len()) as u64;
        if self.times.is_some() { self.take_joined(key, &[value]) } else { self.take(key, value) }
    }

    /// Adds a row with a value in parts. There must be one part for each column group of the table.
    ///
    /// # Errors
    ///
    /// [`Error::PartCount`] if the number of parts differs from the number of groups; otherwise the errors of
    /// [`RowSorter::add`], except [`Error::Grouped`].
    pub fn add_parts(&mut self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        limits::check_parts(&self.core().env.options, &self.table.identity, key, parts)?;
        self.user_bytes += (key.len() + parts::bytes(parts)) as u64;
        self.take_joined(key, parts)
    }

    /// Takes a row with a value in parts, and gives it its time, if the table gives times.
    fn take_joined(&mut self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        let time = self.times.as_ref().map(|times| {
            let now = || self.core().env.row_clock.now();
            times.of_row(now, &self.table.identity, key, &|part| parts.get(part).map(AsRef::as_ref))
        });
        let time = time.transpose()?;
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        joined.extend(time.iter().flat_map(|time| time.map_or([0; Until::BYTES], Until::to_bytes)));
        parts::encode(parts, &mut joined);
        let outcome = self.take(key, &joined);
        self.joined = joined;
        outcome
    }

    /// Takes a row with its value in one piece. Once a call has failed, all later calls return the same error.
    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let taken = self.sort_in(key, value);
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
        }
        taken
    }

    fn sort_in(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let SortPhase::Streaming(stream) = &mut self.state {
            match stream.last_key().map_or(Compared::Less, |last| last.cmp(key)) {
                Compared::Greater => self.stop_streaming()?,
                Compared::Equal => return stream.replace(&self.table, key, value),
                Compared::Less => return stream.push(&self.table, key, value),
            }
        }
        let SortPhase::Sorting(buffer) = &mut self.state else { unreachable!("streaming returned above") };
        if buffer.is_full_with(key, value) {
            let scratch = self.core().env.scratch.get()?;
            let SortPhase::Sorting(buffer) = &mut self.state else { unreachable!("as above") };
            let run = buffer.write_run(&self.table, &scratch)?;
            self.add_runs(Some(run));
        }
        let SortPhase::Sorting(buffer) = &mut self.state else { unreachable!("as above") };
        buffer.add(key, value);
        Ok(())
    }

    fn add_runs(&mut self, runs: impl IntoIterator<Item = SortedRun>) {
        self.runs.extend(runs);
        let files = self.runs.iter().flat_map(|run| &run.files);
        self.runs_memory.set(files.map(|file| file.memory_bytes()).sum());
    }

    /// Ends the run that was written while rows came in key order, if this phase is not over.
    fn stop_streaming(&mut self) -> Result<()> {
        let SortPhase::Streaming(stream) = &mut self.state else { return Ok(()) };
        let stream = std::mem::take(stream);
        let budget = self.core().env.options.write_buffer_bytes;
        let memory = self.core().env.held.imports.holding();
        self.state = SortPhase::Sorting(SortBuffer::new(budget, memory, self.times.is_some()));
        let run = stream.finish()?;
        self.add_runs(run);
        Ok(())
    }

    /// Returns all rows as one run of durable files. `watch` is told how many bytes of a merge are done. Rows that
    /// came in key order need no merge.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; an error if a file cannot be written, or could not be written
    /// when an earlier row was added.
    pub fn finish(mut self, watch: &Watch<'_>) -> Result<(SortedRun, ImportReport)> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let sorted = matches!(self.state, SortPhase::Streaming(_));
        self.stop_streaming()?;
        let core = self.core().clone();
        if let SortPhase::Sorting(buffer) = &mut self.state
            && !buffer.is_empty()
        {
            let run = buffer.write_run(&self.table, &*core.env.scratch.get()?)?;
            self.add_runs(Some(run));
        }
        self.state = SortPhase::Streaming(Box::default());
        let runs = self.runs.len().max(1) as u64;
        let run = self.merge_runs(watch)?;
        watch.check()?;
        let report = ImportReport {
            rows: run.files.iter().map(|file| file.sst.meta.rows()).sum(),
            user_bytes: self.user_bytes,
            bytes: run.bytes(),
            files: run.files.len() as u64,
            sorted,
            runs,
        };
        Ok((run, report))
    }

    /// Merges runs until all of them are in the directory of the database and do not overlap, and returns their files
    /// as one run. Only neighbours are merged, so that runs stay ordered by age. The last merge takes up to
    /// [`MAX_FAN_IN`] runs, and earlier merges reduce their number only as far as necessary, so that few rows are
    /// written several times.
    fn merge_runs(&mut self, watch: &Watch<'_>) -> Result<SortedRun> {
        let mut runs = std::mem::take(&mut self.runs);
        let are_all_here = |runs: &[SortedRun]| runs.iter().all(|run| run.is_database);
        while !are_all_here(&runs) || (runs.len() > 1 && !in_order(&mut runs)) {
            let excess = (runs.len() + 1).saturating_sub(MAX_FAN_IN);
            let count = if excess > 1 { excess.min(MAX_FAN_IN) } else { runs.len() };
            // Merges the `count` neighbours with the fewest bytes.
            let bytes = |runs: &[SortedRun]| runs.iter().map(SortedRun::bytes).sum::<u64>();
            let first = (0..=runs.len() - count).min_by_key(|&first| bytes(&runs[first..first + count])).unwrap_or(0);
            let group: Vec<SortedRun> = runs.drain(first..first + count).collect();
            let merged = self.merge_group(&group, runs.is_empty(), watch)?;
            runs.insert(first, merged);
        }
        let mut all = SortedRun::none(&self.core().env.opener.leftovers);
        for mut run in runs {
            all.files.append(&mut run.files);
            all.fresh.append(run.take_fresh());
        }
        Ok(all)
    }

    /// Merges the runs of `group`, in the last merge into the files that the database will have.
    fn merge_group(&self, group: &[SortedRun], is_last: bool, watch: &Watch<'_>) -> Result<SortedRun> {
        let core = self.core();
        let scratch = (!is_last).then(|| core.env.scratch.get()).transpose()?;
        let (file_bytes, target) = match &scratch {
            Some(scratch) => (u64::MAX, Target::Place(scratch.place.clone())),
            None => (final_file_bytes(&core.env.options.levels), Target::Database),
        };
        // The newest run comes first.
        let sources: Vec<Level> = group.iter().rev().map(|run| Arc::new(run.files.clone())).collect();
        let (below, kept) = (Level::default(), KeptFiles::default());
        let plan = MergePlan {
            sources,
            bottom: true,
            file_bytes,
            below,
            kept,
            rewrite: None,
            is_run: false,
            is_judged: false,
            target,
            now: 0,
        };
        let merged =
            merge_files(core, &self.table.info(), plan, &Boundaries::only(RUN_VERSION), &mut |done, total| {
                watch.tell(done, total)
            })?;
        match merged {
            Some(merged) => {
                let new = merged.outputs.finish(0, 0)?;
                Ok(match &scratch {
                    Some(scratch) => SortedRun::in_scratch(scratch, new),
                    None => SortedRun::opened(&core.env.opener, new, true),
                })
            }
            None => {
                Err(watch.check().err().unwrap_or_else(|| Error::WritesStopped("the database is closing".to_owned())))
            }
        }
    }
}

/// The size of files that become part of the table: that of the deepest level, where most imported files go. A run
/// that will be merged again is a single file.
fn final_file_bytes(levels: &LevelOptions) -> u64 {
    pick::file_bytes(LEVELS - 1, 0, levels)
}

impl SortedRun {
    /// A run without files.
    pub fn none(leftovers: &Arc<Leftovers>) -> Self {
        Self { files: Vec::new(), fresh: FreshFiles::new(leftovers), is_database: true }
    }

    fn in_scratch(scratch: &ScratchPlace, new: NewFiles) -> Self {
        Self::opened(&scratch.opener, new, scratch.is_database)
    }

    fn opened(opener: &FileOpener, new: NewFiles, is_database: bool) -> Self {
        let open = |new: NewFile| opener.open(new.number, new.epoch, 0, new.meta);
        Self { files: new.files.into_iter().map(open).collect(), fresh: new.fresh, is_database }
    }

    /// Takes out `fresh`, so that the files are not removed when this run is dropped.
    pub fn take_fresh(&mut self) -> FreshFiles {
        let none = self.fresh.empty();
        std::mem::replace(&mut self.fresh, none)
    }

    /// The length of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes()).sum()
    }

    fn bounds(&self) -> Option<KeyBounds> {
        self.files.iter().map(|file| file.sst.bounds().clone()).reduce(|a, b| a.union(&b))
    }
}

impl Drop for SortedRun {
    fn drop(&mut self) {
        // The run has opened the files for itself. If they were installed, the database has opened them again.
        self.files.iter().for_each(|file| file.sst.file.kill());
    }
}

/// Sorts the runs by their keys and returns true, unless two of them overlap.
fn in_order(runs: &mut [SortedRun]) -> bool {
    let mut order: Vec<(KeyBounds, usize)> =
        runs.iter().enumerate().filter_map(|(i, run)| run.bounds().map(|bounds| (bounds, i))).collect();
    order.sort_by(|(a, _), (b, _)| a.low.cmp(&b.low));
    if order.windows(2).any(|pair| pair[0].0.overlaps(&pair[1].0)) || order.len() < runs.len() {
        return false;
    }
    runs.sort_by(|a, b| a.bounds().map(|bounds| bounds.low).cmp(&b.bounds().map(|bounds| bounds.low)));
    true
}

impl Stream {
    fn last_key(&self) -> Option<&[u8]> {
        if self.waits { Some(&self.key) } else { self.outputs.as_ref()?.outputs.last_key() }
    }

    /// Adds a row whose key is greater than the last key.
    fn push(&mut self, table: &TableHandle, key: &[u8], value: &[u8]) -> Result<()> {
        let bytes = || final_file_bytes(&table.core().env.options.levels);
        let outputs = self.outputs.get_or_insert_with(|| RunWriter::new(table, bytes(), self.is_timed));
        if self.waits {
            outputs.add(&self.key, &self.value)?;
        }
        self.waits = self.is_timed || !outputs.outputs.try_add(key, RUN_VERSION, value)?;
        if self.waits {
            self.wait(key, value);
        }
        Ok(())
    }

    /// Replaces the last row by a row with the same key.
    #[cold]
    fn replace(&mut self, table: &TableHandle, key: &[u8], value: &[u8]) -> Result<()> {
        if self.waits {
            self.wait(key, value);
            return Ok(());
        }
        self.outputs.as_mut().expect("the last row is in a file").outputs.take_back();
        self.push(table, key, value)
    }

    #[cold]
    fn wait(&mut self, key: &[u8], value: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value);
    }

    /// Finishes the run. Returns `None` if it has no rows.
    fn finish(mut self) -> Result<Option<SortedRun>> {
        if self.waits {
            self.outputs.as_mut().expect("rows that wait have files before them").add(&self.key, &self.value)?;
        }
        self.outputs.take().map(RunWriter::finish).transpose()
    }
}

/// The version of all rows in the files. The version offset that the files get when they are installed turns it into
/// the version of the import.
const RUN_VERSION: Version = Version(0);

/// Writes the files of a run.
struct RunWriter {
    outputs: Outputs,
    core: Arc<Core>,
    /// Whether each value begins with its time.
    is_timed: bool,
}

impl RunWriter {
    fn new(table: &TableHandle, file_bytes: u64, is_timed: bool) -> Self {
        let core = table.core().clone();
        // The run has no erases, and most of its files go to the deepest level, so they are written like files there.
        let outputs = Outputs::new(&core, &table.info(), file_bytes, true).with_writes_behind();
        Self { outputs, core, is_timed }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.is_timed {
            return self.outputs.add_joined(key, RUN_VERSION, (RowKind::Put, None), value);
        }
        let (time, value) = value.split_first_chunk().expect("the sorter has put a time before each value");
        let until = Until::of_bytes(*time);
        let kind = if until.is_some() { RowKind::PutUntil } else { RowKind::Put };
        self.outputs.add_joined(key, RUN_VERSION, (kind, until), value)
    }

    fn finish(self) -> Result<SortedRun> {
        Ok(SortedRun::opened(&self.core.env.opener, self.outputs.finish(0, 0)?, true))
    }

    /// As [`RunWriter::finish`], but for a run in `scratch`.
    fn finish_in(self, scratch: &ScratchPlace) -> Result<SortedRun> {
        Ok(SortedRun::in_scratch(scratch, self.outputs.finish(0, 0)?))
    }
}

/// The rows that are collected for the next run.
struct SortBuffer {
    budget_bytes: usize,
    /// The bytes of all keys and values, one after the other.
    arena: Vec<u8>,
    rows: Vec<SortRow>,
    /// The memory of `arena` and `rows`.
    memory: Holding,
    /// Whether each value begins with its time.
    is_timed: bool,
}

/// The position of a row in the arena.
#[derive(Clone, Copy)]
struct SortRow {
    /// The first eight bytes of the key as a number, which mostly decides a comparison without a look at the arena.
    head: u64,
    at: u32,
    value_at: u32,
    end: u32,
}

impl SortBuffer {
    /// The rows may take only three quarters of the write buffer, because a vector that grows has its old and its new
    /// memory for a moment.
    fn new(write_buffer_bytes: u64, memory: Holding, is_timed: bool) -> Self {
        let budget_bytes = (write_buffer_bytes as usize / 4 * 3).min(u32::MAX as usize);
        Self { budget_bytes, arena: Vec::new(), rows: Vec::new(), memory, is_timed }
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn is_full_with(&self, key: &[u8], value: &[u8]) -> bool {
        let bytes = self.arena.len() + key.len() + value.len() + (self.rows.len() + 1) * size_of::<SortRow>();
        bytes > self.budget_bytes && !self.rows.is_empty()
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut head = [0; 8];
        let len = key.len().min(8);
        head[..len].copy_from_slice(&key[..len]);
        let at = self.arena.len() as u32;
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        let (value_at, end) = (at + key.len() as u32, self.arena.len() as u32);
        self.rows.push(SortRow { head: u64::from_be_bytes(head), at, value_at, end });
        self.memory.set((self.arena.capacity() + self.rows.capacity() * size_of::<SortRow>()) as u64);
    }

    fn write_run(&mut self, table: &TableHandle, scratch: &ScratchPlace) -> Result<SortedRun> {
        let arena = &self.arena;
        let key = |row: &SortRow| &arena[row.at as usize..row.value_at as usize];
        // Among rows with the same key, the newest comes first: it starts last in the arena. Rows that start at the
        // same place are empty, except for the newest, which ends last.
        self.rows.sort_unstable_by(|a, b| {
            a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b))).then_with(|| (b.at, b.end).cmp(&(a.at, a.end)))
        });
        let RunWriter { outputs, core, is_timed } = RunWriter::new(table, u64::MAX, self.is_timed);
        let mut outputs = RunWriter { outputs: outputs.at(&scratch.place), core, is_timed };
        let mut last: Option<&[u8]> = None;
        for row in &self.rows {
            let key = key(row);
            if last != Some(key) {
                outputs.add(key, &arena[row.value_at as usize..row.end as usize])?;
                last = Some(key);
            }
        }
        let run = outputs.finish_in(scratch)?;
        self.rows.clear();
        self.arena.clear();
        Ok(run)
    }
}

//! Doing what was picked: reads around the cache, merges versions, writes files, installs the edits.

use super::erases::{Covers, EraseMerge};
use super::keep::{self, KeyFilter};
use super::pick::{self, Choice};
use crate::core::Core;
use crate::error::Result;
use crate::event::Event;
use crate::files::fresh::FreshFiles;
use crate::files::output::Outputs;
use crate::manifest::{DbFile, Edit, Level, TableFiles, TableInfo};
use crate::parts::MAX_GROUPS;
use crate::read::frontier::{Frontier, Sorted};
use crate::read::level::LevelCursor;
use crate::warm;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use pages::{Admit, Reason, Session, Stop, retry};
use sst::{Direction, Groups, LoadedValue, RangeErase, Readahead, Row, RowKind, SstCursor, StoredValue, Version};

/// Between two looks at whether to go on, in bytes of values; a version counts as some more, a range erase as a version.
const LOOK_BYTES: u64 = 1 << 20;
const ROW_WORK_BYTES: u64 = 128;

/// Runs `choice`; false if nothing was to be done or `go_on` (told bytes read and bytes to read) said no.
pub fn run(
    core: &Arc<Core>,
    table: &TableFiles,
    choice: &Choice,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<bool> {
    match choice {
        Choice::Nothing => Ok(false),
        Choice::Move { from, to, number, .. } => {
            let edit = Edit::MoveFile { table: table.info.id, level: *from as u8, number: *number, to: *to as u8 };
            core.install(&[edit], FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
            core.env.written.trivial_moves.fetch_add(1, Ordering::Relaxed);
            let table = || table.info.name.clone();
            core.env.report(|| Event::FileMoved { table: table(), from: *from, to: *to });
            Ok(true)
        }
        Choice::Merge { inputs, to, reason, .. } => {
            let begin = core.env.machine.clock.now();
            let name = || table.info.name.clone();
            let is_input = |level: usize, file: &DbFile| inputs.contains(&(level, file.number));
            core.env.report(|| Event::CompactionStarted {
                table: name(),
                files: inputs.len() as u64,
                bytes: table.files().filter(|(level, file)| is_input(*level, file)).map(|(_, file)| file.bytes()).sum(),
                to: *to,
                reason: *reason,
            });
            let Some(Merged { files, bytes }) = merge(core, table, inputs, *to, go_on)? else { return Ok(false) };
            let time = core.env.machine.clock.now() - begin;
            core.env.report(|| Event::CompactionFinished { table: name(), files, bytes, time });
            Ok(true)
        }
    }
}

/// What a merge wrote.
struct Merged {
    files: u64,
    bytes: u64,
}

fn merge(
    core: &Arc<Core>,
    table: &TableFiles,
    inputs: &[(usize, u64)],
    to: usize,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Merged>> {
    let is_input = |level: usize, file: &DbFile| inputs.contains(&(level, file.number));
    let mut sources: Vec<Level> = Vec::new();
    for (level, files) in table.levels.iter().enumerate() {
        let files: Vec<Arc<DbFile>> = files.iter().filter(|file| is_input(level, file)).cloned().collect();
        match level {
            0 => sources.extend(files.into_iter().map(|file| Arc::new(vec![file]))),
            _ if files.is_empty() => {}
            _ => sources.push(Arc::new(files)),
        }
    }
    let bounds = sources.iter().flat_map(|level| level.iter()).map(|file| file.sst.bounds().clone());
    let bounds = bounds.reduce(|a, b| a.union(&b)).expect("a merge has inputs");
    let bottom =
        table.levels[to + 1..].iter().flat_map(|level| level.iter()).all(|f| !f.sst.bounds().overlaps(&bounds));
    let (base, _) = pick::targets(table, &core.env.options.levels);
    let runs = sources.clone();
    let plan = Plan { sources, bottom, file_bytes: pick::file_bytes(to, base, &core.env.options.levels) };
    let boundaries = core.views.boundaries();
    let Some(outputs) = merge_files(core, &table.info, plan, &boundaries, go_on)? else { return Ok(None) };
    let new = outputs.finish(to as u8, 0)?;
    let (files, bytes) = (new.files.len() as u64, new.bytes());
    let removed =
        inputs.iter().map(|&(level, number)| Edit::RemoveFile { table: table.info.id, level: level as u8, number });
    warm::install::install(core, new, runs, |added| removed.chain(added).collect(), |_| {})?;
    core.env.written.compaction.fetch_add(bytes, Ordering::Relaxed);
    core.env.written.compactions.fetch_add(1, Ordering::Relaxed);
    Ok(Some(Merged { files, bytes }))
}

/// What to merge and how.
pub struct Plan {
    /// Sorted inputs, newest first.
    pub sources: Vec<Level>,
    /// Whether nothing lies deeper in their range.
    pub bottom: bool,
    /// Target size of an output.
    pub file_bytes: u64,
}

/// Merges all versions of all inputs into files that are not yet part of anything; `None` if told to stop.
pub fn merge_files(
    core: &Arc<Core>,
    table: &Arc<TableInfo>,
    plan: Plan,
    boundaries: &[Version],
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Outputs>> {
    // Half of the working memory reads, the other half builds. It is not the cache's, so a compaction neither waits for
    // readers nor takes their room. A quarter of the half is for pages that are needed, of all inputs at once.
    let memory = &core.env.held.compactions;
    let ahead_bytes = memory.budget_bytes() / 4 * 3;
    let session = Session::new(&core.env.cache, Reason::Compaction, Admit::Pass)
        .with_own_memory(memory)
        .with_ahead_bytes(ahead_bytes);
    let groups = table.options.groups.len().max(1);
    // A quarter is for nodes, and for what is read of the pages after the window.
    let readahead = Readahead::full(ahead_bytes / 4 * 3);
    let outputs = Outputs::new(core, table, plan.file_bytes, plan.bottom);
    let mut copy = Copy { session: &session, outputs, groups, beside: Vec::new(), parts: Vec::new() };
    let mut work = Work::new(core, &plan.sources, go_on);
    let memory = core.env.held.builders.holding();
    let mut erases = EraseMerge::new(&session, &plan.sources, boundaries, (readahead, work.total_bytes), memory);
    let mut covers = Covers::new(|| erases.next());
    // What hides nothing that lies deeper, from nobody, goes.
    let kept = |mut erase: RangeErase| {
        erase.versions.retain(|&version| !(plan.bottom && keep::is_in_oldest_stripe(boundaries, version)));
        erase
    };
    let mut merge = VersionMerge::new(plan.sources, readahead);
    let mut key = Vec::new();
    while let Some(newest) = merge.next_key(&session, &mut key)? {
        while let Some(erase) = covers.advance(Some(&key))? {
            copy.outputs.add_erase(kept(erase.clone()))?;
            work.items += 1;
            if !work.goes_on(ROW_WORK_BYTES) {
                return Ok(None);
            }
        }
        let mut filter = KeyFilter::default();
        let covers = covers.of(&key);
        for i in newest..merge.inputs.len() {
            if merge.inputs.key(i) != Some(&key) {
                continue;
            }
            work.items += 1;
            let cursor = merge.inputs.cursor_mut(i).0.versions();
            let mut row = cursor.newest();
            let mut is_first = true;
            while let Some(version) = row {
                if !work.goes_on(ROW_WORK_BYTES) {
                    return Ok(None);
                }
                if filter.keep(boundaries, version.version, covers) {
                    work.unlooked += copy.version(cursor, &key, &version)?;
                }
                let older =
                    retry(
                        &session,
                        || if is_first { cursor.first_older(&session) } else { cursor.next_older(&session) },
                    )?;
                row = if older { cursor.older() } else { None };
                is_first = false;
            }
        }
        merge.inputs.leave(&key, |_, _| Move::Next);
    }
    while let Some(erase) = covers.advance(None)? {
        copy.outputs.add_erase(kept(erase.clone()))?;
        work.items += 1;
        if !work.goes_on(ROW_WORK_BYTES) {
            return Ok(None);
        }
    }
    Ok(Some(copy.outputs))
}

/// How far a merge has come, and whether it is to go on.
struct Work<'w> {
    core: &'w Core,
    go_on: &'w mut dyn FnMut(u64, u64) -> bool,
    /// Rows and range erases that were taken from inputs, and all there are; range erases that are cut at each other's ends
    /// count more than once.
    items: u64,
    total_items: u64,
    total_bytes: u64,
    /// Since it was asked last whether to go on.
    unlooked: u64,
}

impl<'w> Work<'w> {
    fn new(core: &'w Core, sources: &[Level], go_on: &'w mut dyn FnMut(u64, u64) -> bool) -> Self {
        let files = || sources.iter().flat_map(|level| level.iter()).map(|file| &file.sst);
        let erases = files().filter_map(|sst| sst.meta.range_erases).map(|tree| tree.totals.rows);
        let total_items = files().map(|sst| sst.rows().count()).chain(erases).fold(0, u64::saturating_add);
        let total_bytes = files().map(|sst| sst.visible_bytes()).sum();
        Self { core, go_on, items: 0, total_items, total_bytes, unlooked: 0 }
    }

    /// Whether to go on after `bytes` more of work; asked from time to time.
    fn goes_on(&mut self, bytes: u64) -> bool {
        self.unlooked += bytes;
        if self.unlooked < LOOK_BYTES {
            return true;
        }
        self.unlooked = 0;
        let share = u128::from(self.total_bytes) * u128::from(self.items) / u128::from(self.total_items.max(1));
        let done = (share as u64).min(self.total_bytes);
        !self.core.background.is_closing() && (self.go_on)(done, self.total_bytes)
    }
}

/// Copies versions as they are.
struct Copy<'s> {
    session: &'s Session,
    outputs: Outputs,
    /// Parts of a row, the one beside its key among them.
    groups: usize,
    /// Of the row being copied: its parts that are not beside its key, and all of them in memory.
    beside: Vec<StoredValue>,
    parts: Vec<LoadedValue>,
}

impl Copy<'_> {
    /// Copies a version of the row where `cursor` is and says how long its value is.
    fn version(&mut self, cursor: &mut SstCursor, key: &[u8], row: &Row) -> Result<u64> {
        let Self { session, outputs, groups, .. } = self;
        if row.kind == RowKind::Erase {
            outputs.add(key, row.version, row.kind, &[])?;
            return Ok(0);
        }
        if *groups > 1 {
            return self.version_in_parts(cursor, key, row);
        }
        match row.value.inline() {
            Some(value) => outputs.add(key, row.version, row.kind, &[value])?,
            None => {
                cursor.load_ahead(*session, Groups::MAIN, row.place, None);
                let value = retry(*session, || row.value.load(*session, &cursor.sst().file))?;
                outputs.add(key, row.version, row.kind, &[value.as_bytes()])?;
            }
        }
        Ok(row.value.len())
    }

    fn version_in_parts(&mut self, cursor: &mut SstCursor, key: &[u8], row: &Row) -> Result<u64> {
        let session = self.session;
        retry(session, || self.load(cursor, row))?;
        let mut parts = [&[][..]; MAX_GROUPS];
        for (part, loaded) in parts.iter_mut().zip(&self.parts) {
            *part = loaded.as_bytes();
        }
        let parts = &parts[..self.groups];
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let outcome = self.outputs.add(key, row.version, row.kind, parts);
        // No page stays pinned for a row that is done.
        self.beside.clear();
        self.parts.clear();
        outcome.map(|()| bytes)
    }

    /// Brings all parts of `row` to memory. A step: pages of all groups are missed together, then values outside pages.
    fn load(&mut self, cursor: &mut SstCursor, row: &Row) -> Result<(), Stop> {
        self.beside.clear();
        self.parts.clear();
        let main = row.value.load(self.session, &cursor.sst().file);
        let groups = Groups::first(self.groups);
        cursor.parts(self.session, groups, row.place, &mut self.beside)?;
        cursor.load_ahead(self.session, groups, row.place, None);
        let mut missing = false;
        let beside = self.beside.iter().map(|part| part.load(self.session, &cursor.sst().file));
        for part in std::iter::once(main).chain(beside) {
            match part {
                Ok(part) => self.parts.push(part),
                Err(Stop::Fault) => missing = true,
                Err(stop) => return Err(stop),
            }
        }
        if missing { Err(Stop::Fault) } else { Ok(()) }
    }
}

/// All versions of all keys of all inputs, by keys in order.
struct VersionMerge {
    inputs: Frontier<Input, Move>,
}

struct Input(LevelCursor);

/// How an input comes to its next key.
enum Move {
    First,
    Next,
}

impl Sorted for Input {
    fn key(&self) -> Option<&[u8]> {
        Some(self.0.key())
    }
}

impl VersionMerge {
    fn new(sources: Vec<Level>, readahead: Readahead) -> Self {
        let cursors = sources.into_iter().map(|files| LevelCursor::new(files, Readahead::NONE));
        let cursors: Vec<LevelCursor> = cursors.collect();
        let all_bytes = cursors.iter().map(LevelCursor::bytes).sum();
        let inputs = cursors.into_iter().map(|cursor| {
            let readahead = readahead.share(cursor.bytes(), all_bytes);
            Input(cursor.with_readahead(readahead))
        });
        Self { inputs: Frontier::new(Direction::Forward, inputs, || Move::First) }
    }

    /// Replaces `key` with the least key that was not left and returns the newest input that has it.
    fn next_key(&mut self, session: &Session, key: &mut Vec<u8>) -> Result<Option<usize>> {
        let inputs = &mut self.inputs;
        retry(session, || {
            inputs.arrive(false, |Input(cursor), to| match to {
                Move::First => cursor.seek_first(session),
                Move::Next => cursor.next(session),
            })
        })?;
        let Some((newest, least)) = inputs.nearest() else { return Ok(None) };
        key.clear();
        key.extend_from_slice(least);
        Ok(Some(newest))
    }
}

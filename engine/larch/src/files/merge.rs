//! Merges all versions of sorted inputs into new files, without those that no reader can see. Pages are read around
//! the cache. This module does not know why the inputs are merged, and installs nothing.

use super::erases::{CoverStream, EraseMerge};
use super::keep::{self, KeyFilter};
use super::kept_files::{KeptFiles, is_after};
use crate::base::boundaries::Boundaries;
use crate::base::error::Result;
use crate::base::filter::JudgedRow;
use crate::base::operand::{Collected, MergeFunctions, Merged};
use crate::base::parts::MAX_GROUPS;
use crate::base::row_clock;
use crate::base::table::TableInfo;
use crate::core::Core;
use crate::core::filters::Judge;
use crate::files::output::{Outputs, Target};
use crate::manifest::{DbFile, Level};
use crate::view::frontier::{Frontier, Sorted};
use crate::view::level::LevelCursor;
use os::sync::Arc;
use pages::{Admit, Reason, Session, Stop, retry};
use sst::{
    CopiedPage, Direction, Groups, LoadedValue, RangeErase, Readahead, Row, RowKind, SstCursor, StoredValue, Version,
};

/// A merge asks whether to go on each time it has copied this many bytes of values.
const ASK_BYTES: u64 = 128 << 10;

/// Each version and each range erase counts as this many more bytes towards [`ASK_BYTES`].
const ROW_WORK_BYTES: u64 = 128;

/// The inputs of a merge, and how to merge them.
pub struct MergePlan {
    /// The sorted inputs, the newest first.
    pub sources: Vec<Level>,
    /// Whether no deeper level has keys in the range of the inputs.
    pub bottom: bool,
    /// The target size of an output, in bytes.
    pub file_bytes: u64,
    /// The next deeper level that has files. Outputs may end early where a file of this level begins.
    pub below: Level,
    /// The input files that may be taken over as they are, if no other input has keys within them.
    pub kept: KeptFiles,
    /// Which versions the merge takes and how it changes them; `None` means all versions, unchanged.
    pub rewrite: Option<Rewrite>,
    /// Whether the outputs contain rows of a transaction that has not committed.
    pub is_run: bool,
    /// Whether the filter of the table is asked about the rows.
    pub is_judged: bool,
    /// Where the outputs are written.
    pub target: Target,
    /// Rows that have expired at this time, in milliseconds since 1970, become erases. 0 if none does.
    pub now: u64,
}

/// Which versions a merge takes and how it changes them.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    /// Versions newer than this one are left out. It must be one of the merge's boundaries.
    pub through: Version,
    /// If set, all rows and range erases that are taken get this version. The merge must then have only one boundary.
    pub into: Option<Version>,
}

impl Rewrite {
    fn takes(this: Option<Self>, version: Version) -> bool {
        this.is_none_or(|rewrite| version <= rewrite.through)
    }

    fn version(this: Option<Self>, version: Version) -> Version {
        this.and_then(|rewrite| rewrite.into).unwrap_or(version)
    }
}

/// The result of a merge.
pub struct MergeResult {
    /// The new files.
    pub outputs: Outputs,
    /// The inputs that were kept as they are, without being rewritten.
    pub taken_over: Vec<Arc<DbFile>>,
}

/// Merges the inputs of `plan` into files that are not part of a table yet. `go_on` gets the number of bytes read
/// so far and the number to read in all. Returns `None` if `go_on` returned false or the database is closing.
///
/// # Errors
///
/// Fails if an input cannot be read, or if an output cannot be written.
pub fn merge_files(
    core: &Arc<Core>,
    table: &Arc<TableInfo>,
    plan: MergePlan,
    boundaries: &Boundaries,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<MergeResult>> {
    // Compactions read into memory of their own, half of the memory for work. So they neither wait for readers nor
    // take cache from them. A quarter of it is for the pages needed at the moment, one for each input. The rest is
    // for reading ahead, in equal shares for all compactions under way when this one begins. If no memory is left,
    // it does not read ahead.
    let memory = &core.env.held.compactions;
    let ahead_bytes = memory.budget_bytes() / 4 * 3 / core.writes.picks.under_way_count().max(1) as u64;
    let session = Session::new(&core.env.cache, Reason::Compaction, Admit::Pass)
        .with_own_memory(memory)
        .with_ahead_bytes(ahead_bytes);
    let groups = table.options.groups.len().max(1);
    // Three quarters of this share are for data pages. The rest is for index nodes further ahead, and for parts and
    // values outside data pages.
    let readahead = Readahead::full(ahead_bytes / 4 * 3);
    let outputs = Outputs::new(core, table, plan.file_bytes, plan.bottom)
        .with_borders(plan.below)
        .of_run(plan.is_run)
        .to(&plan.target);
    let (now, functions) = (plan.now, core.env.options.merge_functions.clone());
    let (others, parts) = (Vec::new(), Vec::new());
    let may_wait = core.env.machine.threads.are_real();
    let judge = core.filters.of(table.id).filter(|_| plan.is_judged).map(|filter| Judge::new(filter, may_wait));
    let mut copier = VersionCopier { session: &session, functions, outputs, groups, now, others, parts, judge };
    let mut progress = MergeProgress::new(core, &plan.sources, go_on);
    let memory = core.env.held.builders.holding();
    let mut erases = EraseMerge::new(&session, &plan.sources, boundaries, (readahead, progress.total_bytes), memory);
    let mut covers = CoverStream::new(|| erases.next());
    // At the bottom, no deeper level has rows for an erase to hide, so erases that all readers see are dropped.
    let rewrite = plan.rewrite;
    let kept_version = |version: Version| {
        let is_dropped = plan.bottom && keep::is_in_oldest_interval(boundaries, version);
        (!is_dropped && Rewrite::takes(rewrite, version)).then(|| Rewrite::version(rewrite, version))
    };
    let mut merge = VersionMerge::new(plan.sources, plan.kept, table.since, readahead);
    let mut key = Vec::new();
    let mut last_key = Vec::new();
    let mut taken_over = Vec::new();
    loop {
        let newest = match merge.next_place(&session, &mut key)? {
            Place::Key(newest) => newest,
            Place::File(input, file) => {
                // Range erases that end before `file` go to the output before it.
                if !copy_erases(&mut covers, Some(&key), &kept_version, &mut copier.outputs, &mut progress)? {
                    return Ok(None);
                }
                let is_apart = merge.is_apart(input, &file) && copier.outputs.end_before(&key)?;
                merge.pass_border(input, is_apart);
                if is_apart {
                    progress.items += file.sst.rows().count();
                    taken_over.push(file);
                }
                continue;
            }
            Place::End => break,
        };
        if !copy_erases(&mut covers, Some(&key), &kept_version, &mut copier.outputs, &mut progress)? {
            return Ok(None);
        }
        if rewrite.is_none()
            && copier.judge.is_none()
            && let Some(page) = merge.page_alone(newest, &mut last_key)
            && covers.is_clear_to(&last_key)
            && copier.outputs.add_page(&key, &last_key, &page)?
        {
            merge.pass_page(newest);
            progress.items += page.rows() as u64;
            if !progress.goes_on(page.bytes() as u64) {
                return Ok(None);
            }
            continue;
        }
        let mut filter = KeyFilter::default();
        let covers = covers.of(&key);
        for i in newest..merge.inputs.len() {
            if merge.inputs.key(i) != Some(&key) {
                continue;
            }
            progress.items += 1;
            let mut row = merge.inputs.cursor_mut(i).cursor.versions().newest();
            let mut is_first = true;
            while let Some(version) = row {
                if !progress.goes_on(ROW_WORK_BYTES) {
                    return Ok(None);
                }
                if Rewrite::takes(rewrite, version.version) && filter.keep(boundaries, version.version, covers) {
                    let into = Rewrite::version(rewrite, version.version);
                    if version.kind == RowKind::Merge {
                        let seen = Seen { version, covers, is_bottom: plan.bottom };
                        progress.unasked_bytes += copier.merged(&mut merge.inputs, i, (&key, into), &seen)?;
                    } else {
                        let (version, cursor) =
                            (Row { version: into, ..version }, &mut merge.inputs.cursor_mut(i).cursor);
                        let is_newest = is_first && i == newest;
                        progress.unasked_bytes += copier.version(cursor.versions(), &key, &version, is_newest)?;
                    }
                }
                let cursor = merge.inputs.cursor_mut(i).cursor.versions();
                let older =
                    retry(
                        &session,
                        || if is_first { cursor.first_older(&session) } else { cursor.next_older(&session) },
                    )?;
                row = if older { cursor.older() } else { None };
                is_first = false;
            }
        }
        merge.inputs.leave(&key, |_, _| ());
    }
    let is_done = copy_erases(&mut covers, None, &kept_version, &mut copier.outputs, &mut progress)?;
    Ok(is_done.then_some(MergeResult { outputs: copier.outputs, taken_over }))
}

/// Copies the range erases up to the first that ends after `key`, or all without a `key`, with the versions that
/// `kept_version` returns. Returns whether to go on.
fn copy_erases<N: FnMut() -> Result<Option<RangeErase>>>(
    covers: &mut CoverStream<N>,
    key: Option<&[u8]>,
    kept_version: &impl Fn(Version) -> Option<Version>,
    outputs: &mut Outputs,
    progress: &mut MergeProgress<'_>,
) -> Result<bool> {
    while let Some(erase) = covers.advance(key)? {
        let mut erase = erase.clone();
        erase.versions = erase.versions.iter().filter_map(|&version| kept_version(version)).collect();
        outputs.add_erase(erase)?;
        progress.items += 1;
        if !progress.goes_on(ROW_WORK_BYTES) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Counts how far a merge has come, and asks whether it should go on.
struct MergeProgress<'w> {
    core: &'w Core,
    go_on: &'w mut dyn FnMut(u64, u64) -> bool,
    /// The rows and fragments of range erases taken from the inputs so far. May exceed `total_items`, because a
    /// range erase counts once for each of its fragments.
    items: u64,
    /// How many rows and range erases all inputs have.
    total_items: u64,
    /// The bytes of all inputs that the table sees.
    total_bytes: u64,
    /// Bytes of work since the last call of `go_on`.
    unasked_bytes: u64,
}

impl<'w> MergeProgress<'w> {
    fn new(core: &'w Core, sources: &[Level], go_on: &'w mut dyn FnMut(u64, u64) -> bool) -> Self {
        let files = || sources.iter().flat_map(|level| level.iter()).map(|file| &file.sst);
        let erases = files().filter_map(|sst| sst.meta.range_erases.get()).map(|tree| tree.totals.rows);
        let total_items = files().map(|sst| sst.rows().count()).chain(erases).fold(0, u64::saturating_add);
        let total_bytes = files().map(|sst| sst.visible_bytes()).sum();
        Self { core, go_on, items: 0, total_items, total_bytes, unasked_bytes: 0 }
    }

    /// Adds `bytes` of work and returns whether to go on. Calls `go_on` once every [`ASK_BYTES`].
    fn goes_on(&mut self, bytes: u64) -> bool {
        self.unasked_bytes += bytes;
        if self.unasked_bytes < ASK_BYTES {
            return true;
        }
        self.unasked_bytes = 0;
        let share = u128::from(self.total_bytes) * u128::from(self.items) / u128::from(self.total_items.max(1));
        let done = (share as u64).min(self.total_bytes);
        !self.core.background.is_closing() && (self.go_on)(done, self.total_bytes)
    }
}

/// A merge that a compaction keeps.
struct Seen<'m> {
    version: Row,
    /// The versions of the range erases over the key, newest first.
    covers: &'m [Version],
    /// Whether no deeper level has the key.
    is_bottom: bool,
}

/// Copies versions without changing their values, and asks the filter of the table about them.
struct VersionCopier<'s> {
    session: &'s Session,
    /// The functions that merges may call.
    functions: MergeFunctions,
    outputs: Outputs,
    /// The number of parts of a row, with the one beside its key.
    groups: usize,
    /// Rows that have expired at this time become erases.
    now: u64,
    /// The parts of the current row that are not beside its key, as stored.
    others: Vec<StoredValue>,
    /// All parts of the current row, loaded into memory.
    parts: Vec<LoadedValue>,
    /// Asks the filter of the table, if it has one.
    judge: Option<Judge>,
}

impl VersionCopier<'_> {
    /// Writes a merge of input `i` with `key`, joined with what older inputs say of the key, with the version `into`. Of
    /// each of them, the newest row says all. Returns the length of what was read, in bytes.
    fn merged(
        &mut self,
        inputs: &mut Frontier<Input, ()>,
        i: usize,
        (key, into): (&[u8], Version),
        Seen { version: merge, covers, is_bottom }: &Seen<'_>,
    ) -> Result<u64> {
        let session = self.session;
        let mut collected = Collected::default();
        let mut bytes = 0;
        let mut load = |inputs: &mut Frontier<Input, ()>, input: usize, row: &Row| -> Result<Vec<u8>> {
            let file = inputs.cursor_mut(input).cursor.versions().sst().file.clone();
            bytes += row.value.len();
            Ok(retry(session, || row.value.load(session, &file))?.as_bytes().to_vec())
        };
        let cover = covers.iter().find(|cover| **cover <= merge.version);
        let mut goes_on = collected.add(load(inputs, i, merge)?);
        let mut has_end = *is_bottom || cover.is_some();
        for older in i + 1..inputs.len() {
            if !goes_on || inputs.key(older) != Some(key) {
                continue;
            }
            let row = inputs.cursor_mut(older).cursor.versions().newest().expect("it stands at the key");
            if row.kind == RowKind::Erase || cover.is_some_and(|cover| *cover > row.version) {
                has_end = true;
                break;
            }
            let content = load(inputs, older, &row)?;
            if row.kind == RowKind::Merge {
                goes_on = collected.add(content);
            } else {
                collected.end_with(content, row.until());
                goes_on = false;
            }
        }
        if goes_on && has_end {
            collected.end();
        }
        let (kind, content) = match collected.finish(key, &self.functions, self.now) {
            Merged::Value(value) => (RowKind::Put, value),
            Merged::Operand(operand) => (RowKind::Merge, operand),
        };
        self.outputs.add(key, into, (kind, None), &[&content])?;
        Ok(bytes)
    }

    /// Copies one version of the cursor's row, or an erase if the row has expired. Asks the filter if the version
    /// `is_newest` among the inputs. Returns the length of its value, in bytes.
    fn version(&mut self, cursor: &mut SstCursor, key: &[u8], row: &Row, is_newest: bool) -> Result<u64> {
        let Self { session, outputs, groups, now, judge, .. } = self;
        let until = row.until();
        if row.kind == RowKind::Erase || until.is_some_and(|until| until.millis() <= *now) {
            outputs.add(key, row.version, (RowKind::Erase, None), &[])?;
            return Ok(0);
        }
        if *groups > 1 {
            return self.version_in_parts(cursor, key, row, is_newest);
        }
        let loaded;
        let value = match row.value.inline() {
            Some(value) => value,
            None => {
                cursor.load_ahead(*session, Groups::MAIN, row.place, None);
                loaded = retry(*session, || row.value.load(*session, &cursor.sst().file))?;
                loaded.as_bytes()
            }
        };
        if let Some(judge) = judge.as_mut().filter(|_| is_newest) {
            judge.judge(&judged(key, row, &[value]));
        }
        outputs.add(key, row.version, (row.kind, until), &[value])?;
        Ok(row.value.len())
    }

    fn version_in_parts(&mut self, cursor: &mut SstCursor, key: &[u8], row: &Row, is_newest: bool) -> Result<u64> {
        let session = self.session;
        retry(session, || self.load(cursor, row))?;
        let mut parts = [&[][..]; MAX_GROUPS];
        for (part, loaded) in parts.iter_mut().zip(&self.parts) {
            *part = loaded.as_bytes();
        }
        let parts = &parts[..self.groups];
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        if let Some(judge) = self.judge.as_mut().filter(|_| is_newest) {
            judge.judge(&judged(key, row, parts));
        }
        let outcome = self.outputs.add(key, row.version, (row.kind, row.until()), parts);
        // Loaded parts pin their pages, so drop them before the next row.
        self.others.clear();
        self.parts.clear();
        outcome.map(|()| bytes)
    }

    /// Loads all parts of `row`. This is a step: if pages are missing, the caller fetches them and calls this
    /// again. The first fetch loads the missing pages of all groups, and the next one the missing values outside
    /// pages.
    fn load(&mut self, cursor: &mut SstCursor, row: &Row) -> Result<(), Stop> {
        self.others.clear();
        self.parts.clear();
        let main = row.value.load(self.session, &cursor.sst().file);
        let groups = Groups::first(self.groups);
        cursor.parts(self.session, groups, row.place, &mut self.others)?;
        cursor.load_ahead(self.session, groups, row.place, None);
        let mut is_missing = false;
        let others = self.others.iter().map(|part| part.load(self.session, &cursor.sst().file));
        for part in std::iter::once(main).chain(others) {
            match part {
                Ok(part) => self.parts.push(part),
                Err(Stop::Fault) => is_missing = true,
                Err(stop) => return Err(stop),
            }
        }
        if is_missing { Err(Stop::Fault) } else { Ok(()) }
    }
}

/// `row` as a filter sees it.
fn judged<'r>(key: &'r [u8], row: &Row, parts: &'r [&'r [u8]]) -> JudgedRow<'r> {
    JudgedRow { key, parts, version: row.version, until: row.until().map(row_clock::time_of) }
}

/// Goes through the inputs side by side, key by key. The caller takes all versions of a key before it asks for the
/// next.
struct VersionMerge {
    inputs: Frontier<Input, ()>,
    kept: KeptFiles,
    /// Files from this number on were written under the current options of the table.
    since: u64,
}

/// The current position of a merge.
enum Place {
    /// At a key. The number is that of the newest input with this key.
    Key(usize),
    /// Before a file that may be taken over. The number is that of the file's input, and the current key is the
    /// file's low bound.
    File(usize, Arc<DbFile>),
    /// All inputs have ended.
    End,
}

struct Input {
    cursor: LevelCursor,
    /// Whether the cursor has moved since the beginning.
    has_begun: bool,
    /// The next file of the input, while the merge has yet to decide whether to take it over. Until then, it is not
    /// read.
    border: Option<Arc<DbFile>>,
    /// Whether the next move enters a file that the merge has decided not to take over.
    enters: bool,
}

impl Input {
    /// A step: moves to the next key, or stops before a file that may be taken over.
    #[inline]
    fn go(&mut self, session: &Session, kept: &KeptFiles) -> Result<bool, Stop> {
        if !kept.is_empty() && !self.enters {
            self.border = self.cursor.file_ahead().filter(|file| kept.may_keep(file)).cloned();
            if self.border.is_some() {
                return Ok(true);
            }
        }
        let there = if self.has_begun { self.cursor.next(session)? } else { self.cursor.seek_first(session)? };
        self.has_begun = true;
        self.enters = false;
        Ok(there)
    }
}

impl Sorted for Input {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        match &self.border {
            Some(file) => Some(&file.sst.bounds().low),
            None => Some(self.cursor.key()),
        }
    }
}

impl VersionMerge {
    fn new(sources: Vec<Level>, kept: KeptFiles, since: u64, readahead: Readahead) -> Self {
        let cursors = sources.into_iter().map(|files| LevelCursor::new(files, Readahead::NONE));
        let cursors: Vec<LevelCursor> = cursors.collect();
        let all_bytes = cursors.iter().map(LevelCursor::bytes).sum();
        let inputs = cursors.into_iter().map(|mut cursor| {
            cursor.set_readahead(readahead.share(cursor.bytes(), all_bytes));
            Input { cursor, has_begun: false, border: None, enters: false }
        });
        Self { inputs: Frontier::new(Direction::Forward, inputs, || ()), kept, since }
    }

    /// Sets `key` to the least key that no input has passed, and returns what is there.
    fn next_place(&mut self, session: &Session, key: &mut Vec<u8>) -> Result<Place> {
        let Self { inputs, kept, .. } = self;
        retry(session, || inputs.arrive(false, |input, ()| input.go(session, kept)))?;
        let Some((newest, least)) = inputs.nearest() else { return Ok(Place::End) };
        key.clear();
        key.extend_from_slice(least);
        if !kept.is_empty() {
            for i in newest..inputs.len() {
                let border = inputs.cursor(i).border.as_ref().filter(|_| inputs.key(i) == Some(least));
                if let Some(file) = border {
                    return Ok(Place::File(i, file.clone()));
                }
            }
        }
        Ok(Place::Key(newest))
    }

    /// The page at which input `i` stands, if it can be copied as a whole: the input stands at its first row, no
    /// other input has a key up to its last, and the output can store it unchanged. Sets `last` to the page's last
    /// key.
    fn page_alone(&mut self, i: usize, last: &mut Vec<u8>) -> Option<CopiedPage> {
        let cursor = self.inputs.cursor_mut(i).cursor.versions();
        if !cursor.is_at_page_start() || !cursor.read_last_of_page(last) {
            return None;
        }
        let mut others = (0..self.inputs.len()).filter(|&other| other != i).filter_map(|other| self.inputs.key(other));
        if !others.all(|key| key > last.as_slice()) || self.inputs.cursor(i).cursor.file().number < self.since {
            return None;
        }
        self.inputs.cursor_mut(i).cursor.versions().copied_page()
    }

    /// Moves input `i` to the end of its current page.
    fn pass_page(&mut self, i: usize) {
        self.inputs.cursor_mut(i).cursor.versions().go_to_page_end();
        self.inputs.send(i, ());
    }

    /// Whether the other inputs have no keys within `file`, before which input `i` stands: their next keys lie
    /// after it.
    fn is_apart(&self, i: usize, file: &DbFile) -> bool {
        let others = (0..self.inputs.len()).filter(|&other| other != i);
        others.filter_map(|other| self.inputs.key(other)).all(|key| is_after(key, file))
    }

    /// Moves input `i`, which stands before a file, past the file if it `is_taken_over`, or else into it.
    fn pass_border(&mut self, i: usize, is_taken_over: bool) {
        let input = self.inputs.cursor_mut(i);
        input.border = None;
        if is_taken_over {
            input.cursor.skip_file_ahead();
        } else {
            input.enters = true;
        }
        self.inputs.send(i, ());
    }
}

//! Merges all versions of sorted inputs into new files: reads around the cache and leaves out the versions that no
//! reader can see. It does not know why the inputs are merged, and installs nothing.

use super::erases::{CoverStream, EraseMerge};
use super::keep::{self, KeyFilter};
use super::kept_files::{KeptFiles, is_after};
use crate::base::error::Result;
use crate::base::parts::MAX_GROUPS;
use crate::base::table::TableInfo;
use crate::core::Core;
use crate::files::output::{Outputs, Target};
use crate::manifest::{DbFile, Level};
use crate::view::frontier::{Frontier, Sorted};
use crate::view::level::LevelCursor;
use os::sync::Arc;
use pages::{Admit, Reason, Session, Stop, retry};
use sst::{
    CopiedPage, Direction, Groups, LoadedValue, RangeErase, Readahead, Row, RowKind, SstCursor, StoredValue, Version,
};

/// After this many bytes of values a merge asks again whether to go on.
const ASK_BYTES: u64 = 1 << 20;

/// What each version and each range erase adds to the bytes of [`ASK_BYTES`], in addition to its value.
const ROW_WORK_BYTES: u64 = 128;

/// What is merged, and into what.
pub struct MergePlan {
    /// Sorted inputs, newest first.
    pub sources: Vec<Level>,
    /// Whether no deeper level has keys in their range.
    pub bottom: bool,
    /// Target size of an output, in bytes.
    pub file_bytes: u64,
    /// The next deeper level that has files. Outputs end where its files begin.
    pub below: Level,
    /// Files of the inputs that stay as they are if no other input has keys between theirs.
    pub kept: KeptFiles,
    /// Which versions are taken, and what they become. `None` takes all versions as they are.
    pub rewrite: Option<Rewrite>,
    /// Whether the outputs have rows of a transaction that has not committed.
    pub is_run: bool,
    /// Where the outputs are written.
    pub target: Target,
}

/// How a merge takes versions, see [`MergePlan::rewrite`].
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    /// Newer versions are left out. It is one of the boundaries.
    pub through: Version,
    /// All versions become this one. The merge has only one boundary then.
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

/// What a merge made of its inputs.
pub struct MergeResult {
    /// New files.
    pub outputs: Outputs,
    /// Inputs that belong beside the new files as they are.
    pub taken_over: Vec<Arc<DbFile>>,
}

/// Merges all versions of all inputs into files that are not part of a table yet. `None` if `go_on`, which receives the
/// bytes that were read and the bytes to read in all, returned false, or if the database is closing.
///
/// # Errors
///
/// An input that cannot be read, or an output that cannot be written.
pub fn merge_files(
    core: &Arc<Core>,
    table: &Arc<TableInfo>,
    plan: MergePlan,
    boundaries: &[Version],
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<MergeResult>> {
    // Compactions read into half of the working memory; files are built in the other half. This memory is not part
    // of the cache, so a compaction neither waits for readers nor takes their room. A quarter of this half is for
    // the pages that are needed now, one page of each input. Compactions under way share the rest when they begin.
    // If the others have taken the memory, a compaction does not read ahead.
    let memory = &core.env.held.compactions;
    let ahead_bytes = memory.budget_bytes() / 4 * 3 / core.writes.picks.under_way_count().max(1) as u64;
    let session = Session::new(&core.env.cache, Reason::Compaction, Admit::Pass)
        .with_own_memory(memory)
        .with_ahead_bytes(ahead_bytes);
    let groups = table.options.groups.len().max(1);
    // A quarter of the rest is for what is read besides the data pages of the window: index nodes further ahead, and
    // parts and values of rows.
    let readahead = Readahead::full(ahead_bytes / 4 * 3);
    let outputs = Outputs::new(core, table, plan.file_bytes, plan.bottom)
        .with_borders(plan.below)
        .of_run(plan.is_run)
        .to(&plan.target);
    let mut copier = VersionCopier { session: &session, outputs, groups, others: Vec::new(), parts: Vec::new() };
    let mut progress = MergeProgress::new(core, &plan.sources, go_on);
    let memory = core.env.held.builders.holding();
    let mut erases = EraseMerge::new(&session, &plan.sources, boundaries, (readahead, progress.total_bytes), memory);
    let mut covers = CoverStream::new(|| erases.next());
    // At the bottom nothing lies deeper, so an erase that all readers see has nothing left to hide and is dropped.
    let rewrite = plan.rewrite;
    let kept_version = |version: Version| {
        let is_dropped = plan.bottom && keep::is_in_oldest_stripe(boundaries, version);
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
                // Erases that end before the file belong to the output that ends before the file.
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
            let cursor = merge.inputs.cursor_mut(i).cursor.versions();
            let mut row = cursor.newest();
            let mut is_first = true;
            while let Some(version) = row {
                if !progress.goes_on(ROW_WORK_BYTES) {
                    return Ok(None);
                }
                if Rewrite::takes(rewrite, version.version) && filter.keep(boundaries, version.version, covers) {
                    let version = Row { version: Rewrite::version(rewrite, version.version), ..version };
                    progress.unasked_bytes += copier.version(cursor, &key, &version)?;
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
        merge.inputs.leave(&key, |_, _| ());
    }
    let is_done = copy_erases(&mut covers, None, &kept_version, &mut copier.outputs, &mut progress)?;
    Ok(is_done.then_some(MergeResult { outputs: copier.outputs, taken_over }))
}

/// Copies the range erases with the versions that are kept, up to the range erase over `key`. Without a key it
/// copies all that are left. Returns whether to go on.
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

/// How far a merge is, and whether it goes on.
struct MergeProgress<'w> {
    core: &'w Core,
    go_on: &'w mut dyn FnMut(u64, u64) -> bool,
    /// Rows and fragments of range erases that were taken from the inputs. A range erase that is cut counts once for
    /// each fragment, so that there may be more than `total_items`.
    items: u64,
    /// Rows and range erases of all inputs.
    total_items: u64,
    /// Bytes of all inputs that the table sees.
    total_bytes: u64,
    /// Bytes of work since `go_on` was asked last.
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

    /// Adds `bytes` of work and returns whether to go on; asks `go_on` once in [`ASK_BYTES`].
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

/// Copies versions unchanged.
struct VersionCopier<'s> {
    session: &'s Session,
    outputs: Outputs,
    /// How many parts a row has, including the part beside its key.
    groups: usize,
    /// The parts of the row being copied that are not beside its key, as they are stored.
    others: Vec<StoredValue>,
    /// All parts of the row being copied, in memory.
    parts: Vec<LoadedValue>,
}

impl VersionCopier<'_> {
    /// Copies a version of the row at the cursor and returns the length of its value in bytes.
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
        // These parts pin pages that the next row does not need.
        self.others.clear();
        self.parts.clear();
        outcome.map(|()| bytes)
    }

    /// Loads all parts of `row`. It is a step: its first fetch brings the missing pages of all groups together, and
    /// the next fetch brings the missing values outside pages.
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

/// The inputs side by side, key after key. The caller takes all versions of a key before it asks for the next one.
struct VersionMerge {
    inputs: Frontier<Input, ()>,
    kept: KeptFiles,
    /// Files with this number, and later ones, were written under the present options of the table.
    since: u64,
}

/// Where a merge is.
enum Place {
    /// At a key, and this is the newest input that has it.
    Key(usize),
    /// Before this file of this input. The file may be taken over. The key is its low bound.
    File(usize, Arc<DbFile>),
    /// No input has a key any more.
    End,
}

struct Input {
    cursor: LevelCursor,
    /// Whether the cursor has moved.
    has_begun: bool,
    /// The input stands before this file while it is undecided whether the merge takes the file over. Until then the
    /// file is not read.
    border: Option<Arc<DbFile>>,
    /// Whether the next move enters a file that may be taken over.
    enters: bool,
}

impl Input {
    /// Goes to the next key, or before a file that may be taken over. A step.
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

    /// Replaces `key` with the least key that no input has passed yet, and says what is at this key.
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

    /// The page of input `i`, if the input stands at the first row of the page, no other input has a key up to the
    /// last key of the page, and the output can take the page as it is. Replaces `last` with the last key of the
    /// page.
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

    /// Moves input `i` behind the page in which it stands.
    fn pass_page(&mut self, i: usize) {
        self.inputs.cursor_mut(i).cursor.versions().go_to_page_end();
        self.inputs.send(i, ());
    }

    /// Input `i` stands before `file`. Whether the next keys of all other inputs lie after the bounds of `file`.
    fn is_apart(&self, i: usize, file: &DbFile) -> bool {
        let others = (0..self.inputs.len()).filter(|&other| other != i);
        others.filter_map(|other| self.inputs.key(other)).all(|key| is_after(key, file))
    }

    /// Leaves the border at which input `i` stands: past the file if it `is_taken_over`, else into the file.
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

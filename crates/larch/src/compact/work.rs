//! A merge of files that is to be done: how its outputs are made, and the edits that put them in the place of its inputs. It does not
//! know why it was picked, nor which process merges.

use super::kept_files::KeptFiles;
use super::merge::{MergePlan, MergeResult, merge_files};
use super::pick;
use crate::core::Core;
use crate::error::Result;
use crate::event::{CompactionReason, Event};
use crate::files::output::NewFiles;
use crate::manifest::{DbFile, Edit, Level, TableFiles, TableInfo};
use crate::options::LevelOptions;
use crate::warm;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sst::{KeyBounds, Version};
use std::collections::HashSet;
use std::time::Duration;

/// A merge of files of one table.
#[derive(Debug)]
pub struct MergeWork {
    /// The table.
    pub table: Arc<TableInfo>,
    /// Level and number of each input.
    pub inputs: Vec<(usize, u64)>,
    /// The level of the outputs.
    pub to: usize,
    /// Why it is done.
    pub reason: CompactionReason,
    /// The inputs, newest first. Files of one source do not overlap.
    pub sources: Vec<Level>,
    /// Whether no deeper level has keys in their range.
    pub bottom: bool,
    /// Target size of an output, in bytes.
    pub file_bytes: u64,
}

impl MergeWork {
    /// The merge of these inputs, of which there is at least one.
    pub fn of(
        table: &TableFiles,
        (inputs, to, reason): (&[(usize, u64)], usize, CompactionReason),
        options: &LevelOptions,
    ) -> Self {
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
        let (base, _) = pick::targets(table, options);
        let file_bytes = pick::file_bytes(to, base, options);
        let inputs = inputs.to_vec();
        let mut work = Self { table: table.info.clone(), inputs, to, reason, sources, bottom: true, file_bytes };
        let bounds = work.bounds().expect("a merge has inputs");
        work.bottom = table.levels[to + 1..].iter().flat_map(|l| l.iter()).all(|f| !f.sst.bounds().overlaps(&bounds));
        work
    }

    /// All files that are merged.
    pub fn files(&self) -> impl Iterator<Item = &Arc<DbFile>> {
        self.sources.iter().flat_map(|level| level.iter())
    }

    /// The bounds of all files that are merged; `None` if there are none.
    pub fn bounds(&self) -> Option<KeyBounds> {
        self.files().map(|file| file.sst.bounds().clone()).reduce(|a, b| a.union(&b))
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes()).sum()
    }

    /// The inputs that may stay as they are.
    pub fn kept(&self) -> KeptFiles {
        if takes_over(self.reason) {
            KeptFiles::among(&self.table, &self.sources, self.file_bytes, self.bottom)
        } else {
            KeptFiles::default()
        }
    }

    /// Merges into files that are not part of the table yet. Outputs end where files of `below` begin, the next deeper level.
    ///
    /// # Errors
    ///
    /// As [`merge_files`], which also says what `None` means.
    pub fn merge(
        &self,
        core: &Arc<Core>,
        below: Level,
        boundaries: &[Version],
        go_on: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Option<MergeResult>> {
        let (sources, bottom, file_bytes) = (self.sources.clone(), self.bottom, self.file_bytes);
        let plan = MergePlan { sources, bottom, file_bytes, below, kept: self.kept(), rewrite: None, is_run: false };
        merge_files(core, &self.table, plan, boundaries, go_on)
    }

    /// Says that it begins.
    pub fn report_begin(&self, core: &Core) {
        core.env.report(|| Event::CompactionStarted {
            table: self.table.name.clone(),
            files: self.inputs.len() as u64,
            bytes: self.bytes(),
            to: self.to,
            reason: self.reason,
        });
    }

    /// Has `new` files take the place of the inputs, but for those with the numbers `taken_over`, which belong beside the new ones.
    /// The merge began at the time `begin`.
    ///
    /// # Errors
    ///
    /// As [`Core::install`].
    pub fn install(self, core: &Core, new: NewFiles, taken_over: &HashSet<u64>, begin: Duration) -> Result<()> {
        let (files, bytes) = (new.files.len() as u64, new.bytes());
        let mut moves = 0;
        let mut edits = Vec::with_capacity(self.inputs.len() + new.files.len());
        for &(level, number) in &self.inputs {
            let (table, from) = (self.table.id, level as u8);
            if !taken_over.contains(&number) {
                edits.push(Edit::RemoveFile { table, level: from, number });
            } else if level != self.to {
                moves += 1;
                edits.push(Edit::MoveFile { table, level: from, number, to: self.to as u8 });
            }
        }
        let edits = |added| edits.into_iter().chain::<Vec<Edit>>(added).collect();
        warm::install::install(core, new, rewritten(self.sources, taken_over), edits, |_| {})?;
        core.env.written.trivial_moves.fetch_add(moves, Ordering::Relaxed);
        core.env.written.compactions.fetch_add(1, Ordering::Relaxed);
        let (table, time) = (|| self.table.name.clone(), core.env.machine.clock.now() - begin);
        core.env.report(|| Event::CompactionFinished { table: table(), files, bytes, time });
        Ok(())
    }
}

/// Whether a compaction for this reason leaves files as they are where it can. The others are there to rewrite what they take.
pub fn takes_over(reason: CompactionReason) -> bool {
    matches!(reason, CompactionReason::Level0 | CompactionReason::LevelSize)
}

/// The files of `runs` that were not taken over.
fn rewritten(runs: Vec<Level>, taken_over: &HashSet<u64>) -> Vec<Level> {
    if taken_over.is_empty() {
        return runs;
    }
    let rest = |run: Level| run.iter().filter(|file| !taken_over.contains(&file.number)).cloned().collect();
    runs.into_iter().map(|run| Arc::new(rest(run))).filter(|run: &Level| !run.is_empty()).collect()
}

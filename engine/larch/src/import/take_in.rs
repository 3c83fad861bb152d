//! Installs sorted runs of files in a table, all in one commit. This module does not know who wrote the files.
//!
//! The rows of the files have version 0. When the runs are installed, each gets a version of its own, and later runs
//! get greater versions. So if several runs have the same key, reads see the row of the last of these runs
//! (`docs/decisions/0006-imported-files-get-their-version-from-the-manifest.md`).

use super::sort::SortedRun;
use crate::base::error::{Error, Result};
use crate::base::table::{LEVELS, TableInfo};
use crate::core::Core;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::{DbFile, Edit, FileSet, Level, NewFile};
use crate::write::change::TableChange;
use crate::write::define::check_unindexed;
use os::sync::Arc;
use sst::{KeyBounds, Version};

/// Installs the files of `runs` in the table, durably and visible all at once. Returns the first version at which
/// reads see all of them; `None` if the runs have no files. `work` names the work in errors. `fits` checks that the
/// rows fit the table as it is at the install, because it may have been altered since they were written.
///
/// # Errors
///
/// [`Error::TableDropped`] if the table was dropped; [`Error::HasIndexes`] if it has indexes; otherwise the errors of
/// `fits`, [`TableChange::begin_with_levels`] and [`Core::install`].
pub fn take_in(
    core: &Arc<Core>,
    table: &TableInfo,
    runs: Vec<SortedRun>,
    work: &'static str,
    fits: impl FnOnce(&TableInfo) -> Result<()>,
) -> Result<Option<Version>> {
    let outcome = install(core, table, runs, work, fits);
    // This thread held the levels lock, so the compaction job may have found nothing to do. It is woken again.
    core.background.wake_compact();
    outcome
}

fn install(
    core: &Arc<Core>,
    table: &TableInfo,
    mut runs: Vec<SortedRun>,
    work: &'static str,
    fits: impl FnOnce(&TableInfo) -> Result<()>,
) -> Result<Option<Version>> {
    runs.retain(|run| !run.files.is_empty());
    if runs.is_empty() {
        core.views.newest().files_of(table)?;
        return Ok(None);
    }
    // Rows in memory are older than those of the new files, so they are flushed to an older file first.
    let check = |_| check_unindexed(&core.views.newest().files, table, work);
    let mut change = TableChange::begin_with_levels(core, &[table], &[table], check)?;
    let view = core.views.newest();
    let mut taken = TakenKeys::of(&view.files_of(table)?.levels);
    let mut fresh = FreshFiles::new(&core.env.opener.leftovers);
    let (mut edits, mut version) = (Vec::new(), change.version());
    for run in &mut runs {
        // The files of a run do not overlap, so the level of a file does not depend on the others.
        let levels: Vec<u8> = run.files.iter().map(|file| taken.deepest_free(file.sst.bounds())).collect();
        for (file, &level) in run.files.iter().zip(&levels) {
            edits.push(add(table, file, level, version));
            taken.add(file.sst.bounds(), level);
        }
        taken.order();
        fresh.append(run.take_fresh());
        version = Version(version.0 + 1);
    }
    drop(view);
    let still_fits = |files: &FileSet| {
        let now = files.tables.get(&table.id).ok_or_else(|| Error::TableDropped(table.name.clone()))?;
        fits(&now.info)
    };
    let last = change.commit_versions(runs.len() as u64, edits, fresh, still_fits)?;
    if table.options.in_memory {
        core.warm_kept_tables();
    }
    Ok(Some(last))
}

fn add(table: &TableInfo, file: &DbFile, level: u8, version: Version) -> Edit {
    let (number, epoch, meta) = (file.number, file.epoch, file.sst.meta.clone());
    Edit::AddFile(NewFile { table: table.id, level, number, epoch, version_offset: version.0, meta })
}

/// The key bounds of the files in each level, including the files that are being installed.
struct TakenKeys {
    /// For each level, the bounds of its files, sorted by low bound. Each high bound is replaced by the greatest of
    /// the files so far, so that one element tells whether any file up to it overlaps. `None` is greater than all
    /// others.
    levels: [Vec<KeyBounds>; LEVELS],
}

impl TakenKeys {
    fn of(levels: &[Level; LEVELS]) -> Self {
        let mut taken = Self { levels: Default::default() };
        for (level, files) in (0..).zip(levels) {
            files.iter().for_each(|file| taken.add(file.sst.bounds(), level));
        }
        taken.order();
        taken
    }

    /// Adds the bounds of a file. They count from the next call of [`TakenKeys::order`] on.
    fn add(&mut self, bounds: &KeyBounds, level: u8) {
        self.levels[usize::from(level)].push(bounds.clone());
    }

    fn order(&mut self) {
        for files in &mut self.levels {
            files.sort_by(|a, b| a.low.cmp(&b.low));
            let mut greatest = Some(Vec::new());
            for KeyBounds { high, .. } in files {
                if greatest.is_none() || high.as_ref().is_some_and(|high| greatest.as_ref() > Some(high)) {
                    high.clone_from(&greatest);
                }
                greatest.clone_from(high);
            }
        }
    }

    fn overlaps(&self, level: usize, bounds: &KeyBounds) -> bool {
        let files = &self.levels[level];
        let begun = files.partition_point(|file| bounds.high.as_ref().is_none_or(|high| file.low <= *high));
        files[..begun].last().is_some_and(|last| last.high.as_ref().is_none_or(|high| *high >= bounds.low))
    }

    /// The deepest level such that no file of it, or of a level above it, overlaps `bounds`; 0 if a file of level 0
    /// overlaps them.
    fn deepest_free(&self, bounds: &KeyBounds) -> u8 {
        let free = (0..LEVELS).take_while(|&level| !self.overlaps(level, bounds)).count();
        free.saturating_sub(1) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    #[test]
    fn the_deepest_free_level_is_the_one_that_a_look_at_every_file_finds() {
        for seed in 0..200 {
            println!("seed {seed}");
            let mut random = StdRng::seed_from_u64(seed);
            let mut bounds = || {
                let (a, b) = (random.random_range(0..40u8), random.random_range(0..4));
                let high = if random.random_bool(0.05) { None } else { Some(vec![a + b]) };
                (KeyBounds { low: vec![a], high }, random.random_range(0..LEVELS as u8))
            };
            let files: Vec<_> = (0..seed % 13).map(|_| bounds()).collect();
            let mut taken = TakenKeys { levels: Default::default() };
            for (bounds, level) in &files {
                taken.add(bounds, *level);
                taken.order();
            }
            for _ in 0..50 {
                let (sought, _) = bounds();
                let overlaps = |level: u8| files.iter().any(|(file, at)| *at == level && file.overlaps(&sought));
                let free = (0..LEVELS as u8).take_while(|&level| !overlaps(level)).count();
                assert_eq!(taken.deepest_free(&sought), free.saturating_sub(1) as u8, "{sought:?} in {files:?}");
            }
        }
    }
}

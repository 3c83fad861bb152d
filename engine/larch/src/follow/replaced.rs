//! Loads pages of new files before a follower shows the files, so that reads that found their rows in memory still
//! do. For files that replace others, loads the index pages, and the counterparts of pages that were hot in the
//! replaced files. For rows that the writer has flushed, loads the pages with these rows. This module does not know
//! how the follower learns of new files.
//!
//! The writer loads pages for its own reads, into its own memory. The follower does the same for its reads.

use crate::core::Core;
use crate::manifest::{DbFile, FileSet, Level, TableFiles};
use crate::warm::heat::{self, Rest};
use crate::warm::install::{is_read, load_flushed};
use os::sync::Arc;
use std::collections::HashSet;

/// Loads pages of the files that are in `next` but not in `shown`. Returns what has to be loaded once `next` is
/// shown.
pub fn load(core: &Core, shown: &FileSet, next: &FileSet) -> Vec<Rest> {
    let mut rest = Vec::new();
    for new in next.tables.values() {
        let Some(old) = shown.tables.get(&new.info.id).filter(|old| is_changed(old, new)) else { continue };
        if core.background.is_closing() {
            break;
        }
        let (before, now) = (numbers(old), numbers(new));
        let is_new = |file: &&Arc<DbFile>| !before.contains(&file.number);
        let flushed: Vec<_> = new.levels[0].iter().filter(is_new).cloned().collect();
        if !flushed.is_empty() && is_read(core, shown, new.info.id) {
            load_flushed(core, &flushed, &mut |_| !core.background.is_closing());
        }
        let merged = || new.levels[1..].iter().flat_map(|level| level.iter()).filter(is_new).cloned();
        if merged().next().is_some() {
            rest.push(heat::inherit(core, replaced_runs(old, &now), || merged().collect()));
        }
    }
    rest
}

/// Whether the table has other files in `new` than in `old`, or sees other slices of them.
fn is_changed(old: &TableFiles, new: &TableFiles) -> bool {
    old.levels.iter().zip(&new.levels).any(|(old, new)| !Arc::ptr_eq(old, new))
}

fn numbers(table: &TableFiles) -> HashSet<u64> {
    table.files().map(|(_, file)| file.number).collect()
}

/// The files of `old` whose numbers are not in `now`, in runs of files that do not overlap.
fn replaced_runs(old: &TableFiles, now: &HashSet<u64>) -> Vec<Level> {
    let replaced = |level: &Level| -> Vec<Arc<DbFile>> {
        level.iter().filter(|file| !now.contains(&file.number)).cloned().collect()
    };
    let (level0, deeper) = old.levels.split_first().expect("a table has levels");
    let alone = replaced(level0).into_iter().map(|file| vec![file]);
    let runs = alone.chain(deeper.iter().map(replaced));
    runs.filter(|run| !run.is_empty()).map(Arc::new).collect()
}

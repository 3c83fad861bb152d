//! Takes the files of a table back to an older version: says which stay as they are, and writes others again. This
//! module does not know who needs the older version, and installs nothing.
//!
//! ```text
//! version 17 of    rows of versions
//! 24  level 0      18 .. 21            gone
//! 21  level 0      12 .. 17 | 18       mixed: written again, up to 17
//!  7  level 1       1 .. 11            as it was
//! ```
//!
//! A file is never cut by a slice here: a slice hides rows with all of their versions, and a file with newer rows may
//! have older versions of the same rows.

use super::kept_files::KeptFiles;
use super::merge::{MergePlan, MergeResult, Rewrite, merge_files};
use super::output::Target;
use crate::base::boundaries::Boundaries;
use crate::base::error::Result;
use crate::core::Core;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{DbFile, Level, TableFiles};
use os::sync::Arc;
use sst::Version;

/// The files of a table at an older version.
pub struct OlderFiles {
    /// The files that are not as they were, by level and number. All others are.
    pub replaced: Vec<(u8, u64)>,
    /// Those of them that have rows of the version, or of older ones.
    pub mixed: Vec<Mixed>,
}

/// Files of one level of a table that are written again as one file.
pub struct Mixed {
    level: u8,
    /// The files, the newest first.
    files: Vec<Arc<DbFile>>,
    /// Whether no other file may have older versions of their keys.
    bottom: bool,
}

/// What has to be done with the files of `table` so that they have no rows after `version`.
pub fn older_files(table: &TableFiles, version: Version) -> OlderFiles {
    let newer = table.files().filter(|(_, file)| file.age() > version.0);
    let mut replaced: Vec<(u8, u64)> = newer.map(|(level, file)| (level as u8, file.number)).collect();
    let mixed = mixed_files(table, version);
    replaced.extend(mixed.iter().flat_map(|mixed| mixed.files.iter().map(|file| (mixed.level, file.number))));
    replaced.sort_unstable();
    replaced.dedup();
    OlderFiles { replaced, mixed }
}

/// The files of a table that have rows of `version` or older ones, and newer rows, too.
fn mixed_files(table: &TableFiles, version: Version) -> Vec<Mixed> {
    let is_mixed = |file: &&Arc<DbFile>| file.age() > version.0 && file.oldest() <= version.0;
    let (level0, deeper) = table.levels.split_first().expect("a table has levels");
    let is_over = |file: &DbFile, others: &[Level]| {
        others.iter().flat_map(|level| level.iter()).any(|other| other.sst.bounds().overlaps(file.sst.bounds()))
    };
    let mut all = Vec::new();
    let left: Vec<_> = level0.iter().filter(|file| file.oldest() <= version.0).cloned().collect();
    // Files of level 0 are ordered by their newest versions. They stay in order without newer rows if each has only
    // newer versions than the next one.
    if left.windows(2).all(|pair| pair[0].oldest() >= pair[1].age()) {
        for (at, file) in left.iter().enumerate().filter(|(_, file)| is_mixed(file)) {
            let below = &left[at + 1..];
            let bottom = !is_over(file, deeper) && !is_over(file, &[Arc::new(below.to_vec())]);
            all.push(Mixed { level: 0, files: vec![file.clone()], bottom });
        }
    } else if left.iter().any(|file| is_mixed(&file)) {
        let bottom = !left.iter().any(|file| is_over(file, deeper));
        all.push(Mixed { level: 0, files: left, bottom });
    }
    for (level, files) in (1u8..).zip(deeper) {
        for file in files.iter().filter(is_mixed) {
            let bottom = !is_over(file, &deeper[usize::from(level)..]);
            all.push(Mixed { level, files: vec![file.clone()], bottom });
        }
    }
    all
}

/// Writes files of `table` again, to `target`, without rows after `version` and without those that no reader at the
/// `boundaries` sees. `go_on` says whether to go on. Returns `None` if it has ended the work, or if the database is
/// closing.
///
/// # Errors
///
/// Fails if a file cannot be read or written.
pub fn rewrite(
    core: &Arc<Core>,
    table: &TableFiles,
    mixed: &Mixed,
    (version, boundaries): (Version, &Boundaries),
    target: Target,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<NewFiles>> {
    let plan = MergePlan {
        sources: mixed.files.iter().map(|file| Arc::new(vec![file.clone()])).collect(),
        bottom: mixed.bottom,
        file_bytes: u64::MAX,
        below: Level::default(),
        kept: KeptFiles::default(),
        rewrite: Some(Rewrite { through: version, into: None }),
        is_run: false,
        is_judged: false,
        target,
        // A row that has expired may still be there, as it is in the files that are shared.
        now: 0,
    };
    let merged = merge_files(core, &table.info, plan, boundaries, &mut |_, _| go_on())?;
    merged.map(|MergeResult { outputs, .. }| outputs.finish(mixed.level, 0)).transpose()
}

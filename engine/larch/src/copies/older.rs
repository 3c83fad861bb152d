//! Takes a file set back to an older version, for a copy whose newest version it becomes. This module does not know
//! where the copy goes, or which rows are only in memory.
//!
//! ```text
//! version 17 of    rows of versions
//! 24  level 0      18 .. 21            left out
//! 21  level 0      12 .. 17 | 18       written again, up to 17
//!  7  level 1       1 .. 11            shared as it is
//! ```
//!
//! A file is never cut by a slice here: a slice hides rows with all of their versions, and a file with newer rows may
//! have older versions of the same rows.

use crate::base::boundaries::Boundaries;
use crate::base::error::{Error, Result};
use crate::base::table::TableId;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::files::kept_files::KeptFiles;
use crate::files::merge::{MergePlan, MergeResult, Rewrite, merge_files};
use crate::files::output::Target;
use crate::manifest::directory::place::Place;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{DbFile, Edit, FileSet, Level, TableFiles};
use os::sync::Arc;
use sst::Version;

/// The files of a database at an older version.
pub struct Older {
    /// The files that are as they were.
    pub files: FileSet,
    /// The files that are new.
    pub new: NewFiles,
    /// Bytes of the new files that take the place of files with newer rows.
    pub rewritten_bytes: u64,
    /// Indexes that are left out, because they were made after the version.
    pub left_out_indexes: u64,
}

/// Files of one level of a table that are written again as one file.
struct Mixed {
    level: u8,
    /// The files, the newest first.
    files: Vec<Arc<DbFile>>,
    /// Whether no other file may have older versions of their keys.
    bottom: bool,
}

/// Takes `files` back to `version`. The caller makes sure that reads can see this version, and that its files stay
/// until the copy is made. New files are written to `place`.
///
/// # Errors
///
/// Fails if a file cannot be read or written, or if `watch` has ended the work.
pub fn older(
    core: &Arc<Core>,
    files: &FileSet,
    version: Version,
    place: &Place,
    watch: &Watch<'_>,
) -> Result<Older> {
    let mut files = FileSet::clone(files);
    files.go_back_to(version);
    let change = |files: &mut FileSet, edit: &Edit| {
        // What no table sees any more is still part of the database.
        let changed = files.apply(edit, &core.env.opener, &mut Vec::new());
        changed.expect("the edit is made from the file set");
    };
    let is_late = |table: &TableFiles| table.info.index.as_ref().is_some_and(|index| index.since > version);
    let late: Vec<TableId> = files.tables.indexes().filter(|table| is_late(table)).map(|table| table.info.id).collect();
    late.iter().for_each(|index| change(&mut files, &Edit::DropTable(*index)));
    // Reads of the copy see the same versions as those of the database, up to this one.
    let kept = files.all_kept().map(|kept| kept.version).chain([version]).collect();
    let boundaries = Boundaries::new(kept, files.retained_from());
    let mut new = NewFiles::none(place);
    let tables: Vec<TableFiles> = files.tables.values().cloned().collect();
    for table in &tables {
        let id = table.info.id;
        let is_whole = |file: &DbFile| file.age() <= version.0;
        for (level, file) in table.files().filter(|(_, file)| !is_whole(file) && oldest(file) > version.0) {
            change(&mut files, &Edit::RemoveFile { table: id, level: level as u8, number: file.number });
        }
        for mixed in mixed_files(table, version) {
            for file in &mixed.files {
                change(&mut files, &Edit::RemoveFile { table: id, level: mixed.level, number: file.number });
            }
            new.append(rewrite(core, table, &mixed, (version, &boundaries), place, watch)?);
        }
    }
    let rewritten_bytes = new.bytes();
    Ok(Older { files, new, rewritten_bytes, left_out_indexes: late.len() as u64 })
}

/// The oldest version in a file.
fn oldest(file: &DbFile) -> u64 {
    file.sst.meta.oldest.0 + file.sst.version_offset
}

/// The files of a table that have rows of `version` or older ones, and newer rows, too.
fn mixed_files(table: &TableFiles, version: Version) -> Vec<Mixed> {
    let is_mixed = |file: &&Arc<DbFile>| file.age() > version.0 && oldest(file) <= version.0;
    let (level0, deeper) = table.levels.split_first().expect("a table has levels");
    let is_over = |file: &DbFile, others: &[Level]| {
        others.iter().flat_map(|level| level.iter()).any(|other| other.sst.bounds().overlaps(file.sst.bounds()))
    };
    let mut all = Vec::new();
    let left: Vec<_> = level0.iter().filter(|file| oldest(file) <= version.0).cloned().collect();
    // Files of level 0 are ordered by their newest versions. They stay in order without newer rows if each has only
    // newer versions than the next one.
    if left.windows(2).all(|pair| oldest(&pair[0]) >= pair[1].age()) {
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

/// Writes the files again, without rows after `version`.
fn rewrite(
    core: &Arc<Core>,
    table: &TableFiles,
    mixed: &Mixed,
    (version, boundaries): (Version, &Boundaries),
    place: &Place,
    watch: &Watch<'_>,
) -> Result<NewFiles> {
    let plan = MergePlan {
        sources: mixed.files.iter().map(|file| Arc::new(vec![file.clone()])).collect(),
        bottom: mixed.bottom,
        file_bytes: u64::MAX,
        below: Level::default(),
        kept: KeptFiles::default(),
        rewrite: Some(Rewrite { through: version, into: None }),
        is_run: false,
        target: Target::Place(place.clone()),
        // A row that has expired may still be there, as it is in the files that are shared.
        now: 0,
    };
    let merged = merge_files(core, &table.info, plan, boundaries, &mut |_, _| !watch.is_over())?;
    let Some(MergeResult { outputs, .. }) = merged else {
        watch.check()?;
        return Err(Error::Cancelled("the copy"));
    };
    outputs.finish(mixed.level, 0)
}

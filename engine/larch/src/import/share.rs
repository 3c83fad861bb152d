//! Clones, splits and renames tables without copying rows. The files stay where they are, and edits of the manifest
//! say that another table also uses them, or a slice of them. This module does not know what is in the files.

use crate::base::boundaries::Boundaries;
use crate::base::error::{Error, Result};
use crate::base::table::{TableId, TableInfo};
use crate::base::watch::Watch;
use crate::compact::cut::{self, Remainder};
use crate::core::Core;
use crate::files::older::{OlderFiles, older_files, rewrite};
use crate::files::output::{Outputs, Target};
use crate::manifest::Edit;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::new_files::NewFiles;
use crate::write::change::TableChange;
use crate::write::define::check_unindexed;
use os::sync::Arc;
use pages::{Admit, Reason, Session};
use sst::KeyRange;
use sst::{RangeErase, Version};

/// Which rows of an old table a new table gets, and whether the old table keeps these rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SharedPart<'k> {
    /// A clone: the new table gets all rows, and the old table keeps them.
    Copy,
    /// A split: the rows from this key on move to the new table.
    From(&'k [u8]),
    /// A rename: the new table gets all rows, and the old table is dropped.
    Whole,
}

/// Creates the table `name` with `part` of `table`, and returns it.
///
/// # Errors
///
/// [`Error::TableExists`] if the name is taken; [`Error::TableDropped`] if `table` was dropped;
/// [`Error::HasIndexes`] if `table` has indexes and `part` is not the whole table; an error if an index page cannot
/// be read; otherwise the errors of [`TableChange::begin_with_levels`] and [`Core::install`].
pub fn share(core: &Arc<Core>, table: &TableInfo, name: &str, part: SharedPart<'_>) -> Result<Arc<TableInfo>> {
    let outcome = share_files(core, table, name, part);
    // This thread held the levels lock, so the compaction job may have found nothing to do. It is woken again.
    core.background.wake_compact();
    outcome
}

/// Creates the table `name` with the rows that `table` has at `version`, which the caller has pinned. Files without
/// newer rows are shared, and files with newer rows are written again without them. `watch` is told how many bytes
/// were written.
///
/// # Errors
///
/// As [`share`]; an error if a file cannot be read or written; [`Error::Cancelled`] if `watch` has ended the work.
pub fn share_at(
    core: &Arc<Core>,
    table: &TableInfo,
    name: &str,
    version: Version,
    watch: &Watch<'_>,
) -> Result<Arc<TableInfo>> {
    let outcome = share_files_at(core, table, name, version, watch);
    core.background.wake_compact();
    outcome
}

fn share_files_at(
    core: &Arc<Core>,
    table: &TableInfo,
    name: &str,
    version: Version,
    watch: &Watch<'_>,
) -> Result<Arc<TableInfo>> {
    watch.check()?;
    let check = || {
        let view = core.views.newest();
        view.files_of(table)?;
        check_unindexed(&view.files, table, "a clone")?;
        match view.files.tables.named(name) {
            Some(_) => Err(Error::TableExists(name.to_owned())),
            None => Ok(()),
        }
    };
    // From here on, all rows up to the version are in files, and no file of the table is replaced.
    let mut change = TableChange::begin_with_levels(core, &[table], &[], |_| check())?;
    // The new files say in their footers for which table they were written. If they named the old table, a repair
    // without a manifest would give it rows back that it has erased since.
    let id = change.reserve_table()?;
    let paused = change.pause();
    core.clean_up_after(&[]);
    let files = core.views.newest().files_of(table)?.clone();
    let written_for = {
        let TableInfo { options, since, .. } = &*files.info;
        let info = TableInfo { id, name: name.to_owned(), options: options.clone(), since: *since, index: None };
        files.clone().of(info)
    };
    let OlderFiles { replaced, mixed } = older_files(&files, version);
    let seen = core.views.boundaries().of(table.id);
    let kept = seen.versions().iter().copied().filter(|other| *other < version).chain([version]).collect();
    let boundaries = Boundaries::new(kept, seen.all_from().filter(|from| *from <= version));
    let mut new = NewFiles::none(&core.env.place());
    for mixed in mixed {
        let at = (version, &boundaries);
        let Some(written) = rewrite(core, &written_for, &mixed, at, Target::Database, &mut || !watch.is_over())? else {
            watch.check()?;
            return Err(Error::Cancelled("the clone"));
        };
        new.append(written);
        watch.tell(new.bytes(), 0);
    }
    watch.check()?;
    let change = paused.resume()?;
    check()?;
    // The options may have been altered meanwhile. The new table gets those of now, as another clone would.
    let info = core.views.newest().files_of(table)?.info.clone();
    // Then the new files may have been written with the old ones, although their numbers are later.
    let since = if info.since == files.info.since { info.since } else { core.writes.new_number() };
    let mut edits = new_table(core, &info, since, (id, name));
    for (level, file) in files.files() {
        let (level, number) = (level as u8, file.number);
        if replaced.binary_search(&(level, number)).is_err() {
            edits.push(Edit::ShareFile { table: table.id, level, number, to: id });
        }
    }
    let NewFiles { files, fresh } = new;
    edits.extend(files.into_iter().map(Edit::AddFile));
    change.install(&edits, fresh)?;
    core.views.table_info(id).ok_or_else(|| Error::NoSuchTable(name.to_owned()))
}

/// The edits that create the table `id` with the options of the table `info`, whose files it will see. Files with
/// numbers below `since` may have been written with other options. The new table keeps its past by the same rule,
/// because its files have just what the other table has kept.
fn new_table(core: &Core, info: &TableInfo, since: u64, (id, name): (TableId, &str)) -> Vec<Edit> {
    let mut edits = vec![Edit::Table { id, name: name.to_owned(), options: info.options.clone() }];
    if since > 0 {
        edits.push(Edit::AlterTable { id, since, options: info.options.clone() });
    }
    let retained = core.views.newest().files.table_pasts.get(info.id);
    edits.extend(retained.map(|retained| Edit::RetainTable { table: id, retained }));
    edits
}

fn share_files(core: &Arc<Core>, table: &TableInfo, name: &str, part: SharedPart<'_>) -> Result<Arc<TableInfo>> {
    let from = match part {
        SharedPart::From(key) => Some(key),
        SharedPart::Copy | SharedPart::Whole => None,
    };
    let mut change = TableChange::begin_with_levels(core, &[table], &[], |_| {
        let view = core.views.newest();
        view.files_of(table)?;
        match part {
            SharedPart::Copy => check_unindexed(&view.files, table, "a clone")?,
            SharedPart::From(_) => check_unindexed(&view.files, table, "a split")?,
            SharedPart::Whole => {}
        }
        match view.files.tables.named(name) {
            Some(_) => Err(Error::TableExists(name.to_owned())),
            None => Ok(()),
        }
    })?;
    let view = core.views.newest();
    let files = view.files_of(table)?;
    let (info, id) = (&files.info, TableId(view.files.next_table));
    let mut edits = new_table(core, info, info.since, (id, name));
    let session = Session::new(&core.env.cache, Reason::Scan, Admit::Keep);
    // No key is less than the empty key.
    let before = from.filter(|key| !key.is_empty());
    let before: Vec<KeyRange> =
        before.map(|key| KeyRange { start: Vec::new(), end: Some(key.to_vec()) }).into_iter().collect();
    for (level, file) in files.files() {
        let (level, number) = (level as u8, file.number);
        let left = cut::without(&session, file, &before)?;
        if left == Remainder::Nothing {
            continue;
        }
        edits.push(Edit::ShareFile { table: table.id, level, number, to: id });
        if let Remainder::Part(slice) = left {
            edits.push(Edit::SliceFile { table: id, level, number, slice: Some(slice) });
        }
    }
    match from {
        Some(key) => {
            // A new file with a range erase hides the moved rows in the old table. The compaction job later turns
            // the erase into slices.
            let erase =
                RangeErase { keys: KeyRange { start: key.to_vec(), end: None }, versions: vec![change.version()] };
            let mut outputs = Outputs::new(core, info, u64::MAX, false);
            outputs.add_erase(erase)?;
            let NewFiles { files, fresh } = outputs.finish(0, 0)?;
            edits.extend(files.into_iter().map(Edit::AddFile));
            change.commit(edits, fresh)?;
        }
        None => {
            if part == SharedPart::Whole {
                // The indexes move to the new table in the same record, so a crash cannot separate them from the
                // rows.
                for index in view.files.tables.indexes_of(table.id).filter_map(|files| files.info.index.as_ref()) {
                    edits.push(Edit::AlterIndex { id: index.id, table: id, state: index.state });
                }
                edits.push(Edit::DropTable(table.id));
            }
            change.install(&edits, FreshFiles::new(&core.env.opener.leftovers))?;
        }
    }
    core.views.table_info(id).ok_or_else(|| Error::NoSuchTable(name.to_owned()))
}

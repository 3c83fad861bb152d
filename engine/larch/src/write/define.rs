//! Creates, alters and drops tables. This module decides which tables exist and how they are stored. It does not
//! know the rows of tables.

use super::change::TableChange;
use crate::base::error::{Error, Result};
use crate::base::options::TableOptions;
use crate::base::table::{TableId, TableInfo};
use crate::core::Core;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::{Edit, FileSet};
use os::sync::Arc;

/// Returns an error for a name that no table can have.
///
/// # Errors
///
/// [`Error::BadTableName`] if the name is empty or longer than 255 bytes.
pub fn check_name(name: &str) -> Result<&str> {
    if name.is_empty() || name.len() > 255 { Err(Error::BadTableName(name.to_owned())) } else { Ok(name) }
}

/// Returns an error if a new table must not have this name. Besides the rules of [`check_name`], control characters
/// are refused, because people and scripts read lists with one name per line. Tables from earlier releases may have
/// such names.
///
/// # Errors
///
/// [`Error::BadTableName`] if the name breaks one of these rules.
pub fn check_new_name(name: &str) -> Result<&str> {
    if is_new_name(name) { Ok(name) } else { Err(Error::BadTableName(name.to_owned())) }
}

/// Whether `name` may be given to something new: 1 to 255 bytes without control characters.
pub fn is_new_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && !has_control(name)
}

/// Whether a name contains control characters, so that it may not fit on one line.
pub fn has_control(name: &str) -> bool {
    name.chars().any(char::is_control)
}

/// Returns the table `name`, and creates it with `options` if it does not exist.
///
/// # Errors
///
/// The errors of [`TableChange::begin`] and [`Core::install`]. If the table is new, also the errors of
/// [`check_new_name`].
pub fn create(core: &Core, name: &str, options: TableOptions) -> Result<Arc<TableInfo>> {
    // The change holds the writer's lock, so no other table can take this name meanwhile.
    let change = TableChange::begin(core)?;
    let view = core.views.newest();
    if let Some(table) = view.files.tables.named(name) {
        return Ok(table.info.clone());
    }
    check_new_name(name)?;
    let id = TableId(view.files.next_table);
    let edit = Edit::Table { id, name: name.to_owned(), options };
    change.install(&[edit], FreshFiles::new(&core.env.opener.leftovers))?;
    core.views.table_info(id).ok_or_else(|| Error::TableDropped(name.to_owned()))
}

/// Drops the table `name`. Returns false if it does not exist.
///
/// # Errors
///
/// The errors of [`TableChange::begin`] and [`Core::install`].
pub fn drop_table(core: &Core, name: &str) -> Result<bool> {
    let mut change = TableChange::begin(core)?;
    let view = core.views.newest();
    let Some(table) = view.files.tables.named(name) else { return Ok(false) };
    let mut edits = drops_of_indexes(&view.files, table.info.id);
    edits.push(Edit::DropTable(table.info.id));
    drop(view);
    // Durable commits must be a prefix of all commits, so make the earlier commits durable first.
    change.sync()?;
    change.install(&edits, FreshFiles::new(&core.env.opener.leftovers))?;
    Ok(true)
}

/// The edits that drop the indexes of `table`.
fn drops_of_indexes(files: &FileSet, table: TableId) -> Vec<Edit> {
    files.tables.indexes_of(table).map(|index| Edit::DropTable(index.info.id)).collect()
}

/// Returns an error if the table has indexes. Called before `work` that does not update indexes. The error names
/// this work.
///
/// # Errors
///
/// [`Error::HasIndexes`] if the table has indexes.
pub fn check_unindexed(files: &FileSet, table: &TableInfo, work: &'static str) -> Result<()> {
    let indexes = files.tables.indexes_of(table.id).filter_map(|files| files.info.index.as_ref());
    let indexes: Vec<String> = indexes.map(|index| index.name.clone()).collect();
    if indexes.is_empty() { Ok(()) } else { Err(Error::HasIndexes { table: table.name.clone(), work, indexes }) }
}

/// Changes the options with which `table` is stored from now on. Holds the lock `altering` from reading the old
/// options until the new ones are installed, so that two threads that alter a table lose no change.
///
/// # Errors
///
/// [`Error::ReadOnly`] in a read-only database; [`Error::BadOptions`] if the options cannot be used or the column
/// groups differ; an error if the table was dropped; the errors of [`Core::install`].
pub fn alter(core: &Core, table: &TableInfo, change: impl FnOnce(&mut TableOptions)) -> Result<()> {
    core.check_writable()?;
    let _altering = core.writes.altering.lock();
    if core.env.options.read_only {
        return Err(Error::ReadOnly);
    }
    let old = core.views.newest().files_of(table)?.info.clone();
    let mut options = old.options.clone();
    change(&mut options);
    if options.groups != old.options.groups {
        return Err(Error::BadOptions(format!(
            "the groups of table {} were fixed when it was created; leave them as they are, or create another table \
             and copy the rows",
            table.name
        )));
    }
    options.check_for(core.env.options.compat)?;
    if options == old.options {
        return Ok(());
    }
    let is_alike = options.writes_like(&old.options);
    install_options(core, &old, options, is_alike)
}

/// Records in the manifest that files so far may not have been written with the table's current options.
///
/// # Errors
///
/// [`Error::TableDropped`] if the table was dropped; the errors of [`Core::install`].
pub fn note_other_options(core: &Core, table: &TableInfo) -> Result<()> {
    let _altering = core.writes.altering.lock();
    let now = core.views.newest().files_of(table)?.info.clone();
    install_options(core, &now, now.options.clone(), false)
}

/// Installs new options for the table `old`. `is_alike` says that files come out the same with the new options as
/// with the old. The caller must hold the lock `altering`.
fn install_options(core: &Core, old: &TableInfo, options: TableOptions, is_alike: bool) -> Result<()> {
    let mut manifest = core.writes.manifest.lock();
    // Files with numbers below `since` may have been written with the old options. Files that get their numbers
    // later are written with the new ones.
    let _numbering = core.writes.numbering.write();
    let since = if is_alike { old.since } else { core.writes.new_number() };
    let edit = Edit::AlterTable { id: old.id, since, options };
    core.install_in(&mut manifest, &[edit], FreshFiles::new(&core.env.opener.leftovers), |_| {})
}

//! Databases and tables as the command line names them.

use crate::args::Common;
use crate::failure::{Failure, Result};
use crate::layout::Layout;
use crate::schema::{Schema, groups};
use larch::{Database, Table};
use std::path::Path;

/// Opens a database that is there, to read it.
pub fn open(dir: &Path, common: &Common) -> Result<Database> {
    let database = common.builder(dir).create(false).read_only(common.read_only).open()?;
    Ok(database)
}

/// Opens a database that is there, to change it.
pub fn open_to_write(dir: &Path, common: &Common) -> Result<Database> {
    common.refuse_read_only()?;
    Ok(common.builder(dir).create(false).open()?)
}

/// Opens a database to change it; makes it if it is not there.
pub fn open_or_create(dir: &Path, common: &Common) -> Result<Database> {
    common.refuse_read_only()?;
    Ok(common.builder(dir).create(true).open()?)
}

/// A table that must be there.
pub fn table(database: &Database, dir: &Path, name: &str) -> Result<Table> {
    database.existing_table(name)?.ok_or_else(|| {
        let names = database.tables();
        let others = if names.is_empty() { "it has none".to_string() } else { format!("it has {}", names.join(", ")) };
        Failure::NotFound(format!("no table {name} in {}; {others}", dir.display()))
    })
}

/// The table that is named, or all of them.
pub fn tables(database: &Database, dir: &Path, name: Option<&str>) -> Result<Vec<Table>> {
    match name {
        Some(name) => Ok(vec![table(database, dir, name)?]),
        None => database.tables().iter().map(|name| table(database, dir, name)).collect(),
    }
}

/// How the rows of a table lie in it.
pub fn layout(table: &Table) -> Result<Layout> {
    let layout = Layout::new(schema(table)?);
    refuse_groups(&layout)?;
    Ok(layout)
}

/// The engine keeps no groups yet: here a table with groups ends that a command would read or write.
pub fn refuse_groups(layout: &Layout) -> Result<()> {
    if layout.has_groups() {
        return Err(Failure::Usage("this build cannot store groups; leave --groups out".to_string()));
    }
    Ok(())
}

/// The parts of a row that hold the groups that were asked for by name; all of them if none were.
pub fn parts(layout: &Layout, asked: &[String]) -> Result<Vec<usize>> {
    let groups = layout.schema().map_or(Vec::new(), Schema::group_names);
    if groups.is_empty() && asked.is_empty() {
        return Ok(vec![0]);
    }
    groups::choose(&groups, asked).map_err(Failure::Usage)
}

/// What the rows of a table are made of; `None` if they are raw keys and values.
pub fn schema(table: &Table) -> Result<Option<Schema>> {
    Schema::from_metadata(table.name(), &table.options().metadata).map_err(Failure::Input)
}

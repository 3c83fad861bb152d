//! Finds the databases and the tables that are named on the command line.

use crate::args::{At, Common, KeyTypes};
use crate::failure::{CommandFailure, Result};
use crate::layout::Layout;
use crate::places;
use crate::schema::{Schema, groups};
use ::rows::Declaration;
use kit::time::Timestamp;
use larch::past::AsOf;
use larch::{Database, Follow, Index, Selection, Snapshot, Table, TableOptions, Version};
use os::Machine;
use std::path::Path;
use std::time::Duration;

/// The directory that ext4 creates at the root of a file system.
const OF_FILE_SYSTEM: &str = "lost+found";

/// Opens an existing database for reading, as a follower: it shows every commit of the process that writes to the
/// database, and it takes no lock, so another command can write at the same time. With `--read-only`, the database
/// shows only what is in files.
pub fn open(dir: &Path, common: &Common) -> Result<Database> {
    let builder = common.builder(dir)?.create(false);
    let builder = if common.read_only { builder.read_only(true) } else { builder.follow(Follow::Commits) };
    Ok(builder.open()?)
}

/// What a command reads: the newest rows, or those of the version that it was told to read. All reads of the command
/// see the same rows.
pub fn snapshot(database: &Database, at: &At) -> Result<Snapshot> {
    let Some(when) = &at.at else { return Ok(database.snapshot()) };
    Ok(as_of(when, |when| database.at(when))?)
}

/// Calls `take` with the version that `when` means: that of a name, or else a number or a time.
pub fn as_of<T>(when: &str, mut take: impl FnMut(AsOf) -> larch::Result<T>) -> larch::Result<T> {
    match (take(AsOf::from(when)), when.parse()) {
        (Err(larch::Error::NoSuchKept { .. }), Ok(number)) => take(AsOf::Version(Version(number))),
        (Err(larch::Error::NoSuchKept { .. }), Err(_)) if let Some(time) = time(when) => take(AsOf::Time(time)),
        (taken, _) => taken,
    }
}

/// The time since 1970 that `text` says: a time in UTC, or how long ago.
fn time(text: &str) -> Option<Duration> {
    if let Some(time) = Timestamp::parse(text) {
        return u64::try_from(time.0).ok().map(Duration::from_micros);
    }
    // The newest rows are those of each later time.
    let now = match kit::time::parse_length(text).ok()? {
        Duration::ZERO => return Some(Duration::MAX),
        ago => Duration::from_micros(u64::try_from(Timestamp::now().0).ok()?).saturating_sub(ago),
    };
    Some(now)
}

/// Opens an existing database to copy it. This function takes no lock and changes nothing in the database, so
/// another process may write to it.
pub fn open_to_copy(dir: &Path, common: &Common) -> Result<Database> {
    Ok(common.builder(dir)?.create(false).read_only(true).open()?)
}

/// Opens an existing database to change it.
pub fn open_to_write(dir: &Path, common: &Common) -> Result<Database> {
    Ok(common.builder(dir)?.create(false).open()?)
}

/// Opens a database to change it, and creates one if the directory has none.
pub fn open_or_create(dir: &Path, common: &Common) -> Result<Database> {
    match open_to_write(dir, common) {
        Err(CommandFailure::Engine(larch::Error::NotADatabase(_))) => make(dir, common),
        opened => opened,
    }
}

/// Makes a database in a directory that does not exist yet, or that contains no other files.
pub fn make(dir: &Path, common: &Common) -> Result<Database> {
    if !places::is_url(dir) {
        refuse_other_files(dir)?;
    }
    Ok(common.builder(dir)?.create(true).open()?)
}

/// Refuses to make a database among other files, which might later be taken for files of the database or be removed
/// together with it.
fn refuse_other_files(dir: &Path) -> Result<()> {
    // A directory that cannot be listed usually does not exist. Any other cause is reported when the database is
    // made.
    let Ok(entries) = Machine::real().disk.list(dir) else { return Ok(()) };
    let is_other = |name: &str| !larch::check::is_file_of_database(name) && name != OF_FILE_SYSTEM;
    match entries.iter().find(|entry| is_other(&entry.name)) {
        None => Ok(()),
        Some(other) => Err(CommandFailure::Usage(format!(
            "{} has no database, and holds other files ({}); name a directory that is not there yet, or an empty one",
            dir.display(),
            other.name
        ))),
    }
}

/// A table, which must exist.
pub fn table(database: &Database, dir: &Path, name: &str) -> Result<Table> {
    database.existing_table(name)?.ok_or_else(|| {
        let names = database.tables();
        let others = if names.is_empty() { "it has none".to_string() } else { format!("it has {}", names.join(", ")) };
        CommandFailure::NotFound(format!("{} has no table {name}; {others}", dir.display()))
    })
}

/// The table that is named, or all tables if `name` is `None`.
pub fn tables(database: &Database, dir: &Path, name: Option<&str>) -> Result<Vec<Table>> {
    match name {
        Some(name) => Ok(vec![table(database, dir, name)?]),
        None => database.tables().iter().map(|name| table(database, dir, name)).collect(),
    }
}

/// An index, which must exist.
pub fn index(table: &Table, name: &str) -> Result<Index> {
    match table.index(name) {
        Ok(index) => Ok(index),
        Err(larch::Error::NoSuchIndex { .. }) => {
            let names = table.indexes()?;
            let others =
                if names.is_empty() { "it has none".to_string() } else { format!("it has {}", names.join(", ")) };
            Err(CommandFailure::NotFound(format!("table {} has no index {name}; {others}", table.name())))
        }
        Err(error) => Err(error.into()),
    }
}

/// The options for a new raw table with keys of the types `types`.
pub fn raw_options(types: &KeyTypes) -> TableOptions {
    TableOptions { metadata: types.to_metadata(), ..TableOptions::default() }
}

/// The layout of the rows in a table. `types` are the types that the user gave for the fields of the table's keys.
pub fn layout(table: &Table, types: &KeyTypes) -> Result<Layout> {
    let schema = schema(table)?;
    let declared = declared_key_types(table);
    let wrong = |why| Err(CommandFailure::Usage(format!("--key-types: {why}")));
    match (&types.key_types, &schema, declared) {
        (Some(_), Some(schema), _) => {
            wrong(format!("table {} has columns ({schema}), which say what its keys are; leave it out", table.name()))
        }
        (Some(asked), None, Some(declared)) if *asked != declared => wrong(format!(
            "the keys of table {} are of {declared}; leave it out, or say it to larch alter if that is wrong",
            table.name()
        )),
        (Some(fields), None, _) => Ok(Layout::of_tuples(fields.clone())),
        (None, None, Some(fields)) => Ok(Layout::of_tuples(fields)),
        (None, ..) => Ok(Layout::new(schema)),
    }
}

/// The key types that a raw table declares, or `None`. They are stored as the table's metadata, see
/// `docs/format/tuple.md`.
pub fn declared_key_types(table: &Table) -> Option<Declaration> {
    Declaration::from_bytes(&table.options().metadata).ok()
}

/// Like [`layout`], for commands that make rows from text.
pub fn layout_to_write(table: &Table, types: &KeyTypes) -> Result<Layout> {
    let layout = layout(table, types)?;
    let groups = table.options().groups;
    if layout.schema().is_none() && groups.len() > 1 {
        return Err(CommandFailure::Usage(format!(
            "the rows of table {} are split in groups ({}), and nothing in it says how they are written as text; write \
             them with the program that made it",
            table.name(),
            groups.join(", ")
        )));
    }
    Ok(layout)
}

/// The parts of a row that hold the groups named in `asked`, or all parts if `asked` is empty.
pub fn parts(table: &Table, asked: &[String]) -> Result<Vec<usize>> {
    let groups = table.options().groups;
    if groups.is_empty() && asked.is_empty() {
        return Ok(vec![0]);
    }
    groups::choose(&groups, asked).map_err(CommandFailure::Usage)
}

/// Selects the parts `parts` of each row, or returns `None` if rows are not split and are read whole.
pub fn selection(table: &Table, parts: &[usize]) -> Result<Option<Selection>> {
    let groups = table.options().groups;
    if groups.is_empty() {
        return Ok(None);
    }
    Ok(Some(table.select(parts.iter().map(|part| &groups[*part]))?))
}

/// Selects no part, so that reads return only keys.
pub fn keys(table: &Table) -> Result<Selection> {
    Ok(table.select([""; 0])?)
}

/// The schema of the rows in a table, or `None` if the rows are raw keys and values.
pub fn schema(table: &Table) -> Result<Option<Schema>> {
    let options = table.options();
    Schema::from_metadata(table.name(), &options.metadata, &options.groups).map_err(CommandFailure::Input)
}

/// A description of the rows in a table.
pub fn rows(table: &Table, schema: Option<&Schema>) -> String {
    rows_of(&table.options(), schema)
}

/// Like [`rows`], for a table with the options `options`.
pub fn rows_of(options: &TableOptions, schema: Option<&Schema>) -> String {
    let groups = match &options.groups[..] {
        [] => String::new(),
        groups => format!(" in groups {}", groups.join(", ")),
    };
    match (schema, Declaration::from_bytes(&options.metadata).ok()) {
        (Some(schema), _) => schema.to_string(),
        (None, Some(fields)) => format!("keys of {fields}, raw values{groups}"),
        (None, None) => format!("raw keys and values{groups}"),
    }
}

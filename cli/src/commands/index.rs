//! `larch index`: creates, drops, checks and lists the indexes of tables.

use crate::args::{CheckIndex, Common, CreateIndex, DropIndex, Inspect};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::index_text;
use crate::interrupt::Interrupt;
use crate::layout::indexed;
use crate::output::Output;
use crate::progress::Progress;
use crate::schema::Format;
use crate::size;
use ::rows::Extractor;
use larch::index::IndexOptions;
use serde::Serialize;

/// An index in the list of indexes.
#[derive(Serialize)]
struct Description<'i> {
    table: &'i str,
    index: &'i str,
    unique: bool,
    declaration: String,
}

/// What a check of an index found.
#[derive(Serialize)]
struct Checked<'i> {
    table: &'i str,
    index: &'i str,
    rows: u64,
    entries: u64,
    problems: Vec<String>,
    problems_left_out: u64,
}

/// Makes an index.
pub fn create(common: &Common, args: &CreateIndex) -> Result<()> {
    // A wrong declaration is refused before anything is opened.
    let declared = args.declaration.as_deref().filter(|text| indexed::is_declaration(text)).map(|text| {
        text.parse::<Extractor>().map_err(|error| {
            CommandFailure::Usage(format!(
                "the declaration {text:?} is wrong: {error}; larch index create --help has its grammar"
            ))
        })
    });
    let declared = declared.transpose()?;
    let named = match &args.declaration {
        Some(text) if declared.is_none() => text
            .split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|why: String| CommandFailure::Usage(format!("{text:?}: {why}")))?,
        _ => args.columns.clone(),
    };
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let extractor = match (declared, database::schema(&table)?) {
        (None, Some(schema)) => {
            let wrong = |why| CommandFailure::Usage(format!("the columns of the index: {why}"));
            indexed::extractor(&schema, &named).map_err(wrong)?
        }
        (None, None) => {
            return Err(CommandFailure::Usage(format!(
                "the rows of table {} are raw and have no columns; declare what the keys of the index are made of, as in \
                 'value[0..4] bytes' (larch index create --help has the grammar)",
                args.table
            )));
        }
        // Where a column lies in a value depends on the other columns and on the types of the key, so a declaration
        // that counts columns could mean another column than the user thinks.
        (Some(declared), Some(schema)) if schema.format != Format::Jsonl && !declared.groups().is_empty() => {
            return Err(CommandFailure::Usage(format!(
                "table {} has columns ({schema}), and where they lie in a value is not for a declaration to know; name them, as \
                 in --columns {}",
                args.table,
                schema.columns.last().map_or("2", |name| name.as_str())
            )));
        }
        (Some(declared), _) => declared,
    };
    let parts = table.options().groups.len().max(1);
    if let Some(group) = extractor.groups().iter().find(|group| **group >= parts) {
        return Err(CommandFailure::Usage(format!(
            "the declaration names column group {group}, and the rows of table {} have {}; groups are counted from 0",
            args.table,
            size::of(parts as u64, "part")
        )));
    }
    let options = IndexOptions { unique: args.unique };
    let interrupt = Interrupt::caught();
    let mut progress = Progress::items("indexing", 0);
    let made = table.create_index(&args.name, extractor.to_bytes(), &options, progress.until(&interrupt));
    drop(progress);
    drop(made?);
    drop(table);
    Ok(database.close()?)
}

/// Removes an index, which must exist.
pub fn drop_index(common: &Common, args: &DropIndex) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    // The index is looked up first, because the error about a missing index then lists the table's indexes.
    drop(database::index(&table, &args.name)?);
    table.drop_index(&args.name)?;
    drop(table);
    Ok(database.close()?)
}

/// Compares indexes with their tables.
pub fn check(common: &Common, args: &CheckIndex) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let interrupt = Interrupt::caught();
    let mut output = Output::new();
    let mut is_clean = true;
    for table in database::tables(&database, &args.dir, args.table.as_deref())? {
        let names = match &args.name {
            Some(name) => vec![database::index(&table, name)?.name().to_owned()],
            None => table.indexes()?,
        };
        for index in &names {
            let mut progress = Progress::endless("rows and entries compared");
            let found = table.index(index)?.check(progress.until(&interrupt))?;
            drop(progress);
            is_clean &= found.problems.is_empty();
            let problems = found.problems.iter().map(ToString::to_string).collect();
            let (rows, entries, problems_left_out) = (found.rows, found.entries, found.problems_left_out);
            let checked = Checked { table: table.name(), index, rows, entries, problems, problems_left_out };
            if args.json { output.json(&checked)? } else { print(&checked, &mut output)? }
        }
    }
    output.finish()?;
    if is_clean {
        return Ok(());
    }
    Err(CommandFailure::Damaged(
        "an index does not agree with its table; drop it, create it again, and run larch check".to_string(),
    ))
}

fn print(checked: &Checked<'_>, output: &mut Output) -> Result<()> {
    let Checked { table, index, rows, entries, problems, problems_left_out } = checked;
    for problem in problems {
        output.line(format!("{table} {index}: {problem}"))?;
    }
    let state = match problems.len() as u64 + problems_left_out {
        0 => "agrees with its table".to_string(),
        problems => size::of(problems, "problem"),
    };
    output.line(format!("{table} {index}: {state}; {}, {entries} in the index", size::of(*rows, "row")))
}

/// Lists indexes.
pub fn list(common: &Common, args: &Inspect) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let mut output = Output::new();
    for table in database::tables(&database, &args.dir, args.table.as_deref())? {
        for name in table.indexes()? {
            let index = database::index(&table, &name)?;
            let declaration = index_text::text(&index);
            let shown = Description { table: table.name(), index: &name, unique: index.is_unique(), declaration };
            if args.json {
                output.json(&shown)?;
            } else {
                let unique = if shown.unique { "unique, " } else { "" };
                output.line(format!("{} {name}: {unique}{}", shown.table, shown.declaration))?;
            }
        }
    }
    output.finish()
}

//! `larch get`, `put`, `merge` and `delete`: read, write, change and remove one row by its key.

use super::retain;
use super::scan::{self, Printing};
use crate::args::{self, Common, ScanFormat};
use crate::database;
use crate::expiring::NEVER;
use crate::failure::{CommandFailure, Result};
use crate::layout::Layout;
use crate::new_database::{with_database, with_table};
use crate::output::{Output, Printer};
use crate::portion::{Columns, Keys};
use larch::{MergeOp, Readable as _, Table, Value};
use serde::Serialize;

/// Until when a row is there.
#[derive(Serialize)]
struct Until {
    /// In UTC. `None` if the row does not expire.
    until: Option<String>,
}

/// Prints a row: its columns without those of the key, or the whole row in the form in which `scan` prints it.
pub fn get(common: &Common, args: &args::Get) -> Result<()> {
    let asked = if args.json { Some(ScanFormat::Jsonl) } else { args.format };
    let format = asked.map(|format| scan::format(Some(format), None)).transpose()?;
    let database = database::open(&args.row.dir, common)?;
    let table = database::table(&database, &args.row.dir, &args.row.table)?;
    let layout = database::layout(&table, &args.row.types)?;
    let parts = database::parts(&table, &args.groups)?;
    let key = layout.key_from_text(args.row.key.as_encoded_bytes()).map_err(CommandFailure::Usage)?;
    let snapshot = database::snapshot(&database, &args.at)?;
    let mut output = Output::new();
    if args.until {
        let reader = table.at(&snapshot)?;
        let until = reader.until(&key[..])?;
        if until.is_none() && !reader.contains_key(&key[..])? {
            return Err(missing(&args.row, &layout, &key));
        }
        let until = until.map(retain::time);
        match args.json {
            true => output.json(&Until { until })?,
            false => output.line(until.as_deref().unwrap_or(NEVER))?,
        }
        return output.finish();
    }
    if let Some(format) = format {
        if !table.at(&snapshot)?.contains_key(&key[..])? {
            return Err(missing(&args.row, &layout, &key));
        }
        let columns = Columns { keys: false, groups: &args.groups };
        let printing = Printing { table: &table, layout: &layout, columns, format, names: false };
        printing.print(&snapshot, &Keys::one(&key), None, &mut output)?;
        return output.finish();
    }
    let mut printer = Printer::of_parts(&layout, &parts);
    let mut print = |row: &[Value]| output.write(|line| printer.value(row, line));
    match database::selection(&table, &parts)? {
        Some(selection) => {
            print(&snapshot.select(&selection)?.get(&key[..])?.ok_or_else(|| missing(&args.row, &layout, &key))?)?
        }
        None => print(&[table.at(&snapshot)?.get(&key[..])?.ok_or_else(|| missing(&args.row, &layout, &key))?])?,
    }
    output.finish()
}

/// Writes a row. If the database or the table does not exist, it is made first. The new table has raw keys and
/// values.
pub fn put(common: &Common, args: &args::Put) -> Result<()> {
    let value = args.value.as_ref().map(|value| value.as_encoded_bytes());
    let insert = |table: &Table| {
        let row = database::layout_to_write(table, &args.row.types)?
            .row_from_texts(args.row.key.as_encoded_bytes(), value)
            .map_err(|why| CommandFailure::Usage(format!("{why}; nothing was written")))?;
        let after = |time| table.insert_parts_for(&row.key, &row.parts, time);
        let until = |time| table.insert_parts_until(&row.key, &row.parts, time);
        Ok(match (args.ttl, args.until) {
            (Some(time), _) => after(time),
            (None, Some(time)) => until(time),
            (None, None) => table.insert_parts(&row.key, &row.parts),
        }?)
    };
    with_database(&args.row.dir, common, |database| match database.existing_table(&args.row.table)? {
        Some(table) => insert(&table),
        None => with_table(database, &args.row.table, database::raw_options(&args.row.types), insert),
    })
}

/// Changes the value of a row in a raw table. If the database or the table does not exist, it is made first.
pub fn merge(common: &Common, args: &args::Merge) -> Result<()> {
    let op = operator(&args.how);
    let merge = |table: &Table| {
        let layout = database::layout_to_write(table, &args.row.types)?;
        if !layout.is_raw() {
            let table = &args.row.table;
            return Err(CommandFailure::Usage(format!(
                "table {table} has rows of columns, and merge changes raw values; write the row with larch put"
            )));
        }
        let key = layout.key_from_text(args.row.key.as_encoded_bytes()).map_err(CommandFailure::Usage)?;
        Ok(table.merge(&key, op)?)
    };
    with_database(&args.row.dir, common, |database| match database.existing_table(&args.row.table)? {
        Some(table) => merge(&table),
        None => with_table(database, &args.row.table, database::raw_options(&args.row.types), merge),
    })
}

fn operator(how: &args::How) -> MergeOp<'_> {
    let args::How { add, append, max, min, set_bit, json_patch } = how;
    let operand = |patch| MergeOp::Call { function: args::JSON_PATCH, operand: patch };
    None.or(add.map(MergeOp::Add))
        .or(append.as_deref().map(|text| MergeOp::Append(text.as_encoded_bytes())))
        .or(max.as_deref().map(|text| MergeOp::Max(text.as_encoded_bytes())))
        .or(min.as_deref().map(|text| MergeOp::Min(text.as_encoded_bytes())))
        .or(set_bit.map(MergeOp::set_bit))
        .or(json_patch.as_deref().map(|text| operand(text.as_bytes())))
        .expect("one of them is required")
}

/// Removes a row, which must exist.
pub fn delete(common: &Common, args: &args::Delete) -> Result<()> {
    let database = database::open_to_write(&args.row.dir, common)?;
    let table = database::table(&database, &args.row.dir, &args.row.table)?;
    let layout = database::layout(&table, &args.row.types)?;
    let key = layout.key_from_text(args.row.key.as_encoded_bytes()).map_err(CommandFailure::Usage)?;
    if !table.contains_key(&key[..])? {
        return Err(missing(&args.row, &layout, &key));
    }
    table.remove(&key[..])?;
    Ok(database.close()?)
}

fn missing(row: &args::Row, layout: &Layout, key: &[u8]) -> CommandFailure {
    let (text, table) = (row.key.to_string_lossy(), &row.table);
    match layout.tuple() {
        Some(fields) if fields.decode(key).is_err() => CommandFailure::NotFound(format!(
            "table {table} has no row with key {text}; write a value for each of the fields {fields}, or look for the keys \
             that begin so with larch scan --prefix"
        )),
        Some(_) => CommandFailure::NotFound(format!("table {table} has no row with key {text}")),
        None => CommandFailure::NotFound(format!("table {table} has no row with key {}", text.escape_debug())),
    }
}

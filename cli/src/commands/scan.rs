//! `larch scan` and `larch delete-range`: the rows with keys in a range, in their order.

use crate::args::{Common, DeleteRange, KeyRange, Scan, ScanFormat};
use crate::database;
use crate::failure::{Failure, Result};
use crate::layout::Layout;
use crate::output::{Output, Printer};
use crate::schema::groups::MAX_GROUPS;
use larch::{PartRange, RowRef};
use std::ops::Bound;

#[cfg(test)]
mod tests;

/// Runs the command.
pub fn run(common: &Common, args: &Scan) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table)?;
    let parts = database::parts(&table, &args.groups)?;
    let printer = Printer::of_parts(&layout, &parts);
    let mut output = Output::new();
    if let Some(range) = range(&args.range, &layout)? {
        let limit = args.limit.unwrap_or(u64::MAX);
        let selection = if args.keys { Some(database::keys(&table)?) } else { database::selection(&table, &parts)? };
        match selection {
            Some(selection) => print(selection.range(range).limit(limit), args, printer, &mut output)?,
            None => print(table.range(range).limit(limit), args, printer, &mut output)?,
        }
    }
    output.finish()
}

/// Rows from both ends, borrowed one by one.
trait Rows {
    fn next_row(&mut self) -> larch::Result<Option<RowRef<'_>>>;
    fn next_row_back(&mut self) -> larch::Result<Option<RowRef<'_>>>;
}

impl Rows for larch::Range {
    fn next_row(&mut self) -> larch::Result<Option<RowRef<'_>>> {
        self.next_row()
    }

    fn next_row_back(&mut self) -> larch::Result<Option<RowRef<'_>>> {
        self.next_row_back()
    }
}

impl Rows for PartRange {
    fn next_row(&mut self) -> larch::Result<Option<RowRef<'_>>> {
        self.next_row()
    }

    fn next_row_back(&mut self) -> larch::Result<Option<RowRef<'_>>> {
        self.next_row_back()
    }
}

fn print(mut rows: impl Rows, args: &Scan, mut printer: Printer<'_>, output: &mut Output) -> Result<()> {
    loop {
        let next = if args.reverse { rows.next_row_back() } else { rows.next_row() };
        let printed = match next {
            Ok(Some(row)) => print_row(&row, args, &mut printer, output),
            Ok(None) => return Ok(()),
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = printed {
            // What was read before the damage is good, and may be all that is left.
            output.flush()?;
            return Err(failure);
        }
    }
}

fn print_row(row: &RowRef<'_>, args: &Scan, printer: &mut Printer, output: &mut Output) -> Result<()> {
    let key = row.key();
    if args.keys {
        return output.write(|line| match args.format {
            ScanFormat::Tsv => printer.key(key, line),
            ScanFormat::Jsonl => printer.key_json(key, line),
        });
    }
    let mut print = |parts: &[&[u8]]| {
        output.write(|line| match args.format {
            ScanFormat::Tsv => printer.tsv(key, parts, line),
            ScanFormat::Jsonl => printer.json(key, parts, line),
        })
    };
    if row.part_count() == 1
        && let Some(part) = row.inline_part(0)
    {
        return print(&[part]);
    }
    let mut slots = [&[][..]; MAX_GROUPS];
    let slots = &mut slots[..row.part_count()];
    if (0..).zip(&mut *slots).all(|(at, slot)| row.inline_part(at).map(|part| *slot = part).is_some()) {
        return print(slots);
    }
    print(&Vec::from_iter(row.parts()?.iter().map(|part| &part[..])))
}

/// Keys from the first on, up to the second.
pub type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// `larch delete-range`: removes the rows that a scan of the same range would print.
pub fn delete_range(common: &Common, args: &DeleteRange) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    if let Some(range) = range(&args.range, &database::layout(&table)?)? {
        table.remove_range(range)?;
    }
    drop(table);
    Ok(database.close()?)
}

/// The keys that were asked for; `None` if there can be none.
pub fn range(args: &KeyRange, layout: &Layout) -> Result<Option<Range>> {
    let bound = |text: &Option<std::ffi::OsString>| {
        text.as_ref().map(|text| layout.bound_from_text(text.as_encoded_bytes())).transpose().map_err(Failure::Usage)
    };
    let (from, to, prefix) = (bound(&args.from)?, bound(&args.to)?, bound(&args.prefix)?);
    let after = prefix.as_deref().and_then(larch::successor);
    let from = from.max(prefix);
    let to = match (to, after) {
        (Some(to), Some(after)) => Some(to.min(after)),
        (to, after) => to.or(after),
    };
    if to.as_ref().is_some_and(|to| from.as_deref().unwrap_or_default() >= to.as_slice()) {
        return Ok(None);
    }
    Ok(Some((from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded))))
}

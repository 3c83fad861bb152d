//! `larch scan` and `larch delete-range` work on all rows whose keys lie in a range, in key order. `larch nth` and
//! `larch sample` print single rows by their numbers.

use crate::args::{Common, DeleteRange, KeyRange, Nth, Sample, Scan, ScanFormat, Shown};
use crate::database;
use crate::failure::{Failure, Result};
use crate::index_text;
use crate::layout::Layout;
use crate::output::{Output, Printer};
use crate::schema::groups::MAX_GROUPS;
use larch::index::RangeBy;
use larch::rows::{Content, RowRef};
use larch::{Index, Readable, Selection, Snapshot, Table};
use os::Machine;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;

#[cfg(test)]
mod tests;

/// Runs the command.
pub fn run(common: &Common, args: &Scan) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.range.types)?;
    let mut view = View::new(&table, &layout, &args.shown)?;
    let mut output = Output::new();
    if let Some(name) = &args.by {
        let index = database::index(&table, name)?;
        if let Some(range) = bounds(&args.range, |text| index_text::bound(&index, text))? {
            view.print_by(&index, range, args.limit.unwrap_or(u64::MAX), args.reverse, &mut output)?;
        }
    } else if let Some(range) = range(&args.range, &layout)? {
        view.print(range, args.limit.unwrap_or(u64::MAX), args.reverse, &mut output)?;
    }
    output.finish()
}

/// Prints the row with a number.
pub fn nth(common: &Common, args: &Nth) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.range.types)?;
    let mut view = View::new(&table, &layout, &args.shown)?;
    // One snapshot serves both reads, so the number and the row come from the same state.
    let snapshot = database.snapshot();
    let key = match range(&args.range, &layout)? {
        Some(range) => table.at(&snapshot)?.nth_key(range, args.number)?,
        None => None,
    };
    let key = key.ok_or_else(|| {
        Failure::NotFound(format!("table {} has no row {}, counted from 0 in the range", args.table, args.number))
    })?;
    let mut output = Output::new();
    view.print_row_of(&snapshot, &key, &mut output)?;
    output.finish()
}

/// Prints rows chosen at random.
pub fn sample(common: &Common, args: &Sample) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.range.types)?;
    let mut view = View::new(&table, &layout, &args.shown)?;
    let mut output = Output::new();
    if let Some(range) = range(&args.range, &layout)? {
        let seed = args.seed.unwrap_or_else(|| Machine::real().random.next_u64());
        // One snapshot serves all reads, so the keys and the rows come from the same state.
        let snapshot = database.snapshot();
        for key in table.at(&snapshot)?.sample(range, args.rows, seed)? {
            view.print_row_of(&snapshot, &key, &mut output)?;
        }
    }
    output.finish()
}

/// Prints the rows of a table in the requested form.
struct View<'t> {
    table: &'t Table,
    /// The parts of the rows that are read, or `None` if rows are read whole.
    selection: Option<Selection>,
    shown: &'t Shown,
    printer: Printer<'t>,
}

impl<'t> View<'t> {
    fn new(table: &'t Table, layout: &'t Layout, shown: &'t Shown) -> Result<Self> {
        let parts = database::parts(table, &shown.groups)?;
        let selection = if shown.keys { Some(database::keys(table)?) } else { database::selection(table, &parts)? };
        Ok(Self { table, selection, shown, printer: Printer::of_parts(layout, &parts) })
    }

    /// Prints at most `limit` rows of `range`, from its beginning or from its end.
    fn print(&mut self, range: Range, limit: u64, reverse: bool, output: &mut Output) -> Result<()> {
        match &self.selection {
            Some(selection) => {
                print(selection.range(range).limit(limit), reverse, self.shown, &mut self.printer, output)
            }
            None => print(self.table.range(range).limit(limit), reverse, self.shown, &mut self.printer, output),
        }
    }

    /// Prints at most `limit` rows of `range`, from its beginning or from its end, in the order of `index`.
    fn print_by(&mut self, index: &Index, range: Range, limit: u64, reverse: bool, output: &mut Output) -> Result<()> {
        if self.shown.keys {
            let mut entries = index.entries(range);
            let mut next = || if reverse { entries.next_back() } else { entries.next() };
            let mut left = limit;
            while let Some(entry) = if left > 0 { next() } else { None } {
                print_key(entry?.row_key(), self.shown, &mut self.printer, output)?;
                left -= 1;
            }
            return Ok(());
        }
        match &self.selection {
            Some(selection) => {
                let rows = selection.range_by(index, range).limit(limit);
                print_by(rows, reverse, |key, parts| print_parts(key, parts, self.shown, &mut self.printer, output))
            }
            None => print_by(index.range_by(range).limit(limit), reverse, |key, value| {
                print_parts(key, &[value], self.shown, &mut self.printer, output)
            }),
        }
    }

    /// Prints the row with the key `key`, as it is in `snapshot`.
    fn print_row_of(&mut self, snapshot: &Snapshot, key: &[u8], output: &mut Output) -> Result<()> {
        let range = (Bound::Included(key), Bound::Included(key));
        match &self.selection {
            Some(selection) => {
                let rows = snapshot.select(selection)?.range(range).limit(1);
                print(rows, false, self.shown, &mut self.printer, output)
            }
            None => {
                let rows = snapshot.range(self.table, range).limit(1);
                print(rows, false, self.shown, &mut self.printer, output)
            }
        }
    }
}

fn print<V: Content>(
    mut rows: larch::Range<V>,
    reverse: bool,
    shown: &Shown,
    printer: &mut Printer<'_>,
    output: &mut Output,
) -> Result<()> {
    loop {
        let next = if reverse { rows.next_row_back() } else { rows.next_row() };
        let printed = match next {
            Ok(Some(row)) => print_row(&row, shown, printer, output),
            Ok(None) => return Ok(()),
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = printed {
            // The rows before the damage are printed, because they may be the only ones that can still be read.
            output.flush()?;
            return Err(failure);
        }
    }
}

fn print_by<V: Content>(
    mut rows: RangeBy<V>,
    reverse: bool,
    mut print: impl FnMut(&[u8], &V) -> Result<()>,
) -> Result<()> {
    while let Some(row) = if reverse { rows.next_back() } else { rows.next() } {
        let (entry, content) = row?;
        print(entry.row_key(), &content)?;
    }
    Ok(())
}

fn print_key(key: &[u8], shown: &Shown, printer: &mut Printer<'_>, output: &mut Output) -> Result<()> {
    output.write(|line| match shown.format {
        ScanFormat::Tsv => printer.key(key, line),
        ScanFormat::Jsonl => printer.key_json(key, line),
    })
}

fn print_parts<P: AsRef<[u8]>>(
    key: &[u8],
    parts: &[P],
    shown: &Shown,
    printer: &mut Printer<'_>,
    output: &mut Output,
) -> Result<()> {
    output.write(|line| match shown.format {
        ScanFormat::Tsv => printer.tsv(key, parts, line),
        ScanFormat::Jsonl => printer.json(key, parts, line),
    })
}

fn print_row(row: &RowRef<'_>, shown: &Shown, printer: &mut Printer<'_>, output: &mut Output) -> Result<()> {
    let key = row.key();
    if shown.keys {
        return print_key(key, shown, printer, output);
    }
    let mut print = |parts: &[&[u8]]| print_parts(key, parts, shown, printer, output);
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

/// A range of keys: its lower and its upper bound.
pub type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// `larch delete-range`: removes the rows that a scan of the same range would print.
pub fn delete_range(common: &Common, args: &DeleteRange) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    if let Some(range) = range(&args.range, &database::layout(&table, &args.range.types)?)? {
        table.remove_range(range)?;
    }
    drop(table);
    Ok(database.close()?)
}

/// The range of keys that `args` asks for, or `None` if no key can lie in it.
pub fn range(args: &KeyRange, layout: &Layout) -> Result<Option<Range>> {
    bounds(args, |text| layout.bound_from_text(text.as_encoded_bytes()).map_err(Failure::Usage))
}

/// Like [`range`], with `bound` to make keys from the texts of `args`.
pub fn bounds(args: &KeyRange, bound: impl Fn(&OsStr) -> Result<Vec<u8>>) -> Result<Option<Range>> {
    let bound = |flag: &str, text: &Option<OsString>| {
        let bound = text.as_ref().map(|text| bound(text)).transpose();
        bound.map_err(|failure| failure.of_flag(flag))
    };
    let (from, to) = (bound("--from", &args.from)?, bound("--to", &args.to)?);
    let prefix = bound("--prefix", &args.prefix)?;
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

//! `larch scan` and `larch delete-range` work on all rows whose keys lie in a range, in key order. `larch nth` and
//! `larch sample` print single rows by their numbers.

use crate::args::{Common, DeleteRange, KeyRange, Nth, Sample, Scan, ScanFormat, Shown, TextFormat};
use crate::columnar;
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::file_name::FileName;
use crate::index_text;
use crate::interrupt::Interrupt;
use crate::layout::Layout;
use crate::output::{Names, Output, Printer};
use crate::portion::{Columns, Keys, Range};
use crate::progress::Progress;
use crate::schema::groups::MAX_GROUPS;
use larch::index::RangeBy;
use larch::rows::{Content, RowRef};
use larch::{Index, Readable, Selection, Snapshot, Table};
use os::Machine;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::path::Path;

#[cfg(test)]
mod tests;

/// The number of rows between two updates of the progress.
const STRIDE: u64 = 4096;

impl Shown {
    fn columns(&self) -> Columns<'_> {
        Columns { keys: self.keys, groups: &self.groups }
    }
}

/// Runs the command.
pub fn run(common: &Common, args: &Scan) -> Result<()> {
    let format = format(args.shown.format, args.out.as_deref())?;
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.range.types)?;
    let snapshot = database::snapshot(&database, &args.at)?;
    let (mut output, work) = match &args.out {
        Some(file) => (Output::to_file(file, args.overwrite)?, Some(Work::new(Interrupt::caught()))),
        None => (Output::new(), None),
    };
    let (reverse, limit) = (args.reverse, args.limit.unwrap_or(u64::MAX));
    if let Some(name) = &args.by {
        let Some(text) = format.text() else {
            return Err(CommandFailure::Usage(
                "rows in the order of an index are printed as text; choose csv, tsv or jsonl, or leave --by out"
                    .to_owned(),
            ));
        };
        let index = database::index(&table, name)?;
        let mut view = View::new(&table, &layout, args.shown.columns(), text, work)?;
        view.begin(false, &mut output)?;
        if let Some(range) = bounds(&args.range, |text| index_text::bound(&index, text))? {
            view.print_by((&snapshot, &index), range, limit, reverse, &mut output)?;
        }
    } else {
        let keys = Keys { reverse, limit, ..Keys::of(range(&args.range, &layout)?) };
        let printing = Printing { table: &table, layout: &layout, columns: args.shown.columns(), format, names: false };
        printing.print(&snapshot, &keys, work, &mut output)?;
    }
    output.finish()
}

/// Prints the row with a number.
pub fn nth(common: &Common, args: &Nth) -> Result<()> {
    let format = format(args.shown.format, None)?;
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.range.types)?;
    // One snapshot serves both reads, so the number and the row come from the same state.
    let snapshot = database::snapshot(&database, &args.at)?;
    let key = match range(&args.range, &layout)? {
        Some(range) => table.at(&snapshot)?.nth_key(range, args.number)?,
        None => None,
    };
    let key = key.ok_or_else(|| {
        CommandFailure::NotFound(format!(
            "table {} has no row {}, counted from 0 in the range",
            args.table, args.number
        ))
    })?;
    let mut output = Output::new();
    let printing = Printing { table: &table, layout: &layout, columns: args.shown.columns(), format, names: false };
    printing.print(&snapshot, &Keys::one(&key), None, &mut output)?;
    output.finish()
}

/// Prints rows chosen at random.
pub fn sample(common: &Common, args: &Sample) -> Result<()> {
    let format = format(args.shown.format, None)?;
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table, &args.range.types)?;
    let mut output = Output::new();
    let mut keys = Keys::of(None);
    // One snapshot serves all reads, so the keys and the rows come from the same state.
    let snapshot = database::snapshot(&database, &args.at)?;
    if let Some(range) = range(&args.range, &layout)? {
        let seed = args.seed.unwrap_or_else(|| Machine::real().random.next_u64());
        for key in table.at(&snapshot)?.sample(range, args.rows, seed)? {
            keys.ranges.extend(Keys::one(&key).ranges);
        }
    }
    let printing = Printing { table: &table, layout: &layout, columns: args.shown.columns(), format, names: false };
    printing.print(&snapshot, &keys, None, &mut output)?;
    output.finish()
}

/// The format that was asked for, or that the name of the file says; TSV on standard output.
///
/// # Errors
///
/// Returns [`CommandFailure::Usage`] if the name of the file says nothing, or if this binary cannot write the format.
pub fn format(asked: Option<ScanFormat>, file: Option<&Path>) -> Result<ScanFormat> {
    let named = match (asked, file) {
        (None, Some(file)) => FileName::of(file)?.format.ok_or_else(|| {
            CommandFailure::Usage(format!(
                "what is to be in {}? Its name ends in none of .csv, .tsv, .jsonl, .arrow and .parquet; choose such a name, or say \
                 --format",
                file.display()
            ))
        })?,
        (None, None) => ScanFormat::Tsv,
        (Some(format), _) => format,
    };
    columnar::check(named)?;
    Ok(named)
}

/// What is printed about the rows of a table, and how.
pub struct Printing<'a> {
    /// The table.
    pub table: &'a Table,
    /// The layout of its rows.
    pub layout: &'a Layout,
    /// The columns that are printed.
    pub columns: Columns<'a>,
    /// The format.
    pub format: ScanFormat,
    /// Whether rows that were imported from TSV with a header get it again in this format.
    pub names: bool,
}

impl Printing<'_> {
    /// Prints rows as they are in `snapshot`, and returns their number.
    pub fn print(&self, snapshot: &Snapshot, keys: &Keys, work: Option<Work>, output: &mut Output) -> Result<u64> {
        let Some(format) = self.format.text() else {
            return columnar::write(snapshot, self.table, self.layout, keys, &self.columns, self.format, output);
        };
        let mut view = View::new(self.table, self.layout, self.columns, format, work)?;
        view.begin(self.names, output)?;
        for range in &keys.ranges {
            view.print(snapshot, range.clone(), keys.limit, keys.reverse, output)?;
        }
        Ok(view.rows)
    }
}

/// What a user sees of long work on a file, and how the user ends it.
pub struct Work {
    interrupt: Interrupt,
    progress: Progress,
}

impl Work {
    /// Work on a file, which ^C ends.
    pub fn new(interrupt: Interrupt) -> Self {
        Self { interrupt, progress: Progress::endless("rows") }
    }
}

/// Prints the rows of a table as text.
pub struct View<'t> {
    table: &'t Table,
    /// The parts of the rows that are read, or `None` if rows are read whole.
    selection: Option<Selection>,
    columns: Columns<'t>,
    format: TextFormat,
    printer: Printer<'t>,
    work: Option<Work>,
    /// The number of rows that were printed.
    rows: u64,
}

impl<'t> View<'t> {
    pub fn new(
        table: &'t Table,
        layout: &'t Layout,
        columns: Columns<'t>,
        format: TextFormat,
        work: Option<Work>,
    ) -> Result<Self> {
        let parts = database::parts(table, columns.groups)?;
        let selection = if columns.keys { Some(database::keys(table)?) } else { database::selection(table, &parts)? };
        let printer = Printer::of_parts(layout, &parts);
        Ok(Self { table, selection, columns, format, printer, work, rows: 0 })
    }

    /// Prints what comes before the first row. If `names`, this is the header also in TSV that was imported with one.
    pub fn begin(&mut self, names: bool, output: &mut Output) -> Result<()> {
        let groups = self.table.options().groups;
        let values = if self.columns.groups.is_empty() { &groups } else { self.columns.groups };
        let names = Names { keys: self.columns.keys, values, of_tsv: names };
        output.write(|line| self.printer.header(self.format, names, line))
    }

    /// Prints at most `limit` rows of `range`, from its beginning or from its end, as they are in `snapshot`.
    fn print(
        &mut self,
        snapshot: &Snapshot,
        range: Range,
        limit: u64,
        reverse: bool,
        output: &mut Output,
    ) -> Result<()> {
        match &self.selection {
            Some(selection) => {
                let rows = snapshot.select(selection)?.range(range).limit(limit);
                self.print_rows(rows, reverse, output)
            }
            None => {
                let rows = snapshot.range(self.table, range).limit(limit);
                self.print_rows(rows, reverse, output)
            }
        }
    }

    /// Prints at most `limit` rows of `range`, from its beginning or from its end, in the order of `index`, as they are
    /// in `snapshot`.
    pub fn print_by(
        &mut self,
        (snapshot, index): (&Snapshot, &Index),
        range: Range,
        limit: u64,
        reverse: bool,
        output: &mut Output,
    ) -> Result<()> {
        if self.columns.keys {
            let mut entries = snapshot.entries(index, range);
            let mut next = || if reverse { entries.next_back() } else { entries.next() };
            let mut left = limit;
            while let Some(entry) = if left > 0 { next() } else { None } {
                self.print_key(entry?.row_key(), output)?;
                left -= 1;
            }
            return Ok(());
        }
        match &self.selection {
            Some(selection) => {
                let rows = snapshot.select(selection)?.range_by(index, range).limit(limit);
                print_by(rows, reverse, |key, parts| self.print_parts(key, parts, output))
            }
            None => {
                let rows = snapshot.range_by(index, range).limit(limit);
                print_by(rows, reverse, |key, value| self.print_parts(key, &[value], output))
            }
        }
    }

    fn print_rows<V: Content>(&mut self, mut rows: larch::Range<V>, reverse: bool, output: &mut Output) -> Result<()> {
        loop {
            let next = if reverse { rows.next_row_back() } else { rows.next_row() };
            let printed = match next {
                Ok(Some(row)) => self.print_row(&row, output),
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

    fn print_key(&mut self, key: &[u8], output: &mut Output) -> Result<()> {
        self.count()?;
        output.write(|line| self.printer.row_key(self.format, key, line))
    }

    fn print_parts<P: AsRef<[u8]>>(&mut self, key: &[u8], parts: &[P], output: &mut Output) -> Result<()> {
        self.count()?;
        if self.columns.groups.is_empty()
            && let Err(why) = self.printer.check(key, parts)
        {
            let mut text = Vec::new();
            self.printer.row_key(TextFormat::Tsv, key, &mut text);
            let (key, table) = (text.trim_ascii_end().escape_ascii(), self.table.name());
            return Err(CommandFailure::Input(format!(
                "table {table}: the row with key {key} is not as larch makes the rows of this table: {why}; another program wrote \
                 it, and its text could not be read back; see its bytes with larch dump DIR {table} --rows, and write or remove \
                 it with that program"
            )));
        }
        output.write(|line| self.printer.row(self.format, key, parts, line))
    }

    fn print_row(&mut self, row: &RowRef<'_>, output: &mut Output) -> Result<()> {
        let key = row.key();
        if self.columns.keys {
            return self.print_key(key, output);
        }
        if row.part_count() == 1
            && let Some(part) = row.inline_part(0)
        {
            return self.print_parts(key, &[part], output);
        }
        let mut slots = [&[][..]; MAX_GROUPS];
        let slots = &mut slots[..row.part_count()];
        if (0..).zip(&mut *slots).all(|(at, slot)| row.inline_part(at).map(|part| *slot = part).is_some()) {
            return self.print_parts(key, slots, output);
        }
        self.print_parts(key, &Vec::from_iter(row.parts()?.iter().map(|part| &part[..])), output)
    }

    /// Counts a row that is about to be printed. Work on a file shows its progress and ends after ^C.
    fn count(&mut self) -> Result<()> {
        self.rows += 1;
        let Some(Work { interrupt, progress }) = &mut self.work else { return Ok(()) };
        if self.rows.is_multiple_of(STRIDE) {
            progress.set(self.rows);
        }
        Ok(interrupt.check("the writing of rows")?)
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
    bounds(args, |text| layout.bound_from_text(text.as_encoded_bytes()).map_err(CommandFailure::Usage))
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

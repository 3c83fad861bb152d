//! `larch load`: reads lines from standard input or a file, and writes or removes rows as the lines come. It prints the key
//! of each row as soon as the change is safe.
//!
//! With `--delete`, each line is a key whose row is removed. Otherwise, the lines are rows as `import` would read
//! them into the table, without a header. For a raw table, a line is a key, a tab and a value. With `--format`,
//! rows and keys are in the form that `scan` prints. The command ends at a row that it cannot read or that the
//! table does not take. It also ends when it cannot write its output, because it could no longer say which rows are
//! safe.

use crate::args::{Common, Load, ScanFormat, TextFormat};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::file_name::FileName;
use crate::input::Input;
use crate::layout::Row;
use crate::new_database::with_database;
use crate::output::{Output, Printer};
use crate::rows::Rows;
use larch::{Database, Table};

/// The end of an error message, which says what a failure leaves.
const KEPT: &str = "rows whose keys were printed are kept";
const REMOVED: &str = "rows whose keys were printed are removed";

/// Runs the command.
pub fn run(common: &Common, args: &Load) -> Result<()> {
    if args.delete {
        let database = database::open_to_write(&args.dir, common)?;
        let table = database::table(&database, &args.dir, &args.table)?;
        take(&database, &table, args, &mut 0)?;
        drop(table);
        return Ok(database.close()?);
    }
    with_database(&args.dir, common, |database| {
        if let Some(table) = database.existing_table(&args.table)? {
            return take(database, &table, args, &mut 0);
        }
        let mut commits = 0;
        let table = database.table_with(&args.table, database::raw_options(&args.types))?;
        let done = take(database, &table, args, &mut commits);
        if done.is_err() && commits == 0 {
            // Only the error of the rows is reported. If the new table cannot be removed, it stays, empty and
            // harmless.
            database.drop_table(&args.table).ok();
        }
        done
    })
}

/// The format of printed rows or keys that was asked for, or that the name of the file says.
fn format(args: &Load) -> Result<Option<TextFormat>> {
    match (args.format, FileName::of(&args.file)?.format) {
        (None, Some(ScanFormat::Arrow | ScanFormat::Parquet)) => Err(CommandFailure::Usage(format!(
            "{}: larch writes such files, but does not load them; larch sql reads Parquet and Arrow files, see \
             docs/guide/sql.md",
            args.file.display()
        ))),
        (None, named) => Ok(named.and_then(ScanFormat::text)),
        (asked, _) => Ok(asked),
    }
}

/// Takes rows or keys until no more come, and counts its commits in `commits`.
fn take(database: &Database, table: &Table, args: &Load, commits: &mut u64) -> Result<()> {
    let layout = match args.delete {
        true => database::layout(table, &args.types)?,
        false => database::layout_to_write(table, &args.types)?,
    };
    let kept = if args.delete { REMOVED } else { KEPT };
    let imported = layout.schema().filter(|_| !args.delete).map(|schema| schema.format);
    let printed = format(args)?;
    let input = Input::open(&args.file)?;
    let mut rows = match (printed, imported) {
        (Some(printed), _) => Rows::of_printed(input, printed, kept),
        (None, None) => Rows::of_printed(input, TextFormat::Tsv, kept),
        (None, Some(format)) => Rows::new(input, format, false, kept)?,
    };
    let mut printer = Printer::new(&layout);
    let mut output = Output::new();
    let mut row = Row::default();
    let mut keys = Vec::new();
    loop {
        let mut batch = database.batch();
        let mut ended = Ok(false);
        for _ in 0..args.batch {
            let next = match args.delete {
                true => rows.next_key(&layout, &mut row.key),
                false => rows.next(&layout, &mut row),
            };
            ended = next.map(|more| !more);
            if !matches!(ended, Ok(false)) {
                break;
            }
            match args.delete {
                true => batch.remove(table, &row.key),
                false => batch.insert_parts(table, &row.key, &row.parts),
            }
            if let Some(error) = batch.take_error() {
                ended = Err(CommandFailure::Write { at: rows.place(), error, kept });
                break;
            }
            printer.key(&row.key, &mut keys);
        }
        // If a row cannot be taken, the rows before it in the batch are still committed.
        if !batch.is_empty() {
            batch.commit().map_err(|error| CommandFailure::Write { at: rows.place(), error, kept })?;
            *commits += 1;
            output
                .write(|lines| lines.append(&mut keys))
                .and_then(|()| output.flush())
                .map_err(|failure| unheard(failure, kept))?;
        }
        if ended? {
            return Ok(());
        }
    }
}

/// Turns an error of the output into a failure with advice. Other commands succeed if the reader of their output
/// has ended; here, the keys that it did not read are lost.
fn unheard(failure: CommandFailure, kept: &str) -> CommandFailure {
    match failure {
        CommandFailure::Output(error) => CommandFailure::Input(format!(
            "cannot print which rows are safe: {error}; no more rows were taken, and {kept}; to load without them, send \
             the output to /dev/null"
        )),
        other => other,
    }
}

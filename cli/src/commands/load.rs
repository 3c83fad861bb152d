//! `larch load`: rows from the standard input, written or removed as they come; the key of each is printed once that is safe.
//!
//! To remove rows, a line is a key. To write them, rows are what `import` would read into the table, without a header; a raw table gets what stands before and after the
//! first tab. A row that cannot be read ends the run, and so does an output that cannot be written: rows are not taken
//! from someone who cannot be told.

use crate::args::{Common, Load};
use crate::database;
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::layout::Row;
use crate::output::{Output, Printer};
use crate::rows::Rows;
use crate::schema::Format;

/// What a failure leaves.
const KEPT: &str = "rows whose keys were printed are kept";
const REMOVED: &str = "rows whose keys were printed are removed";

/// Runs the command.
pub fn run(common: &Common, args: &Load) -> Result<()> {
    let database = match args.delete {
        true => database::open_to_write(&args.dir, common)?,
        false => database::open_or_create(&args.dir, common)?,
    };
    let table = match args.delete {
        true => database::table(&database, &args.dir, &args.table)?,
        false => database::table_or_create(&database, &args.table, &args.types)?,
    };
    let layout = match args.delete {
        true => database::layout(&table, &args.types)?,
        false => database::layout_to_write(&table, &args.types)?,
    };
    let format = match layout.schema() {
        Some(schema) if !args.delete => schema.format,
        _ => Format::Tsv,
    };
    let kept = if args.delete { REMOVED } else { KEPT };
    let mut rows = Rows::new(Input::stdin(), format, false, kept)?;
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
                true => batch.remove(&table, &row.key),
                false => batch.insert_parts(&table, &row.key, &row.parts),
            }
            printer.key(&row.key, &mut keys);
        }
        // The rows before a bad one are good.
        if !batch.is_empty() {
            batch.commit().map_err(|error| Failure::Write { at: rows.place(), error, kept })?;
            output
                .write(|lines| lines.append(&mut keys))
                .and_then(|()| output.flush())
                .map_err(|failure| unheard(failure, kept))?;
        }
        if ended? {
            break;
        }
    }
    Ok(database.close()?)
}

/// A reader of keys that went away is not one that had enough.
fn unheard(failure: Failure, kept: &str) -> Failure {
    match failure {
        Failure::Output(error) => Failure::Input(format!(
            "cannot print which rows are safe: {error}; no more rows were taken, and {kept}; to load without them, send \
             the output to /dev/null"
        )),
        other => other,
    }
}

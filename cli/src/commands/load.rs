//! `larch load`: rows from the standard input, committed as they come; the key of each is printed once its row is safe.
//!
//! Rows are what `import` would read into the table, without a header; a raw table gets what stands before and after the
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

/// Runs the command.
pub fn run(common: &Common, args: &Load) -> Result<()> {
    let database = database::open_or_create(&args.dir, common)?;
    let table = database.table(&args.table)?;
    let layout = database::layout_to_write(&table)?;
    let format = layout.schema().map_or(Format::Tsv, |schema| schema.format);
    let mut rows = Rows::new(Input::stdin(), format, false, KEPT)?;
    let mut printer = Printer::new(&layout);
    let mut output = Output::new();
    let mut row = Row::default();
    let mut keys = Vec::new();
    loop {
        let mut batch = database.batch();
        let mut ended = Ok(false);
        for _ in 0..args.batch {
            ended = rows.next(&layout, &mut row).map(|more| !more);
            if !matches!(ended, Ok(false)) {
                break;
            }
            batch.insert_parts(&table, &row.key, &row.parts);
            printer.key(&row.key, &mut keys);
        }
        // The rows before a bad one are good.
        if !batch.is_empty() {
            batch.commit().map_err(|error| Failure::Write { at: rows.place(), error, kept: KEPT })?;
            output.write(|lines| lines.append(&mut keys)).and_then(|()| output.flush()).map_err(unheard)?;
        }
        if ended? {
            break;
        }
    }
    Ok(database.close()?)
}

/// A reader of keys that went away is not one that had enough.
fn unheard(failure: Failure) -> Failure {
    match failure {
        Failure::Output(error) => Failure::Input(format!(
            "cannot print which rows are safe: {error}; no more rows were taken, and {KEPT}; to load without them, send \
             the output to /dev/null"
        )),
        other => other,
    }
}

//! Makes a table and inserts its rows. Each batch is one transaction.

use crate::batch::Batch;
use crate::database::Database;
use crate::parameters::SetupParameters;
use harness::{Clock, Failure};
use std::sync::atomic::{AtomicBool, Ordering};

/// How a setup ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All rows were inserted.
    Loaded,
    /// The setup was stopped before all rows were inserted.
    Stopped,
}

/// Makes the table and inserts its rows. `say` receives the lines that ybio prints. After each hundredth of the
/// rows, it receives a line about the progress. `seed` decides the rows. With `compat`, the keys are the same as in
/// ybio.
///
/// # Errors
///
/// Returns the errors of the database.
pub fn setup(
    database: &dyn Database,
    parameters: &SetupParameters,
    compat: bool,
    seed: u64,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<Ended, Failure> {
    let form = parameters.form();
    for note in database.create(&form, parameters.recreate)? {
        say(&format!("NOTICE:  Table {}: {note}", form.name));
    }
    let (keys, count) = (parameters.keys(compat), parameters.batches());
    let all = (keys.end() - keys.start() + 1) as u64;
    say(&format!("NOTICE:  Inserting {all} rows in {count} batches of {}", parameters.batch_size));
    let mut loader = database.loader(&form, &parameters.orderby)?;
    let (clock, mut rows, mut shown) = (Clock::start(), 0, 0);
    for number in 1..=count {
        if stop.load(Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
        let batch = Batch::new(number, count, &keys, parameters.tab_rows as i64, seed);
        loader.insert(&batch)?;
        rows += batch.rows;
        let hundredth = 100 * number / count;
        if hundredth > shown {
            shown = hundredth;
            let seconds = (clock.nanos() as f64 / 1e9).max(1e-9);
            let (percent, rate) = (100.0 * rows as f64 / all as f64, rows as f64 / seconds);
            let name = &form.name;
            say(&format!("NOTICE:  Table {name} Progress: {percent:>8.2} % ({rows} rows) at {rate:>7.0} rows/s"));
        }
    }
    drop(loader);
    database.settle(&form.name)?;
    Ok(Ended::Loaded)
}

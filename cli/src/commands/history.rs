//! `larch history`: prints the values that a row had.

use super::diff::raw;
use super::retain::time;
use crate::args::{self, Common};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::output::{Output, Printer};
use serde::Serialize;
use serde_json::value::RawValue;

/// A value that the row had.
#[derive(Serialize)]
struct Listed {
    version: u64,
    /// When it was known to be there, in UTC. `None` if no time is known.
    time: Option<String>,
    /// `None` if the row was erased.
    row: Option<Box<RawValue>>,
    /// When the row expires, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

/// Runs the command.
pub fn run(common: &Common, args: &args::History) -> Result<()> {
    let database = database::open(&args.row.dir, common)?;
    let table = database::table(&database, &args.row.dir, &args.row.table)?;
    let layout = database::layout(&table, &args.row.types)?;
    let key = layout.key_from_text(args.row.key.as_encoded_bytes()).map_err(CommandFailure::Usage)?;
    let past = table.history(&key)?;
    if past.is_empty() {
        let (key, name) = (args.row.key.to_string_lossy(), &args.row.table);
        return Err(CommandFailure::NotFound(format!(
            "table {name} has no row with key {}, now or in the past that is retained",
            key.escape_debug()
        )));
    }
    let (mut output, mut printer) = (Output::new(), Printer::new(&layout));
    for value in past {
        let at = database.time_of(value.version).map(time);
        if args.json {
            let row = value.parts.as_ref().map(|parts| {
                let mut line = Vec::new();
                printer.json(&key, parts, &mut line);
                raw(&line)
            });
            output.json(&Listed {
                version: value.version.0,
                time: at,
                row: row.transpose()?,
                until: value.until.map(time),
            })?;
            continue;
        }
        output.write(|line| {
            line.extend_from_slice(format!("{}\t{}\t", value.version.0, at.as_deref().unwrap_or("-")).as_bytes());
            match &value.parts {
                Some(parts) => {
                    match value.until {
                        Some(until) => line.extend_from_slice(format!("put-until\t{}\t", time(until)).as_bytes()),
                        None => line.extend_from_slice(b"put\t"),
                    }
                    printer.value(parts, line);
                }
                None => match &value.failed {
                    Some(why) => {
                        line.extend_from_slice(b"failed\t");
                        crate::escape::escape(why.as_bytes(), line);
                        line.push(b'\n');
                    }
                    None => line.extend_from_slice(b"erase\n"),
                },
            }
        })?;
    }
    output.finish()
}

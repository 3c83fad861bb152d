//! `larch metrics`: opens a database and prints its counters, in the form in which any program can print those of a
//! database that it has open.

use crate::args::{self, Common};
use crate::database;
use crate::failure::Result;
use crate::output::Output;

/// Runs the command.
pub fn run(common: &Common, args: &args::Metrics) -> Result<()> {
    let metrics = database::open(&args.dir, common)?.metrics();
    let text = if args.prometheus { metrics.to_prometheus() } else { metrics.to_json() };
    let mut output = Output::new();
    output.line(text.trim_end())?;
    output.finish()
}

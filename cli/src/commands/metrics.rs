//! `larch metrics`: prints the counters of an open database, in the form in which a program can print its own
//! counters. This command opens the database itself.

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

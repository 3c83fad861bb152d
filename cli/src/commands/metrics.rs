//! `larch metrics`: what an open database counts about itself, in the form in which programs print it. The database
//! is opened by this command itself.

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

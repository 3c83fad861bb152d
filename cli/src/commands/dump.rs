//! `larch dump`: a file of a database as text.

use crate::args::Dump;
use crate::failure::Result;
use crate::output::Output;
use larch::DumpOptions;

/// Runs the command.
pub fn run(args: &Dump) -> Result<()> {
    let mut output = Output::new();
    let dumped = larch::dump(&args.file, DumpOptions { rows: args.rows }, &mut output);
    // What was shown before an error is often why one looks.
    output.finish()?;
    Ok(dumped?)
}

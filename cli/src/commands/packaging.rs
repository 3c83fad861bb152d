//! `larch completions` and `larch man`: what a package of `larch` installs beside the program. Both are made from the
//! definitions of the commands.

use crate::args::{self, Completions, Man};
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use std::io::Write as _;

/// Runs `larch completions`.
pub fn completions(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "larch", &mut script);
    let mut output = Output::new();
    output.write_all(&script).map_err(CommandFailure::Output)?;
    output.finish()
}

/// Runs `larch man`.
pub fn man(args: &Man) -> Result<()> {
    clap_mangen::generate_to(args::command(), &args.dir).map_err(|error| {
        CommandFailure::Input(format!(
            "{}: {error}; give an existing directory that can be written",
            args.dir.display()
        ))
    })
}

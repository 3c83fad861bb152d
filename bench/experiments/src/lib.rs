//! Experiments that others published about their engines, repeated on Larch: `larch bench experiment …`. They use the parts of
//! `suite` that its own commands use.

mod args;
mod sharing;

use std::process::ExitCode;

pub use args::Experiment;

/// Does what the command line says. The exit code is 0 if all was measured, and with `--check` the goals were reached, 1
/// if nothing was measured, rows were not what they should be or a goal was missed that is checked, 2 if what was asked for makes no sense, 3 if the database failed or
/// the result could not be written, 130 after ^C.
pub fn run(experiment: &Experiment) -> ExitCode {
    match experiment {
        Experiment::Sharing(args) => match sharing::run(args) {
            Ok(sharing::Ending::Interrupted) => ExitCode::from(130),
            Ok(sharing::Ending::Failed) => ExitCode::from(3),
            done => suite::ended(done.map(|ending| ending == sharing::Ending::Good)),
        },
    }
}

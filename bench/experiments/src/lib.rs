//! `larch bench experiment …`: experiments that others published about their engines, repeated on Larch with the
//! parts of `suite`.
//!
//! An experiment measures cells (`ground`). A *cell* is one measurement, of one side at one size in one repeat, and
//! is written to disk at once. An *arm* is one of the sides that an experiment compares. From its cells, an
//! experiment makes tables, charts and goals (`outcome`). `plan` predicts figures by arithmetic alone: `larch plan`
//! prints the predictions, and the experiment `scale` compares them with measurements.

mod args;
mod batch;
mod client;
mod databases;
mod disk_alone;
mod engines;
mod ground;
mod index;
mod made;
mod measured;
mod outcome;
mod page_size;
mod precharge;
mod scale;
mod sharing;
mod stats;
mod system;
mod terminals;

use outcome::Ending;
use std::process::ExitCode;

pub use args::Experiment;

/// The failure kind for rows that differ from what was written.
const WRONG: &str = "wrong";
/// The failure kind for runs that measured nothing.
const NOTHING: &str = "nothing";

/// Runs an experiment; TPC-C runs on the engines in `tpcc`. The exit code is 0 if everything was measured and, with
/// `--check`, the goals were reached; 1 if nothing was measured, rows were not as written, or a checked goal was
/// missed; 2 if the arguments make no sense; 3 if the database failed or the result could not be written; 130 after
/// ^C.
pub fn run(experiment: &Experiment, tpcc: &[tpcc::TpccScheme]) -> ExitCode {
    let done = match experiment {
        Experiment::Sharing(args) => sharing::run(args),
        Experiment::Batch(args) => batch::run(args),
        Experiment::Stats(args) => stats::run(args),
        Experiment::Databases(args) => databases::run(args),
        Experiment::Index(args) => index::run(args),
        Experiment::PageSize(args) => page_size::run(args),
        Experiment::IndexGets(gets) => gets.run().map(|()| Ending::Good),
        Experiment::Client(args) => client::run(args),
        Experiment::Engines(args) => engines::run(args, tpcc),
        Experiment::Precharge(args) => precharge::run(args),
        Experiment::Scale(args) => scale::run(args),
    };
    match done {
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Err(failure) if matches!(failure.kind, WRONG | NOTHING) => {
            suite::say(&format!("larch: {failure}"));
            ExitCode::FAILURE
        }
        done => suite::ended(done.map(|ending| ending == Ending::Good)),
    }
}

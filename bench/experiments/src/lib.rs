//! Experiments that others published about their engines, repeated on Larch: `larch bench experiment …`. The
//! experiments here use the same parts of `suite` as the commands of `suite` itself.
//!
//! An experiment measures cells (`ground`). A *cell* is one measurement: one side at one size in one repeat. It is
//! kept as soon as it is measured. An *arm* is one of the sides that an experiment compares. From the cells the
//! experiment makes tables, charts and goals (`outcome`). `plan` only calculates. The experiment `scale` compares
//! the results of `plan` with measurements, and `larch plan` prints these results.

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
pub mod plan;
mod precharge;
mod scale;
mod sharing;
mod stats;
mod system;
mod terminals;

use outcome::Ending;
use std::process::ExitCode;

pub use args::Experiment;

/// The kind of a failure in which rows differ from what was written.
const WRONG: &str = "wrong";
/// The kind of a failure in which nothing was measured.
const NOTHING: &str = "nothing";

/// Does what the command line says; TPC-C runs on `tpcc`. The exit code is 0 if everything was measured and, with
/// `--check`, the goals were reached. The exit code is 1 if nothing was measured, rows were not what they should
/// be, or a checked goal was missed. The exit code is 2 if the request makes no sense, 3 if the database failed or
/// the result could not be written, and 130 after ^C.
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

//! `larch bench experiment …`: experiments that others published about their engines, repeated on Larch with the
//! parts of `suite`; and `larch bench peers`, `cold`, `writes` and `transactions`, which compare Larch with other
//! engines; and `larch bench cache-trace`. The program of `cargo x bench index` has one more experiment.
//!
//! Each experiment is a module with its cells, how a cell is measured, and what its tables and goals say. The frame of
//! all of them is `experiment`: it goes through the cells, resumes an interrupted run, and writes the result (`outcome`)
//! into the experiment's directory (`ground`). A *cell* is one measurement, of one side at one size in one repeat. An
//! *arm* is one of the sides that an experiment compares.

#![cfg(feature = "suite")]

mod args;
mod batch;
pub mod cache;
mod client;
mod databases;
mod disk;
mod disk_alone;
mod engines;
pub mod experiment;
mod figures;
pub mod ground;
mod index;
mod made;
pub mod outcome;
mod page_size;
mod peers;
mod precharge;
mod quoted;
mod scale;
mod sharing;
mod stats;
mod terminals;
mod ycsb_run;

use experiment::run as experiment;
use std::process::ExitCode;

pub use args::{Command, ExperimentArgs, PeersCommand, Scale};

/// The failure kind for rows that differ from what was written.
const WRONG: &str = "wrong";
/// The failure kind for runs that measured nothing.
const NOTHING: &str = "nothing";

/// Runs an experiment; TPC-C runs on the engines in `tpcc`. The exit code is 0 if everything was measured and, with
/// `--check`, the goals were reached; 1 if nothing was measured, rows were not as written, or a checked goal was
/// missed; 2 if the arguments make no sense; 3 if the database failed or the result could not be written; 130 after
/// ^C.
pub fn run(command: &Command, tpcc: &[tpcc::TpccScheme]) -> ExitCode {
    let done = match command {
        Command::Sharing(args) => experiment(sharing::Sharing::of(args.common.scale, args.time), &args.common),
        Command::Batch(args) => experiment(batch::Batch::of(args.scale), args),
        Command::Stats(args) => experiment(stats::Stats::of(args.scale), args),
        Command::Databases(args) => experiment(databases::Databases::of(args.scale), args),
        Command::Index(args) => experiment(index::Index::of(args.common.scale, args.only), &args.common),
        Command::PageSize(args) => experiment(page_size::PageSize::of(args.scale), args),
        Command::IndexGets(gets) => gets.run().map(|()| true),
        Command::Client(args) => experiment(client::Client::of(args.scale), args),
        Command::Engines(args) => experiment(engines::Engines::of(args.scale, tpcc), args),
        Command::Precharge(args) => experiment(precharge::Precharge::of(args.scale), args),
        Command::Scale(args) => experiment(scale::MoreRows::of(args.scale), args),
    };
    ended(done)
}

/// Compares Larch with the engines in `schemes`. The exit codes are those of [`run`]; goals are always checked, and an
/// engine that failed is a missed goal, too.
pub fn compare(command: &PeersCommand, schemes: &[harness::Scheme]) -> ExitCode {
    let options = |common: &args::CommonArgs, quick| {
        let markdown = common.out.as_deref();
        markdown.map_or(Ok(()), |path| suite::results::check_one("--out", path)).map(|()| common.options(quick))
    };
    ended(match command {
        PeersCommand::Peers(args) => options(&args.common, args.quick)
            .and_then(|options| experiment(peers::Compared(peers::Memory::of(args, schemes)), &options)),
        PeersCommand::Cold(args) => options(&args.common, args.quick)
            .and_then(|options| experiment(peers::Compared(peers::Cold::of(args, schemes)), &options)),
        PeersCommand::Writes(args) => options(&args.common, args.quick)
            .and_then(|options| experiment(peers::Compared(peers::Writes::of(args, schemes)), &options)),
        PeersCommand::Transactions(args) => options(&args.common, args.quick)
            .and_then(|options| experiment(peers::Compared(peers::Transactions::of(args, schemes)), &options)),
        PeersCommand::Peer { target } => return peers::serve(target, schemes),
    })
}

fn ended(done: Result<bool, harness::Failure>) -> ExitCode {
    match done {
        Err(failure) if matches!(failure.kind, WRONG | NOTHING) => {
            suite::say(&format!("larch: {failure}"));
            ExitCode::FAILURE
        }
        done => suite::ended(done),
    }
}

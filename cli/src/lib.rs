//! The `larch` command: parses its arguments, runs the command that they name, and returns an exit code.
//!
//! `args` defines the command line, and the modules in `commands` carry it out. `input`, `rows` and `layout` turn
//! the text of rows into the bytes that a table stores, and `layout` and `output` turn these bytes into text.
//! `schema` defines what the rows of a table consist of, and `keys` defines how they are ordered.
//!
//! ^C stops long work cleanly (`interrupt`) in `import`, `build-files`, `ingest`, `compact`, `index create`, `index
//! check`, `check`, `repair`, `follow`, `compaction-worker` and the commands that make, read or restore copies.
//! After ^C, `bench` still prints what it has measured, and `shell` takes the next command. Every other command dies at
//! once. Even then the engine loses nothing, and no import is half done.
//!
//! `larch bench`, `larch sql` and databases in stores are cargo features, because what they need is heavy to build. A
//! binary without a feature has all commands: those that need the feature say how to build it
//! ([`CommandFailure::not_built`]).
//!
//! This is a library, so that a program can offer the same command with stores of its own under `larch bench`, and so
//! that tests can read the commands and their help.

#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "cloud")]
mod cloud;
#[cfg(not(feature = "cloud"))]
mod no_cloud;

#[cfg(feature = "sql")]
mod columnar;
#[cfg(not(feature = "sql"))]
mod no_columnar;

mod args;
mod colours;
mod commands;
mod compressed;
mod database;
mod demo_rows;
mod escape;
mod expiring;

mod failure;
mod file_name;
mod index_text;
mod input;
mod interrupt;
mod keys;
mod layout;
mod new_database;
mod new_file;
mod object;
mod output;
mod places;
mod portion;
mod progress;
mod rows;
mod schema;
mod settings;
mod size;
mod stdout_file;
mod storage;
mod stored;

pub use args::{arguments, command, parser};
#[cfg(feature = "bench")]
pub use bench::STORES;
pub use failure::CommandFailure;
#[cfg(feature = "bench")]
pub use suite::Stores;

#[cfg(not(feature = "cloud"))]
use no_cloud as cloud;
#[cfg(not(feature = "sql"))]
use no_columnar as columnar;

use args::{Command, IndexCommand};
use std::process::ExitCode;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    #[cfg(feature = "bench")]
    return main_with(STORES);
    #[cfg(not(feature = "bench"))]
    run(|_| CommandFailure::not_built("larch bench", "bench").report())
}

/// Does the same as [`main`], in a program in which `larch bench` measures these stores.
#[cfg(feature = "bench")]
pub fn main_with(stores: Stores<'_>) -> ExitCode {
    run(|args| bench::run(args, stores))
}

fn run(bench: impl FnOnce(args::Bench) -> ExitCode) -> ExitCode {
    os::process::report_files_too_large();
    #[cfg(feature = "cloud")]
    if let Err(failure) = cloud::read_prices() {
        return failure.report();
    }
    let ended = run_command(bench);
    #[cfg(feature = "cloud")]
    cloud::print_cost();
    ended
}

fn run_command(bench: impl FnOnce(args::Bench) -> ExitCode) -> ExitCode {
    let args::Cli { common, command } = match args::Cli::of_process() {
        Ok(cli) => cli,
        Err(failure) => return failure.report(),
    };
    let done = match command {
        Command::Import(args) => commands::import::run(&common, &args),
        Command::BuildFiles(args) => commands::build_files::run(&common, &args),
        Command::Ingest(args) => commands::ingest::run(&common, &args),
        Command::Get(args) => commands::point::get(&common, &args),
        Command::Put(args) => commands::point::put(&common, &args),
        Command::Merge(args) => commands::point::merge(&common, &args),
        Command::Load(args) => commands::load::run(&common, &args),
        Command::Delete(args) => commands::point::delete(&common, &args),
        Command::DeleteRange(args) => commands::scan::delete_range(&common, &args),
        Command::Export(args) => commands::export::run(&common, &args),
        Command::Count(args) => commands::count::run(&common, &args),
        Command::Scan(args) => commands::scan::run(&common, &args),
        Command::Nth(args) => commands::scan::nth(&common, &args),
        Command::Sample(args) => commands::scan::sample(&common, &args),
        Command::Warm(args) => commands::warm::run(&common, &args),
        Command::Tables(args) => commands::tables::run(&common, &args),
        Command::CreateTable(args) => commands::tables::create(&common, &args),
        Command::DropTable(args) => commands::tables::drop_table(&common, &args),
        Command::RenameTable(args) => commands::share::rename(&common, &args),
        Command::Sql(args) => commands::sql::run(&common, &args),
        Command::SqlScheduler(args) => commands::sql::scheduler(&common, &args),
        Command::SqlExecutor(args) => commands::sql::executor(&common, &args),
        Command::Stats(args) => commands::stats::run(&common, &args),
        Command::Metrics(args) => commands::metrics::run(&common, &args),
        Command::Explain(args) => commands::explain::run(&common, &args),
        Command::Split(args) => commands::split::run(&common, &args),
        Command::Compact(args) => commands::compact::run(&common, &args),
        Command::Alter(args) => commands::alter::run(&common, &args),
        Command::Clone(args) => commands::share::clone(&common, &args),
        Command::SplitOff(args) => commands::share::split_off(&common, &args),
        Command::Index(args) => match &args.what {
            IndexCommand::Create(args) => commands::index::create(&common, args),
            IndexCommand::Drop(args) => commands::index::drop_index(&common, args),
            IndexCommand::Check(args) => commands::index::check(&common, args),
            IndexCommand::List(args) => commands::index::list(&common, args),
        },
        Command::Check(args) => commands::check::run(&common, &args),
        Command::Repair(args) => commands::repair::run(&args),
        Command::Checkpoint(args) => commands::checkpoint::run(&common, &args),
        Command::Backup(args) => commands::backup::run(&common, &args),
        Command::Backups(args) => commands::backup::list(&args),
        Command::Keep(args) => commands::keep::keep(&common, &args),
        Command::Kept(args) => commands::keep::list(&common, &args),
        Command::Forget(args) => commands::keep::forget(&common, &args),
        Command::Retain(args) => commands::retain::run(&common, &args),
        Command::Subscribe(args) => commands::subscribe::subscribe(&common, &args),
        Command::Subscriptions(args) => commands::subscribe::list(&common, &args),
        Command::Unsubscribe(args) => commands::subscribe::unsubscribe(&common, &args),
        Command::History(args) => commands::history::run(&common, &args),
        Command::Changes(args) => commands::changes::run(&common, &args),
        Command::Diff(args) => commands::diff::diff(&common, &args),
        Command::Revert(args) => commands::diff::revert(&common, &args),
        Command::Replicate(args) => commands::replicate::run(&common, &args),
        Command::Restore(args) => commands::restore::run(&args),
        Command::VerifyBackup(args) => commands::verify_backup::run(&args),
        Command::CompactionWorker(args) => commands::compaction_worker::run(&common, &args),
        Command::Branch(args) => commands::branch::branch(&args),
        Command::Branches(args) => commands::branch::list(&args),
        Command::DropDatabase(args) => commands::branch::drop_database(&args),
        Command::Follow(args) => commands::follow::run(&common, &args),
        Command::Dump(args) => commands::dump::run(&common, &args),
        Command::Demo(args) => commands::demo::run(&common, &args),
        Command::Plan(args) => commands::plan::run(&common, &args),
        Command::Options => commands::options::run(&common),
        Command::Completions(args) => commands::packaging::completions(&args),
        Command::Man(args) => commands::packaging::man(&args),
        Command::Shell(args) => return commands::shell::run(&common, &args),
        Command::Bench(args) => return bench(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

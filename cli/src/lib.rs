//! The `larch` command: parses its arguments, runs the command that they name, and returns an exit code.
//!
//! `args` defines the command line, and the modules in `commands` carry it out. `input`, `rows` and `layout` turn
//! the text of rows into the bytes that a table stores, and `layout` and `output` turn these bytes into text.
//! `schema` defines what the rows of a table consist of, and `keys` defines how they are ordered.
//!
//! ^C stops long work cleanly (`interrupt`) in `import`, `build-files`, `ingest`, `compact`, `index create`, `index
//! check`, `check`, `repair`, `follow`, `compaction-worker` and the commands that make, read or restore copies.
//! After ^C, `bench` still prints what it has measured. Every other command dies at once. Even then the engine
//! loses nothing, and no import is half done.
//!
//! This is a library, so that another binary can offer the same command with more: more stores to measure, a query
//! engine, or databases in other places.

use harness::Scheme;
use std::process::ExitCode;
pub use suite::{KvClientCost, Stores};

mod args;
mod commands;
mod database;
mod demo_rows;
mod escape;

mod failure;
mod index_text;
mod input;
mod interrupt;
mod keys;
mod layout;
mod new_database;
mod object;
mod output;
mod places;
mod progress;
mod rows;
mod schema;
mod size;
mod storage;

pub use commands::branch::{BranchFound, Branched, Branching};
pub use commands::sql::{OpenBuilder, Query, RunQuery, SqlExecutor, SqlProcesses, SqlScheduler};
pub use failure::Failure;
pub use output::Output;

use args::{Command, IndexCommand, Measured};
pub use args::{QueryFormat, command};
pub use places::{MachineOf, Stored};

/// The stores whose build needs no other engine.
pub const SCHEMES: [Scheme; 3] = [store_larch::SCHEME, store_postgres::SCHEME, harness::noop::SCHEME];

/// The databases with row access whose build needs no other engine.
pub const ROW_ACCESS: [row_access::RowAccessScheme; 2] = [store_larch::ROW_ACCESS, store_postgres::ROW_ACCESS];

/// The databases of rows in partitions whose build needs no other engine.
pub const PARTITIONS: [kv::KvScheme; 3] = [store_larch::PARTITIONS, store_postgres::PARTITIONS, kv::noop::SCHEME];

/// The databases for TPC-C whose build needs no other engine.
pub const TPCC: [tpcc::TpccScheme; 5] = [
    store_larch::TPCC,
    store_postgres::TPCC,
    store_postgres::TPCC_COCKROACH,
    store_postgres::TPCC_YUGABYTE,
    tpcc::noop::SCHEME,
];

/// All stores above. `larch bench kv-client-cost` has nothing to compare here, because it needs a build with
/// Cassandra.
pub const STORES: Stores<'static> =
    Stores { key_value: &SCHEMES, row_access: &ROW_ACCESS, partitions: &PARTITIONS, tpcc: &TPCC, kv_client_cost: None };

/// What a binary adds to the default one.
#[derive(Clone, Copy, Default)]
pub struct Additions {
    /// The function behind `larch sql`: a query engine.
    pub query: Option<RunQuery>,
    /// The function behind `larch sql-scheduler` and `larch sql-executor`: a query engine in several processes.
    pub sql_processes: Option<SqlProcesses>,
    /// Resolves a place that is not a directory of this machine, such as a URL, to the machine whose disk holds the
    /// database or the backups.
    pub machine_of: Option<MachineOf>,
    /// The functions behind `larch branch`, `larch branches` and `larch drop-database`.
    pub branching: Option<Branching>,
}

/// Runs the command that the process was started with. `stores` are the stores that `larch bench` can measure.
pub fn main(stores: Stores<'_>) -> ExitCode {
    main_with(stores, Additions::default())
}

/// Like [`main`], for a binary with `additions`.
pub fn main_with(stores: Stores<'_>, additions: Additions) -> ExitCode {
    os::process::report_files_too_large();
    let Additions { query, sql_processes, machine_of, branching } = additions;
    if let Some(machine_of) = machine_of {
        places::set(machine_of);
    }
    let args::Cli { common, command } = args::Cli::of_process();
    let done = match command {
        Command::Import(args) => commands::import::run(&common, &args),
        Command::BuildFiles(args) => commands::build_files::run(&common, &args),
        Command::Ingest(args) => commands::ingest::run(&common, &args),
        Command::Get(args) => commands::point::get(&common, &args),
        Command::Put(args) => commands::point::put(&common, &args),
        Command::Load(args) => commands::load::run(&common, &args),
        Command::Delete(args) => commands::point::delete(&common, &args),
        Command::DeleteRange(args) => commands::scan::delete_range(&common, &args),
        Command::Scan(args) => commands::scan::run(&common, &args),
        Command::Nth(args) => commands::scan::nth(&common, &args),
        Command::Sample(args) => commands::scan::sample(&common, &args),
        Command::Warm(args) => commands::warm::run(&common, &args),
        Command::Tables(args) => commands::tables::run(&common, &args),
        Command::CreateTable(args) => commands::tables::create(&common, &args),
        Command::DropTable(args) => commands::tables::drop_table(&common, &args),
        Command::RenameTable(args) => commands::share::rename(&common, &args),
        Command::Sql(args) => commands::sql::run(&common, &args, query),
        Command::SqlScheduler(args) => commands::sql::scheduler(&common, &args, sql_processes),
        Command::SqlExecutor(args) => commands::sql::executor(&common, &args, sql_processes),
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
        Command::Restore(args) => commands::restore::run(&args),
        Command::VerifyBackup(args) => commands::verify_backup::run(&args),
        Command::CompactionWorker(args) => commands::compaction_worker::run(&common, &args),
        Command::Branch(args) => commands::branch::branch(&args, branching),
        Command::Branches(args) => commands::branch::list(&args, branching),
        Command::DropDatabase(args) => commands::branch::drop_database(&args, branching),
        Command::Follow(args) => commands::follow::run(&common, &args),
        Command::Dump(args) => commands::dump::run(&common, &args),
        Command::Demo(args) => commands::demo::run(&common, &args),
        Command::Plan(args) => commands::plan::run(&common, &args),
        Command::Bench(args) => match args.what {
            Measured::Stores(what) => return suite::run(&what, stores),
            Measured::CacheTrace(options) => return cache_trace::run(&options),
            Measured::Experiment(what) => return experiments::run(&what, stores.tpcc),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

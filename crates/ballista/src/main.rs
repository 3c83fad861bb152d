//! The command `larch` with a query engine that can run in several processes: `larch sql --scheduler`, `larch
//! sql-scheduler` and `larch sql-executor`.

use ballista_core::error::BallistaError;
use larch::Follow;
use larch_ballista::client::Cluster;
use larch_ballista::scheduler::Said;
use larch_ballista::{Databases, Work, executor, scheduler};
use larch_cli::{Additions, Failure, OpenBuilder, Output, Query, SqlExecutor, SqlProcesses, SqlScheduler};
use larch_datafusion::command;
use os::sync::Arc;
use std::future::Future;
use std::process::ExitCode;
use tokio::io::AsyncReadExt as _;

fn main() -> ExitCode {
    let additions = Additions {
        query: Some(run_query),
        sql_processes: Some(SqlProcesses { scheduler: run_scheduler, executor: run_executor }),
        ..Additions::default()
    };
    #[cfg(feature = "remote")]
    let additions = Additions { machine_of: Some(machine_of), ..additions };
    larch_cli::main_with(larch_cli::STORES, additions)
}

/// The machine for databases in a store, whose settings come from environment variables, as in `crates/remote`.
#[cfg(feature = "remote")]
fn machine_of(
    directory: &std::path::Path,
    what: larch_cli::Stored,
) -> Option<std::io::Result<larch::machine::Machine>> {
    let url = directory.to_str().filter(|text| larch_remote::is_url(text))?;
    let near = match what {
        larch_cli::Stored::Database => larch_remote::Near::of_environment(),
        larch_cli::Stored::Backups => Ok(larch_remote::Near::default()),
    };
    let connection = near.and_then(|near| larch_remote::Connection::of_url(url, &near));
    Some(connection.map(|connection| connection.machine))
}

fn run_query(query: &Query) -> Result<(), Failure> {
    let Some(scheduler) = &query.scheduler else { return command::run(query) };
    let directory = &query.directory;
    let Some(database) = directory.to_str() else {
        return Err(Failure::Usage(format!("{} is no text, so it cannot be sent; rename it", directory.display())));
    };
    // A relative path would mean another directory to processes that run elsewhere.
    let database = if database.contains("://") {
        database.to_owned()
    } else {
        let absolute = std::path::absolute(directory).map_err(|error| Failure::Input(error.to_string()))?;
        absolute.display().to_string()
    };
    command::run_on(query, Some(&Cluster::new(scheduler, &database)))
}

fn run_scheduler(options: &SqlScheduler) -> Result<(), Failure> {
    let SqlScheduler { listen, executors, stops_with_input, open } = options;
    let databases = databases(open);
    let say = |said| match said {
        Said::Listens(address) => println!("listening on {address}"),
        Said::Ready => println!("{executors} executors are ready"),
    };
    until_stopped(None, *stops_with_input, scheduler::serve(*listen, *executors, databases, say))
}

fn run_executor(options: &SqlExecutor) -> Result<(), Failure> {
    let SqlExecutor { scheduler, listen, port, threads, memory_bytes, stops_with_input, open } = options;
    let parent = std::env::temp_dir();
    let why = |error| {
        Failure::Input(format!(
            "cannot make a temporary directory in {}: {error}; set TMPDIR to another one",
            parent.display()
        ))
    };
    let work = Work::make(&parent).map_err(why)?;
    let threads = threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let databases = databases(open);
    let options = executor::Options {
        scheduler: scheduler.clone(),
        address: *listen,
        port: *port,
        threads,
        memory_bytes: *memory_bytes,
        work: work.rows(),
    };
    until_stopped(Some(threads), *stops_with_input, executor::serve(options, databases.clone()))?;
    let mut output = Output::new();
    for reads in databases.reads() {
        output.line(reads.to_string())?;
    }
    output.finish()
}

/// Databases, to be opened with the options of the command.
fn databases(open: &OpenBuilder) -> Arc<Databases> {
    let open = open.clone();
    Databases::new(Arc::new(move |place| {
        let in_words = |failure: Failure| datafusion::error::DataFusionError::Execution(failure.to_string());
        let builder = open(place.as_ref()).map_err(in_words)?.create(false).follow(Follow::Files);
        builder.open().map_err(|error| in_words(Failure::Engine(error)))
    }))
}

/// Runs `work` until it ends, ^C is pressed or, with `stops_with_input`, standard input ends.
fn until_stopped(
    threads: Option<usize>,
    stops_with_input: bool,
    work: impl Future<Output = Result<(), BallistaError>>,
) -> Result<(), Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        // One more thread sends and receives while the others work.
        runtime.worker_threads(threads + 1);
    }
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Input(format!("cannot start threads: {error}; try again")))?;
    let input_ends = async {
        if !stops_with_input {
            return std::future::pending().await;
        }
        let mut input = tokio::io::stdin();
        let mut bytes = [0; 64];
        while matches!(input.read(&mut bytes).await, Ok(1..)) {}
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = work => ended.map_err(|error| Failure::Input(format!("{error}; check addresses and ports"))),
            _ = tokio::signal::ctrl_c() => Ok(()),
            () = input_ends => Ok(()),
        }
    });
    runtime.shutdown_background();
    ended
}

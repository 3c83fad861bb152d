//! `larch sql-scheduler` and `larch sql-executor`, and the client of both: several processes answer a query.

use crate::args::{Common, SqlExecutor, SqlScheduler};
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use crate::places;
use ballista_core::error::BallistaError;
use larch::Follow;
use larch_ballista::client::Cluster;
use larch_ballista::scheduler::Said;
use larch_ballista::{Databases, Work, executor};
use larch_datafusion::Elsewhere;
use os::sync::Arc;
use std::future::Future;
use std::path::Path;
use tokio::io::AsyncReadExt as _;

/// The processes of the scheduler at `HOST:PORT`. They find the database at `place` as this process does.
pub fn cluster(scheduler: &str, place: &Path) -> Result<Box<dyn Elsewhere>> {
    let Some(database) = place.to_str() else {
        return Err(CommandFailure::Usage(format!("{} is no text, so it cannot be sent; rename it", place.display())));
    };
    // For a process that runs in another directory, a relative path would mean another directory.
    let database = if places::is_url(place) {
        database.to_owned()
    } else {
        let absolute = std::path::absolute(place).map_err(|error| CommandFailure::Input(error.to_string()))?;
        absolute.display().to_string()
    };
    Ok(Box::new(Cluster::new(scheduler, &database)))
}

/// Runs `larch sql-scheduler`.
pub fn scheduler(common: &Common, args: &SqlScheduler) -> Result<()> {
    let SqlScheduler { listen, executors, stop_with_input } = *args;
    let databases = databases(common);
    let say = |said| match said {
        Said::Listens(address) => println!("listening on {address}"),
        Said::Ready => println!("{executors} executors are ready"),
    };
    until_stopped(None, stop_with_input, larch_ballista::scheduler::serve(listen, executors, databases, say))
}

/// Runs `larch sql-executor`.
pub fn executor(common: &Common, args: &SqlExecutor) -> Result<()> {
    let SqlExecutor { ref scheduler, listen, port, threads, memory, stop_with_input } = *args;
    let Some((host, Ok(number))) = scheduler.rsplit_once(':').map(|(host, port)| (host, port.parse())) else {
        return Err(CommandFailure::Usage(format!("the scheduler is at HOST:PORT, and not at {scheduler}")));
    };
    let parent = std::env::temp_dir();
    let why = |error| {
        CommandFailure::Input(format!(
            "cannot make a temporary directory in {}: {error}; set TMPDIR to another one",
            parent.display()
        ))
    };
    let work = Work::make(&parent).map_err(why)?;
    let threads = threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let databases = databases(common);
    let options = executor::Options {
        scheduler: (host.to_owned(), number),
        address: listen,
        port,
        threads,
        memory_bytes: memory,
        work: work.rows(),
    };
    until_stopped(Some(threads), stop_with_input, executor::serve(options, databases.clone()))?;
    let mut output = Output::new();
    for reads in databases.reads() {
        output.line(reads.to_string())?;
    }
    output.finish()
}

/// Databases that are opened with the options of the command.
fn databases(common: &Common) -> Arc<Databases> {
    let common = common.clone();
    Databases::new(Arc::new(move |place| {
        let in_words = |failure: CommandFailure| datafusion::error::DataFusionError::Execution(failure.to_string());
        let builder = common.builder(place.as_ref()).map_err(in_words)?.create(false).follow(Follow::Files);
        builder.open().map_err(|error| in_words(CommandFailure::Engine(error)))
    }))
}

/// Runs `work` until it fails or ^C is pressed. If `stops_with_input` is true, the end of standard input also ends
/// the work.
fn until_stopped(
    threads: Option<usize>,
    stops_with_input: bool,
    work: impl Future<Output = Result<(), BallistaError>>,
) -> Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        // One more thread sends and receives while the others work.
        runtime.worker_threads(threads + 1);
    }
    let runtime = runtime.enable_all().build();
    let runtime =
        runtime.map_err(|error| CommandFailure::Input(format!("cannot start threads: {error}; try again")))?;
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
            ended = work => ended.map_err(|error| CommandFailure::Input(format!("{error}; check addresses and ports"))),
            _ = tokio::signal::ctrl_c() => Ok(()),
            () = input_ends => Ok(()),
        }
    });
    runtime.shutdown_background();
    ended
}

//! `larch sql` passes statements to a query engine. `larch sql-scheduler` and `larch sql-executor` run the
//! processes that answer a query together. The binary supplies the engine; that of the default workspace has none.
//! This module knows no SQL.

use crate::args::{self, Common, QueryFormat, Sql};
use crate::database;
use crate::failure::{Failure, Result};
use crate::layout::columns;
use larch::{Builder, Database, Follow, Table};
use os::{Access, FileReader, Machine};
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A request to a query engine.
#[derive(Debug)]
pub struct Query {
    /// The database, opened to be read.
    pub database: Database,
    /// The directory of the database, for messages.
    pub directory: PathBuf,
    /// Statements with a `;` between them.
    pub statements: String,
    /// How rows are printed.
    pub format: QueryFormat,
    /// Memory for the engine's work, in bytes.
    pub memory_bytes: u64,
    /// How many threads work on a query, or `None` for one thread for each processor.
    pub threads: Option<u16>,
    /// The process that distributes the query to other processes, as `HOST:PORT`, or `None` if this process itself
    /// answers the query.
    pub scheduler: Option<String>,
}

/// A function that answers a query and prints the answer to standard output.
pub type RunQuery = fn(&Query) -> Result<()>;

/// Returns a builder that opens the database at a place with the options of the command. The place may also be in a
/// store.
pub type OpenBuilder = Arc<dyn Fn(&Path) -> Result<Builder> + Send + Sync>;

/// The functions of the processes that answer queries together.
#[derive(Clone, Copy, Debug)]
pub struct SqlProcesses {
    /// What `larch sql-scheduler` runs.
    pub scheduler: fn(&SqlScheduler) -> Result<()>,
    /// What `larch sql-executor` runs.
    pub executor: fn(&SqlExecutor) -> Result<()>,
}

/// The options of a process that divides queries into tasks.
pub struct SqlScheduler {
    /// The address at which the scheduler receives queries and executors.
    pub listen: SocketAddr,
    /// Once this many executors have joined, the scheduler prints a message.
    pub executors: usize,
    /// Whether the scheduler ends when its standard input ends.
    pub stops_with_input: bool,
    /// Opens the databases of queries.
    pub open: OpenBuilder,
}

/// The options of a process that runs tasks of queries.
pub struct SqlExecutor {
    /// Host and port of the scheduler.
    pub scheduler: (String, u16),
    /// The address at which other processes reach the executor.
    pub listen: IpAddr,
    /// The port for rows. The next port is for tasks. `None` for any two free ports.
    pub port: Option<u16>,
    /// How many partitions the executor works on at the same time, or `None` for one for each processor.
    pub threads: Option<u16>,
    /// Memory for the engine's work, in bytes.
    pub memory_bytes: u64,
    /// Whether the executor ends when its standard input ends.
    pub stops_with_input: bool,
    /// Opens the databases of queries.
    pub open: OpenBuilder,
}

impl Query {
    /// The columns of a table in the language of `docs/guide/sql.md`, or `None` if the table has no description of
    /// its columns, as `larch import` stores it.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Input`] if the description of the table is damaged.
    pub fn columns_of(&self, table: &Table) -> Result<Option<String>> {
        Ok(database::schema(table)?.map(|schema| columns::declared(&schema)))
    }
}

/// Runs the command.
pub fn run(common: &Common, args: &Sql, run: Option<RunQuery>) -> Result<()> {
    let Some(run) = run else {
        return Err(Failure::Usage("this binary has no query engine: run it with cargo x sql DIR …".to_owned()));
    };
    let mut statements = args.file.as_deref().map_or_else(|| Ok(String::new()), read)?;
    if let Some(text) = &args.statements {
        if !statements.trim_end().is_empty() && !statements.trim_end().ends_with(';') {
            statements.push_str(";\n");
        }
        statements.push_str(text);
    }
    let builder = common.builder(&args.dir)?.create(false);
    let builder = match (&args.scheduler, common.follow) {
        (Some(_), true) => {
            let why = "several processes answer with the rows that are in files; leave --follow or --scheduler out";
            return Err(Failure::Usage(why.to_owned()));
        }
        (Some(_), false) => builder.follow(Follow::Files),
        (None, true) => builder.follow(Follow::Commits),
        (None, false) => builder.read_only(true),
    };
    let database = builder.open()?;
    let directory = args.dir.clone();
    let Sql { format, memory, threads, ref scheduler, .. } = *args;
    run(&Query { database, directory, statements, format, memory_bytes: memory, threads, scheduler: scheduler.clone() })
}

/// Runs `larch sql-scheduler`.
pub fn scheduler(common: &Common, args: &args::SqlScheduler, processes: Option<SqlProcesses>) -> Result<()> {
    let processes = processes.ok_or_else(no_processes)?;
    let args::SqlScheduler { listen, executors, stop_with_input } = *args;
    let open = open(common);
    (processes.scheduler)(&SqlScheduler { listen, executors, stops_with_input: stop_with_input, open })
}

/// Runs `larch sql-executor`.
pub fn executor(common: &Common, args: &args::SqlExecutor, processes: Option<SqlProcesses>) -> Result<()> {
    let processes = processes.ok_or_else(no_processes)?;
    let args::SqlExecutor { ref scheduler, listen, port, threads, memory, stop_with_input } = *args;
    let Some((host, Ok(number))) = scheduler.rsplit_once(':').map(|(host, port)| (host, port.parse())) else {
        return Err(Failure::Usage(format!("the scheduler is at HOST:PORT, and not at {scheduler}")));
    };
    (processes.executor)(&SqlExecutor {
        scheduler: (host.to_owned(), number),
        listen,
        port,
        threads,
        memory_bytes: memory,
        stops_with_input: stop_with_input,
        open: open(common),
    })
}

fn no_processes() -> Failure {
    Failure::Usage("this binary answers no queries of others: run it with cargo x sql --ballista …".to_owned())
}

fn open(common: &Common) -> OpenBuilder {
    let common = common.clone();
    Arc::new(move |dir| common.builder(dir))
}

/// The text of a file with statements.
fn read(file: &Path) -> Result<String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().read_to_string(&mut text)
    } else {
        let file = Machine::real().disk.open(file, Access::Read);
        file.and_then(|file| FileReader::new(file).read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::Input(format!("--file {}: {error}; give a file of statements", file.display()))),
    }
}

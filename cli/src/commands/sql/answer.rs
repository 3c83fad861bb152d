//! `larch sql`: runs statements on the tables of a database, here or in other processes, and prints rows as they
//! come.

use super::as_of::{self, AsOf, table_at};
use crate::args::{At, Common, QueryFormat, Sql};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::TableProvider;
use datafusion::common::{SchemaError, TableReference};
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry as _;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParser, Statement};
use futures::{Stream, StreamExt, stream};
use larch::{Database, Follow, Snapshot};
use larch_datafusion::{
    BadColumns, BadRow, BuiltFormat, Elsewhere, FORMAT, LarchFactory, LarchTable, MergeJoinFilters, Minus, Unwritable,
    mark_minus,
};
use os::{Access, FileReader, Machine};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many times all statements are begun, always with the newest rows, and how many times a query is sent if other
/// processes are lost.
const ATTEMPTS: u32 = 5;

/// What is asked, of what.
struct Query {
    /// The database, opened to be read.
    database: Database,
    /// The directory of the database, for messages.
    directory: PathBuf,
    /// The version that is read.
    at: At,
    /// Statements with a `;` between them.
    statements: String,
    /// How rows are printed.
    format: QueryFormat,
    /// Memory for the engine's work, in bytes.
    memory_bytes: u64,
    /// How many threads work on a query, or `None` for one thread for each processor.
    threads: Option<u16>,
}

/// Runs the command.
pub fn run(common: &Common, args: &Sql) -> Result<()> {
    let mut statements = args.file.as_deref().map_or_else(|| Ok(String::new()), read)?;
    if let Some(text) = &args.statements {
        if !statements.trim_end().is_empty() && !statements.trim_end().ends_with(';') {
            statements.push_str(";\n");
        }
        statements.push_str(text);
    }
    let elsewhere = args.scheduler.as_deref().map(|scheduler| elsewhere(scheduler, &args.dir)).transpose()?;
    let builder = common.builder(&args.dir)?.create(false);
    let builder = match (&args.scheduler, common.follow) {
        (Some(_), true) => {
            let why = "several processes answer with the rows that are in files; leave --follow or --scheduler out";
            return Err(CommandFailure::Usage(why.to_owned()));
        }
        (Some(_), false) => builder.follow(Follow::Files),
        (None, _) if common.read_only => builder.read_only(true),
        (None, _) => builder.follow(Follow::Commits),
    };
    let database = builder.open()?;
    let directory = args.dir.clone();
    let Sql { format, memory, threads, .. } = *args;
    let at = args.at.clone();
    let query = Query { database, directory, at, statements, format, memory_bytes: memory, threads };
    run_on(&query, elsewhere.as_deref())
}

/// The processes of a scheduler. They answer about the database at `place`.
#[cfg(feature = "cluster")]
fn elsewhere(scheduler: &str, place: &Path) -> Result<Box<dyn Elsewhere>> {
    super::processes::cluster(scheduler, place)
}

/// The failure of a binary that answers queries alone.
#[cfg(not(feature = "cluster"))]
fn elsewhere(_: &str, _: &Path) -> Result<Box<dyn Elsewhere>> {
    Err(CommandFailure::not_built("larch sql --scheduler", "cluster"))
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
        Err(error) => {
            Err(CommandFailure::Input(format!("--file {}: {error}; give a file of statements", file.display())))
        }
    }
}

/// Runs all statements of a query. If `elsewhere` is given, other processes answer them.
fn run_on(query: &Query, elsewhere: Option<&dyn Elsewhere>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = with_threads(runtime, query.threads).enable_all().build();
    let runtime = runtime
        .map_err(|error| CommandFailure::Input(format!("cannot start the threads of the query: {error}; try again")))?;
    let mut output = Output::new();
    for _ in 0..ATTEMPTS {
        match runtime.block_on(answer(query, elsewhere, &mut output)) {
            Err(Stopped::Early) => query.database.catch_up()?,
            Err(Stopped::Failed(failure)) => return Err(failure),
            Ok(()) => return output.finish(),
        };
    }
    Err(CommandFailure::Input("the processes that answer queries show other rows each time; try again".to_owned()))
}

/// Why statements ended early.
enum Stopped {
    /// The other processes show a newer version, and no row was printed yet, so the statements can be begun again.
    Early,
    Failed(CommandFailure),
}

impl From<CommandFailure> for Stopped {
    fn from(failure: CommandFailure) -> Self {
        Self::Failed(failure)
    }
}

fn with_threads(mut runtime: tokio::runtime::Builder, threads: Option<u16>) -> tokio::runtime::Builder {
    if let Some(threads) = threads {
        runtime.worker_threads(threads.into());
    }
    runtime
}

async fn answer(query: &Query, elsewhere: Option<&dyn Elsewhere>, output: &mut Output) -> Result<(), Stopped> {
    let snapshot = database::snapshot(&query.database, &query.at)?;
    let context = context(query, &snapshot, elsewhere)?;
    let statements = DFParser::parse_sql(&query.statements).map_err(failure)?;
    let mut has_printed = false;
    for mut statement in statements {
        if elsewhere.is_some() && matches!(statement, Statement::CopyTo(_)) {
            let why = "one process alone writes the rows of a query; leave --scheduler out for COPY";
            return Err(CommandFailure::Usage(why.to_owned()).into());
        }
        mark_minus(&mut statement);
        let refused = |error: DataFusionError| refused(&context, query, &statement, error);
        let plan = context.state().statement_to_plan(statement.clone()).await.map_err(refused)?;
        check_reads(&plan, elsewhere.is_some())?;
        let answer = context.execute_logical_plan(plan).await.map_err(refused)?;
        if !answer.schema().fields().is_empty() {
            let mut attempts = ATTEMPTS;
            let (first, rows) = loop {
                let mut rows = answer.clone().execute_stream().await.map_err(failure)?;
                let error = match rows.next().await.transpose() {
                    Ok(first) => break (first, rows),
                    Err(error) => error,
                };
                let Some(others) = elsewhere else { return Err(failure(error).into()) };
                // All statements must see the same version, so they can only be begun again if no row was printed.
                if !has_printed && others.have_moved_on(&error) {
                    return Err(Stopped::Early);
                }
                let is_lost = others.have_lost_one(&error);
                attempts -= 1;
                if is_lost && attempts > 0 {
                    continue;
                }
                let why = "the processes that answer queries were lost while they did so, or there is none; see that some run, \
                    and ask again";
                let words = if is_lost { Some(why.to_owned()) } else { others.words_of(&error) };
                return Err(Stopped::Failed(words.map_or_else(|| failure(error), CommandFailure::Input)));
            };
            has_printed = true;
            let schema = rows.schema();
            print(schema, stream::iter(first.map(Ok)).chain(rows), query.format, output).await?;
        }
    }
    Ok(())
}

/// Refuses a plan that would change rows of the database. A table that an earlier statement made is not one of the
/// database, and may be changed, but not by other processes.
fn check_reads(plan: &LogicalPlan, is_elsewhere: bool) -> Result<()> {
    let LogicalPlan::Dml(change) = plan else { return Ok(()) };
    if !is_elsewhere && !source_as_provider(&change.target).map_err(failure)?.is::<LarchTable>() {
        return Ok(());
    }
    let why = "no statement writes to a database: write rows with larch put, larch import or larch load, delete them with \
        larch delete, and bring the rows of a query into a table with COPY and larch ingest (docs/guide/sql.md)";
    Err(CommandFailure::Usage(why.to_owned()))
}

/// A session with all tables of the database.
fn context(query: &Query, snapshot: &Snapshot, elsewhere: Option<&dyn Elsewhere>) -> Result<SessionContext> {
    let provide = match elsewhere {
        Some(elsewhere) => elsewhere.provide(),
        None => Arc::new(|table: LarchTable| Arc::new(table) as Arc<dyn TableProvider>),
    };
    let factory = LarchFactory::with(&query.database, snapshot, provide.clone());
    let mut config = SessionConfig::new().with_information_schema(true);
    if let Some(threads) = query.threads {
        config = config.with_target_partitions(threads.into());
    }
    let memory = usize::try_from(query.memory_bytes).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory)));
    let mut state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(runtime.build_arc().map_err(failure)?)
        .with_table_factory(FORMAT.to_owned(), Arc::new(factory))
        .with_physical_optimizer_rule(Arc::new(MergeJoinFilters))
        .build();
    state.register_file_format(Arc::new(BuiltFormat), true).map_err(failure)?;
    state.register_expr_planner(Arc::new(Minus)).map_err(failure)?;
    let state = match elsewhere {
        Some(elsewhere) => elsewhere.session(state).map_err(failure)?,
        None => state,
    };
    let context = SessionContext::new_with_state(state);
    for name in query.database.tables() {
        let Some(table) = query.database.existing_table(&name)? else { continue };
        let table = table_at(snapshot, &table)?;
        context.register_table(TableReference::bare(name), provide(table)).map_err(failure)?;
    }
    if elsewhere.is_none() {
        let (database, directory) = (query.database.clone(), query.directory.clone());
        context.register_udtf(as_of::NAME, Arc::new(AsOf { database, directory }));
    }
    Ok(context)
}

/// The error about a refused statement. A missing table is reported in the words of the other commands of `larch`.
/// Since a name in a statement may also be that of a function, or of a table that the statement makes, only
/// DataFusion's own error tells whether a table is missing.
fn refused(context: &SessionContext, query: &Query, statement: &Statement, error: DataFusionError) -> CommandFailure {
    let state = context.state();
    let words = error.find_root().strip_backtrace();
    let catalog = &state.config_options().catalog;
    for table in state.resolve_table_references(statement).unwrap_or_default() {
        let whole = table.clone().resolve(&catalog.default_catalog, &catalog.default_schema);
        let is_named = words.contains(&format!("table '{table}'")) || words.contains(&format!("table '{whole}'"));
        let is_ours = table.schema().is_none();
        if is_named && is_ours && !context.table_exist(table.clone()).unwrap_or(true) {
            let names = query.database.tables();
            let others =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            let directory = query.directory.display();
            return CommandFailure::NotFound(format!(
                "no table {} in {directory}; {others} (in SQL a name with capital letters stands in double quotes)",
                table.table()
            ));
        }
    }
    failure(error)
}

/// Prints the rows of an answer.
async fn print(
    schema: SchemaRef,
    mut rows: impl Stream<Item = datafusion::error::Result<RecordBatch>> + Unpin,
    format: QueryFormat,
    output: &mut Output,
) -> Result<()> {
    if format == QueryFormat::Table {
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            batches.push(batch.map_err(failure)?);
        }
        batches.push(RecordBatch::new_empty(schema));
        return output.line(pretty_format_batches(&batches).map_err(unprintable)?.to_string());
    }
    let mut with_header = WriterBuilder::new().with_header(true);
    if format == QueryFormat::Csv {
        // The header is printed even if there are no rows.
        let mut writer = std::mem::take(&mut with_header).build(&mut *output);
        writer.write(&RecordBatch::new_empty(schema)).map_err(unprintable)?;
        with_header = WriterBuilder::new().with_header(false);
    }
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failure)?;
        match format {
            QueryFormat::Csv => with_header.clone().build(&mut *output).write(&batch).map_err(unprintable)?,
            QueryFormat::Jsonl | QueryFormat::Table => {
                let mut writer = LineDelimitedWriter::new(&mut *output);
                writer.write(&batch).and_then(|()| writer.finish()).map_err(unprintable)?;
            }
        }
    }
    Ok(())
}

/// The failure to print an answer.
fn unprintable(error: ArrowError) -> CommandFailure {
    match error {
        ArrowError::IoError(_, error) => CommandFailure::Output(error),
        other => CommandFailure::Input(format!("the rows cannot be printed: {other}; choose another --format")),
    }
}

/// Turns an error of DataFusion into a failure with the words and the exit code of other commands.
fn failure(error: DataFusionError) -> CommandFailure {
    let root = error.find_root();
    if let DataFusionError::External(external) = root {
        if let Some(error) = external.downcast_ref::<larch::Error>() {
            return CommandFailure::Engine(error.clone());
        }
        if let Some(bad) = external.downcast_ref::<BadRow>() {
            return CommandFailure::Input(bad.to_string());
        }
        if let Some(bad) = external.downcast_ref::<Unwritable>() {
            return CommandFailure::Input(bad.to_string());
        }
        if let Some(bad) = external.downcast_ref::<BadColumns>() {
            return CommandFailure::Usage(bad.to_string());
        }
    }
    match root {
        DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::NotImplemented(_) => {
            CommandFailure::Usage(format!("{}; correct the statement", root.strip_backtrace()))
        }
        DataFusionError::SchemaError(kind, _) => match &**kind {
            SchemaError::FieldNotFound { .. } => CommandFailure::Usage(root.strip_backtrace()),
            _ => CommandFailure::Usage(format!("{}; correct the statement", root.strip_backtrace())),
        },
        DataFusionError::ResourcesExhausted(_) => {
            CommandFailure::Input(format!("{}; give the query more with --memory", root.strip_backtrace()))
        }
        _ => CommandFailure::Input(root.strip_backtrace()),
    }
}

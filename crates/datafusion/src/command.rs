//! `larch sql`: runs statements on the tables of a database, here or in other processes, and prints rows as they
//! come.

use crate::minus::{self, Minus};
use crate::{BadColumns, BadRow, BuiltFormat, FORMAT, LarchFactory, LarchTable, MergeJoinFilters, Provide, Unwritable};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::TableProvider;
use datafusion::common::{SchemaError, TableReference};
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry as _;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParser, Statement};
use futures::{Stream, StreamExt, stream};
use larch::Snapshot;
use larch_cli::{Failure, Output, Query, QueryFormat};
use std::sync::Arc;

/// How many times all statements are begun, always with the newest rows, and how many times a query is sent if other
/// processes are lost.
const ATTEMPTS: u32 = 5;

/// Other processes that answer queries.
pub trait Elsewhere {
    /// Returns the function that makes the table provider for each table in the session.
    fn provide(&self) -> Provide;

    /// A session whose queries the other processes answer.
    ///
    /// # Errors
    ///
    /// Fails if the other processes cannot be asked.
    fn session(&self, here: SessionState) -> datafusion::error::Result<SessionState>;

    /// Whether a query failed because the other processes no longer show the version that this process sees.
    fn have_moved_on(&self, error: &DataFusionError) -> bool;

    /// Whether a query failed because one of the processes was lost. It has returned no wrong rows, and may succeed
    /// if it is sent again.
    fn have_lost_one(&self, error: &DataFusionError) -> bool;

    /// What the other processes say about a row or a database that they cannot read, without the text that Ballista
    /// adds.
    fn words_of(&self, error: &DataFusionError) -> Option<String>;
}

/// Runs the statements of an SQL text one after the other, all in this process.
///
/// # Errors
///
/// Fails if a statement is wrong or cannot be carried out, or if its answer cannot be printed.
pub fn run(query: &Query) -> Result<(), Failure> {
    if query.scheduler.is_some() {
        let why =
            "this binary answers queries alone: leave --scheduler out, or run it with cargo x sql --ballista sql …";
        return Err(Failure::Usage(why.to_owned()));
    }
    run_on(query, None)
}

/// Runs all statements of a query, in other processes if `elsewhere` is given.
///
/// # Errors
///
/// Returns the errors of [`run`], or an error if the other processes cannot be reached.
pub fn run_on(query: &Query, elsewhere: Option<&dyn Elsewhere>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = with_threads(runtime, query.threads).enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Input(format!("cannot start the threads of the query: {error}; try again")))?;
    let mut output = Output::new();
    for _ in 0..ATTEMPTS {
        match runtime.block_on(answer(query, elsewhere, &mut output)) {
            Err(Stopped::Early) => query.database.catch_up()?,
            Err(Stopped::Failed(failure)) => return Err(failure),
            Ok(()) => return output.finish(),
        };
    }
    Err(Failure::Input("the processes that answer queries show other rows each time; try again".to_owned()))
}

/// Why statements ended early.
enum Stopped {
    /// The other processes show a newer version, and no row was printed yet, so the statements can be begun again.
    Early,
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
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
    let snapshot = query.database.snapshot();
    let context = context(query, &snapshot, elsewhere)?;
    let statements = DFParser::parse_sql(&query.statements).map_err(failure)?;
    let mut has_printed = false;
    for mut statement in statements {
        if elsewhere.is_some() && matches!(statement, Statement::CopyTo(_)) {
            let why = "one process alone writes the rows of a query; leave --scheduler out for COPY";
            return Err(Failure::Usage(why.to_owned()).into());
        }
        minus::mark(&mut statement);
        let refused = |error: DataFusionError| refused(&context, query, &statement, error);
        let plan = context.state().statement_to_plan(statement.clone()).await.map_err(refused)?;
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
                return Err(Stopped::Failed(words.map_or_else(|| failure(error), Failure::Input)));
            };
            has_printed = true;
            let schema = rows.schema();
            print(schema, stream::iter(first.map(Ok)).chain(rows), query.format, output).await?;
        }
    }
    Ok(())
}

/// A session with all tables of the database.
fn context(query: &Query, snapshot: &Snapshot, elsewhere: Option<&dyn Elsewhere>) -> Result<SessionContext, Failure> {
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
        let table = match query.columns_of(&table)? {
            None => LarchTable::of(snapshot, &table),
            Some(columns) => {
                let of_import = |bad: BadColumns| Failure::Input(format!("table {name}: {bad}"));
                LarchTable::new(snapshot, &table, columns.parse().map_err(of_import)?).map_err(of_import)?
            }
        };
        context.register_table(TableReference::bare(name), provide(table)).map_err(failure)?;
    }
    Ok(context)
}

/// The error about a refused statement. A missing table is reported in the words of the other commands of `larch`.
/// Since a name in a statement may also be that of a function, or of a table that the statement makes, only
/// DataFusion's own error tells whether a table is missing.
fn refused(context: &SessionContext, query: &Query, statement: &Statement, error: DataFusionError) -> Failure {
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
            return Failure::NotFound(format!(
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
) -> Result<(), Failure> {
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
fn unprintable(error: ArrowError) -> Failure {
    match error {
        ArrowError::IoError(_, error) => Failure::Output(error),
        other => Failure::Input(format!("the rows cannot be printed: {other}; choose another --format")),
    }
}

/// Turns an error of DataFusion into a failure with the words and the exit code of other commands.
fn failure(error: DataFusionError) -> Failure {
    let root = error.find_root();
    if let DataFusionError::External(external) = root {
        if let Some(error) = external.downcast_ref::<larch::Error>() {
            return Failure::Engine(error.clone());
        }
        if let Some(bad) = external.downcast_ref::<BadRow>() {
            return Failure::Input(bad.to_string());
        }
        if let Some(bad) = external.downcast_ref::<Unwritable>() {
            return Failure::Input(bad.to_string());
        }
        if let Some(bad) = external.downcast_ref::<BadColumns>() {
            return Failure::Usage(bad.to_string());
        }
    }
    match root {
        DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::NotImplemented(_) => {
            Failure::Usage(format!("{}; correct the statement", root.strip_backtrace()))
        }
        DataFusionError::SchemaError(kind, _) => match &**kind {
            SchemaError::FieldNotFound { .. } => Failure::Usage(root.strip_backtrace()),
            _ => Failure::Usage(format!("{}; correct the statement", root.strip_backtrace())),
        },
        DataFusionError::ResourcesExhausted(_) => {
            Failure::Input(format!("{}; give the query more with --memory", root.strip_backtrace()))
        }
        _ => Failure::Input(root.strip_backtrace()),
    }
}

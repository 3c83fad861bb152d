//! Sessions with tables of Larch, whose answers are text.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use larch::{Database, Table};
use larch_datafusion::{FORMAT, LarchFactory, LarchTable};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A session and the runtime that runs it.
pub struct Session {
    pub context: SessionContext,
    pub runtime: Runtime,
}

impl Session {
    /// A session with this many partitions, and this many rows in a batch.
    pub fn new(partitions: usize, batch_rows: usize) -> Self {
        Self::of(SessionStateBuilder::new().with_config(config(partitions, batch_rows)))
    }

    /// A session in which `STORED AS LARCH` makes the tables of a database available.
    pub fn with_factory(database: &Database) -> Self {
        let factory = LarchFactory::new(database, &database.snapshot());
        let state = SessionStateBuilder::new().with_config(config(2, 1000));
        Self::of(state.with_table_factory(FORMAT.to_owned(), Arc::new(factory)))
    }

    /// A session that is built from this state, with the default features added.
    pub fn of(state: SessionStateBuilder) -> Self {
        Self::of_state(state.with_default_features().build())
    }

    /// A session from a state that has all its features already.
    pub fn of_state(state: SessionState) -> Self {
        Self { context: SessionContext::new_with_state(state), runtime: Runtime::new().expect("threads") }
    }

    /// Registers a table under `name`, with the columns `columns` and the rows that it has now.
    pub fn add(&self, name: &str, database: &Database, table: &Table, columns: &str) -> &Self {
        let columns = columns.parse().unwrap_or_else(|bad| panic!("{columns}: {bad}"));
        let table = LarchTable::new(&database.snapshot(), table, columns).expect("the columns fit");
        self.context.register_table(name, Arc::new(table)).expect("the name is free");
        self
    }

    /// The batches of an answer.
    pub fn batches(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.runtime.block_on(async { self.context.sql(sql).await?.collect().await })
    }

    /// The rows of an answer, in the order of the answer, with `|` between the columns.
    #[track_caller]
    pub fn rows(&self, sql: &str) -> Vec<String> {
        let batches = self.batches(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        batches.iter().flat_map(rows).collect()
    }

    /// The message of the error of a statement.
    #[track_caller]
    pub fn error(&self, sql: &str) -> String {
        self.batches(sql).expect_err(sql).find_root().to_string()
    }

    /// The physical plan of a query as text.
    pub fn plan(&self, sql: &str) -> String {
        let plan = self.rows(&format!("EXPLAIN {sql}"));
        plan.into_iter().find_map(|row| row.strip_prefix("physical_plan|").map(str::to_owned)).expect("there is a plan")
    }
}

pub fn config(partitions: usize, batch_rows: usize) -> SessionConfig {
    SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_rows)
}

fn rows(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let format = |array| ArrayFormatter::try_new(array, &options).expect("it has a form");
    let columns: Vec<_> = batch.columns().iter().map(|array| format(array)).collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

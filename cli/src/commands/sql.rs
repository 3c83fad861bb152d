//! `larch sql` answers statements. `larch sql-scheduler` and `larch sql-executor` are processes that answer queries
//! together. The query engine is the cargo feature `sql`, and these processes are the feature `cluster`. A binary
//! without the feature says how to get it.

#[cfg(feature = "sql")]
mod answer;
#[cfg(feature = "sql")]
mod as_of;
#[cfg(feature = "cluster")]
mod processes;

#[cfg(feature = "sql")]
pub use answer::run;
#[cfg(feature = "cluster")]
pub use processes::{executor, scheduler};

#[cfg(not(feature = "cluster"))]
use crate::failure::{CommandFailure, Result};

/// Answers for `larch sql` in a binary without a query engine.
#[cfg(not(feature = "sql"))]
pub fn run(_: &crate::args::Common, _: &crate::args::Sql) -> Result<()> {
    Err(CommandFailure::not_built("larch sql", "sql"))
}

/// Answers for `larch sql-scheduler` in a binary without a query engine for several processes.
#[cfg(not(feature = "cluster"))]
pub fn scheduler(_: &crate::args::Common, _: &crate::args::SqlScheduler) -> Result<()> {
    Err(CommandFailure::not_built("larch sql-scheduler", "cluster"))
}

/// Answers for `larch sql-executor` in a binary without a query engine for several processes.
#[cfg(not(feature = "cluster"))]
pub fn executor(_: &crate::args::Common, _: &crate::args::SqlExecutor) -> Result<()> {
    Err(CommandFailure::not_built("larch sql-executor", "cluster"))
}

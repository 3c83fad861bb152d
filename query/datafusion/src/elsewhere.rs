//! What a session asks of other processes that answer its queries. This crate runs no such process.

use crate::Provide;
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;

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

    /// Whether a query failed because the other processes now show another version of the database than this
    /// process.
    fn have_moved_on(&self, error: &DataFusionError) -> bool;

    /// Whether a query failed because one of the processes was lost. In this case the processes return no wrong
    /// rows, and may answer if they are asked again.
    fn have_lost_one(&self, error: &DataFusionError) -> bool;

    /// The text of the other processes about a row or a database that they cannot read, without Ballista's text
    /// before and after it.
    fn words_of(&self, error: &DataFusionError) -> Option<String>;
}

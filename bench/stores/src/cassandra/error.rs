//! Classifies the driver's failures for a benchmark: their names, and whether a retry may succeed.

use harness::Failure;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};

/// The failure for a request.
pub(crate) fn request(error: &ExecutionError) -> Failure {
    match error {
        ExecutionError::LastAttemptError(error) => attempt(error),
        ExecutionError::RequestTimeout(_) => Failure::again("timeout", format!("{error}: option `timeout`")),
        // The driver reconnects by itself.
        ExecutionError::ConnectionPoolError(_) => Failure::again("connection", error.to_string()),
        _ => Failure::request("driver", error.to_string()),
    }
}

fn attempt(error: &RequestAttemptError) -> Failure {
    let text = error.to_string();
    match error {
        RequestAttemptError::BrokenConnectionError(_) => Failure::again("connection", text),
        RequestAttemptError::UnableToAllocStreamId => Failure::again("no_stream", text),
        RequestAttemptError::DbError(error, _) => match error {
            DbError::ReadTimeout { .. } => Failure::again("read_timeout", text),
            DbError::WriteTimeout { .. } => Failure::again("write_timeout", text),
            DbError::ReadFailure { .. } => Failure::again("read_failure", text),
            DbError::WriteFailure { .. } => Failure::again("write_failure", text),
            DbError::Unavailable { .. } => Failure::again("unavailable", text),
            DbError::Overloaded | DbError::RateLimitReached { .. } => Failure::again("overloaded", text),
            DbError::IsBootstrapping => Failure::again("bootstrapping", text),
            DbError::ServerError => Failure::again("server", text),
            DbError::Unauthorized | DbError::AuthenticationError => Failure::session("unauthorized", text),
            _ => Failure::request("refused", text),
        },
        _ => Failure::request("driver", text),
    }
}

/// The failure for a statement that the server refuses to prepare.
pub(crate) fn prepare(error: &PrepareError) -> Failure {
    Failure::session("prepare", error.to_string())
}

/// The failure for an answer that does not fit its statement.
pub(crate) fn answer(error: impl std::fmt::Display) -> Failure {
    Failure::request("answer", format!("the answer is not what was asked for: {error}"))
}

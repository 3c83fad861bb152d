//! Failures: a request that failed, or a store that cannot be opened.

use std::fmt;

/// A request that failed, or a store that cannot be opened.
#[derive(Clone, Debug)]
pub struct Failure {
    /// A short name under which such failures are counted: `serialization_failure`, `io`, …
    pub kind: &'static str,
    /// A text that says what happened, to which thing it happened, and what to do.
    pub text: String,
    /// What the failure means for the requests after it.
    pub harm: Harm,
}

/// What a failure means for the requests after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The same request may succeed if it is made again, for example after a conflict or a deadlock.
    Again,
    /// This request failed, but other requests may succeed.
    Request,
    /// The session, or the whole store, can no longer be used.
    Session,
}

impl Failure {
    /// A failure of one request.
    pub fn request(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), harm: Harm::Request }
    }

    /// A failure after which the session can no longer be used.
    pub fn session(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), harm: Harm::Session }
    }

    /// A failure of a request that may succeed if it is made again.
    pub fn again(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), harm: Harm::Again }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

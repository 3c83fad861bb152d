//! Errors between us and a PostgreSQL server. Each message says what went wrong and what to do about it.

#[cfg(test)]
mod tests;

use harness::Failure;
use std::fmt;
use std::io;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is wrong.
    #[error("{0}")]
    Address(String),
    /// No connection could be made.
    #[error("cannot connect to PostgreSQL at {place}: {source}; {advice}")]
    Connect {
        /// Host and port, or the socket's file.
        place: String,
        /// What the operating system said.
        source: io::Error,
        /// What to try.
        advice: &'static str,
    },
    /// The address asks for TLS, but TLS could not be established.
    #[error("no TLS with PostgreSQL at {place}: {why}")]
    Tls {
        /// Host and port.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The server asks for an authentication method that we do not support.
    #[error(
        "PostgreSQL at {place} wants authentication by {method}, which is not supported; in its pg_hba.conf, allow \
         scram-sha-256, md5, password or trust for this user"
    )]
    Authentication {
        /// Host and port, or the socket's file.
        place: String,
        /// The method's name.
        method: String,
    },
    /// The server answered a statement, or the start of a session, with an error.
    #[error("PostgreSQL at {place}: {error}")]
    Refused {
        /// Host and port, or the socket's file.
        place: String,
        /// The server's error.
        error: Box<ServerError>,
    },
    /// The session is over: the connection cannot be used any more.
    #[error("the connection to PostgreSQL at {place} is lost: {why}; see whether the server still runs, and its log")]
    Lost {
        /// Host and port, or the socket's file.
        place: String,
        /// How the loss showed.
        why: String,
    },
    /// The other side does not speak version 3 of the protocol.
    #[error("the server at {place} does not answer as PostgreSQL does: {what}")]
    Protocol {
        /// Host and port, or the socket's file.
        place: String,
        /// What was wrong with its bytes.
        what: String,
    },
}

impl Error {
    /// The SQLSTATE, if the error came from the server.
    pub fn sqlstate(&self) -> Option<SqlState> {
        match self {
            Self::Refused { error, .. } => Some(error.sqlstate),
            _ => None,
        }
    }

    /// Whether the connection cannot be used any more.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Refused { error, .. } => error.ends_session(),
            _ => true,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match &error {
            Error::Address(_) => Self::session("target", text),
            Error::Connect { .. } => Self::session("connect", text),
            Error::Tls { .. } => Self::session("tls", text),
            Error::Authentication { .. } => Self::session("authentication", text),
            Error::Lost { .. } => Self::session("connection_lost", text),
            Error::Protocol { .. } => Self::session("protocol", text),
            Error::Refused { error, .. } => {
                let kind = error.sqlstate.name();
                if error.ends_session() {
                    Self::session(kind, text)
                } else if error.sqlstate.may_succeed_again() {
                    Self::again(kind, text)
                } else {
                    Self::request(kind, text)
                }
            }
        }
    }
}

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// ERROR, FATAL or PANIC.
    pub severity: String,
    /// The error's code.
    pub sqlstate: SqlState,
    /// The message, in one line.
    pub message: String,
    /// Details, or empty.
    pub detail: String,
    /// The server's advice, or empty.
    pub hint: String,
}

impl ServerError {
    /// Whether the server ends the session after this error.
    pub fn ends_session(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

/// The advice if there seems to be a connection pool that gives each transaction another server connection.
const POOLED: &str = "this looks like PgBouncer in its mode `transaction` or `statement`: use `pool_mode=session`, or name the server itself";

impl ServerError {
    /// What a user of the benchmark can do about the error. Empty if the server's message says it already.
    fn advice(&self) -> &'static str {
        match &self.sqlstate.0 {
            b"3D000" => "make the database with createdb, or name another one in the address",
            b"28P01" => "put the right password in the address or in PGPASSWORD",
            // The file name `pg_hba.conf` is the same in every language of the server's messages.
            b"28000" if self.message.contains("pg_hba.conf") => {
                "let this user in by pg_hba.conf of the server; `sslmode` in the address says whether TLS is used"
            }
            b"28000" => "make the user with createuser, or name another one in the address",
            b"42501" => "grant this user the right, or name another user in the address",
            b"53300" => "lower connections= in the address or raise max_connections of the server",
            b"57P01" | b"57P02" => "the server was stopped",
            // We prepare statements once for each session. If a pool switches server sessions, a statement exists
            // already in the new one or is missing there.
            b"42P05" | b"26000" => POOLED,
            // PgBouncer has no SQLSTATE of its own for a parameter that it refuses, so this looks at the message.
            b"08P01" if self.message.contains("unsupported startup parameter") => {
                "PgBouncer takes no settings of a session: name the server itself, or put the parameter in its ignore_startup_parameters"
            }
            _ => "",
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} ({})", self.severity, self.message, self.sqlstate)?;
        for more in [self.detail.as_str(), self.hint.as_str(), self.advice()] {
            if !more.is_empty() {
                write!(out, "; {more}")?;
            }
        }
        Ok(())
    }
}

/// A SQLSTATE: the five characters that identify a kind of error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// Stands for the code of an error without one, which no real server sends.
    pub const UNKNOWN: Self = Self(*b"XX000");
    /// This user may not connect, at least not in this way.
    pub const INVALID_AUTHORIZATION: Self = Self(*b"28000");
    /// The password is wrong, or it is missing although the server wants one.
    pub const INVALID_PASSWORD: Self = Self(*b"28P01");
    /// Concurrent transactions could not be serialized.
    pub const SERIALIZATION_FAILURE: Self = Self(*b"40001");
    /// Transactions waited for each other.
    pub const DEADLOCK: Self = Self(*b"40P01");
    /// This user may not do that.
    pub const INSUFFICIENT_PRIVILEGE: Self = Self(*b"42501");
    /// No such column.
    pub const UNDEFINED_COLUMN: Self = Self(*b"42703");
    /// No such table.
    pub const UNDEFINED_TABLE: Self = Self(*b"42P01");

    /// Whether the same request may succeed if it is sent again.
    pub fn may_succeed_again(self) -> bool {
        matches!(self, Self::SERIALIZATION_FAILURE | Self::DEADLOCK)
    }

    /// The condition's name in PostgreSQL's manual for conditions that a benchmark meets, otherwise the name of its
    /// class.
    pub fn name(self) -> &'static str {
        match &self.0 {
            b"40001" => "serialization_failure",
            b"40P01" => "deadlock_detected",
            b"23505" => "unique_violation",
            b"22021" => "character_not_in_repertoire",
            b"22001" => "string_data_right_truncation",
            b"54000" => "program_limit_exceeded",
            b"53100" => "disk_full",
            b"53200" => "out_of_memory",
            b"53300" => "too_many_connections",
            b"55P03" => "lock_not_available",
            b"57014" => "query_canceled",
            b"57P01" => "admin_shutdown",
            b"57P02" => "crash_shutdown",
            b"57P03" => "cannot_connect_now",
            b"42501" => "insufficient_privilege",
            b"42P01" => "undefined_table",
            b"42P05" => "duplicate_prepared_statement",
            b"26000" => "invalid_sql_statement_name",
            b"42703" => "undefined_column",
            b"3D000" => "invalid_catalog_name",
            b"28000" => "invalid_authorization_specification",
            b"28P01" => "invalid_password",
            b"25006" => "read_only_sql_transaction",
            [b'0', b'8', ..] => "connection_exception",
            [b'2', b'2', ..] => "data_exception",
            [b'2', b'3', ..] => "integrity_constraint_violation",
            [b'2', b'8', ..] => "invalid_authorization",
            [b'4', b'0', ..] => "transaction_rollback",
            [b'4', b'2', ..] => "syntax_error_or_access_rule_violation",
            [b'5', b'3', ..] => "insufficient_resources",
            [b'5', b'4', ..] => "program_limit_exceeded",
            [b'5', b'7', ..] => "operator_intervention",
            [b'5', b'8', ..] => "system_error",
            [b'X', b'X', ..] => "internal_error",
            _ => "server_error",
        }
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(out, "{}", byte as char)?;
        }
        Ok(())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

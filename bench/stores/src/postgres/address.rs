//! Parses addresses `postgres://…`: the server, the user, the number of connections, and the requests in flight on
//! each.
//!
//! ```text
//! postgres://user:password@host:port/database?connections=16&pipeline=1&synchronous_commit=off
//! ```
//!
//! What an address leaves out comes from libpq's environment variables (PGHOST, PGPORT, PGUSER, PGPASSWORD,
//! PGDATABASE, PGSSLMODE, PGSSLROOTCERT, PGCHANNELBINDING). A parameter that this crate does not know is a server
//! setting for our sessions, such as `synchronous_commit`.

use crate::postgres::dialect::Dialect;
use crate::postgres::error::Error;
use harness::Target;
use std::fmt;
use std::path::PathBuf;

#[cfg(test)]
mod tests;

/// The most connections of one session: more than any server accepts, but small enough to catch typing errors.
const CONNECTIONS_MAX: u32 = 10_000;
/// Most requests in flight on one connection. While we write, unread answers wait in socket buffers of some hundred
/// kilobytes on each side.
const PIPELINE_MAX: u32 = 1_000;
/// Where Debian's packages put the server's socket.
const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// A server, a database on the server, and how to reach them.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Where the server listens.
    pub place: Place,
    /// The user to log in as.
    pub user: String,
    /// The user's password, if one is given.
    pub password: Option<String>,
    /// The database that holds the table.
    pub database: String,
    /// Connections of each session.
    pub connections: u32,
    /// The most requests in flight on each connection.
    pub pipeline: u32,
    /// Seconds to wait for a server that does not answer the start of a session.
    pub connect_timeout_secs: u64,
    /// Whether and how sessions are encrypted.
    pub encryption: Encryption,
    /// Server settings for our sessions, in the order of the address.
    pub settings: Vec<(String, String)>,
}

/// Whether sessions are encrypted, and how the server's certificate is checked. Names and meanings are those of
/// libpq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// `sslmode`.
    pub mode: Mode,
    /// `sslrootcert`: whose signatures are trusted.
    pub roots: Roots,
    /// Whether `sslrootcert` was given or its default file exists. If so, the mode `require` checks the certificate,
    /// too.
    pub has_roots: bool,
    /// `channel_binding`.
    pub binding: Binding,
}

/// `sslmode`. A Unix socket never has TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No TLS.
    Disable,
    /// TLS only if the server insists on it.
    Allow,
    /// TLS if the server has it.
    Prefer,
    /// TLS.
    Require,
    /// TLS with a server whose certificate is signed by a trusted signer.
    VerifyCa,
    /// Like `VerifyCa`, but the certificate must also be for this host.
    VerifyFull,
}

/// Who is trusted to sign certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// The authorities whose certificates are in this file.
    File(PathBuf),
    /// The authorities that the system trusts.
    System,
}

/// `channel_binding`: whether the SCRAM proof of the password is bound to the TLS session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Never.
    Disable,
    /// If both sides support it.
    Prefer,
    /// Always: otherwise the session is refused.
    Require,
}

/// What is checked in a server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// Nothing.
    Nothing,
    /// That a trusted authority signed it.
    Chain,
    /// That, and that it names the host.
    ChainAndName,
}

impl Encryption {
    /// What is checked in the server's certificate.
    pub fn checked(&self) -> Checked {
        match self.mode {
            Mode::VerifyFull => Checked::ChainAndName,
            Mode::VerifyCa => Checked::Chain,
            // With a root file, `require` also checks the certificate, as in libpq. Old addresses rely on this.
            Mode::Require if self.has_roots => Checked::Chain,
            Mode::Disable | Mode::Allow | Mode::Prefer | Mode::Require => Checked::Nothing,
        }
    }

    fn new(
        mode: Option<String>,
        roots: Option<String>,
        binding: Option<String>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mode = mode.or_else(|| variable("PGSSLMODE"));
        let mode = match mode.as_deref() {
            None | Some("prefer") => Mode::Prefer,
            Some("disable") => Mode::Disable,
            Some("allow") => Mode::Allow,
            Some("require") => Mode::Require,
            Some("verify-ca") => Mode::VerifyCa,
            Some("verify-full") => Mode::VerifyFull,
            Some(other) => {
                return Err(format!(
                    "sslmode={other} is none of disable, allow, prefer, require, verify-ca, verify-full"
                ));
            }
        };
        let binding = binding.or_else(|| variable("PGCHANNELBINDING"));
        let binding = match binding.as_deref() {
            None | Some("prefer") => Binding::Prefer,
            Some("disable") => Binding::Disable,
            Some("require") => Binding::Require,
            Some(other) => return Err(format!("channel_binding={other} is none of disable, prefer, require")),
        };
        let default = variable("HOME").map(|home| PathBuf::from(home).join(".postgresql/root.crt"));
        let default = default.filter(|file| file.is_file());
        let given = roots.or_else(|| variable("PGSSLROOTCERT"));
        let (roots, has_roots) = match (given, default) {
            (Some(system), _) if system == "system" => {
                if mode != Mode::VerifyFull {
                    return Err("sslrootcert=system, with which only sslmode=verify-full is safe,".to_owned());
                }
                (Roots::System, true)
            }
            (Some(file), _) => (Roots::File(PathBuf::from(file)), true),
            (None, Some(file)) => (Roots::File(file), true),
            (None, None) => (Roots::System, false),
        };
        let this = Self { mode, roots, has_roots, binding };
        match &this.roots {
            Roots::File(file) if this.checked() != Checked::Nothing && !file.is_file() => {
                Err(format!("sslrootcert={}: there is no such file,", file.display()))
            }
            _ => Ok(this),
        }
    }
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A host and a port.
    Tcp {
        /// Host name or IP address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket in this directory; the port is part of the socket's name.
    Unix {
        /// The directory.
        directory: PathBuf,
        /// The port in the socket's file name.
        port: u16,
    },
}

impl Address {
    /// Parses an address. `variable` looks up environment variables.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Address`], which says what is wrong with the address.
    pub fn parse(address: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        Parts::split(address).and_then(|parts| parts.address(variable)).map_err(|what| {
            Error::Address(format!(
                "{what} in `{}`; an address is postgres://user:password@host:port/database?connections=16&pipeline=1",
                harness::without_password(address)
            ))
        })
    }

    /// Like [`Address::parse`], with the environment of this process.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Address::parse`].
    pub fn from_environment(address: &str) -> Result<Self, Error> {
        Self::parse(address, in_environment)
    }

    /// The address of a server that speaks `dialect`. `target` has any scheme, and `variable` looks up environment
    /// variables.
    ///
    /// # Errors
    ///
    /// As [`Address::parse`].
    pub(crate) fn of(
        target: &Target,
        dialect: &Dialect,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let (_, place) = target.text.split_once(':').unwrap_or(("", &target.text));
        Self::parse(&format!("postgres:{place}"), |name| match (name, variable(name)) {
            ("PGPORT", None) => Some(dialect.port.to_owned()),
            (_, value) => value,
        })
    }
}

/// The value of an environment variable of this process. An empty one counts as none.
pub(crate) fn in_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl fmt::Debug for Address {
    /// Leaves out the password, for logs.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} in {} as {}", self.database, self.place, self.user)
    }
}

impl Place {
    /// The file of the Unix socket. `None` for TCP.
    pub fn socket_file(&self) -> Option<PathBuf> {
        match self {
            Self::Tcp { .. } => None,
            Self::Unix { directory, port } => Some(directory.join(format!(".s.PGSQL.{port}"))),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(out, "{host}:{port}"),
            Self::Unix { .. } => {
                write!(out, "{}", self.socket_file().expect("a Unix socket has a file").display())
            }
        }
    }
}

/// An address that was split and decoded, before its missing parts are filled in.
#[derive(Default)]
struct Parts {
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<String>,
    database: Option<String>,
    parameters: Vec<(String, String)>,
}

impl Parts {
    fn split(address: &str) -> Result<Self, String> {
        let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| address.strip_prefix(scheme));
        let rest = rest.ok_or("no postgres:// at the start")?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (who, None),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or("no `]` after the `[` of a host")?;
                (host, after.strip_prefix(':').unwrap_or(after))
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        if database.contains('/') {
            return Err("a `/` after the database".to_owned());
        }
        let mut pairs = Vec::new();
        for pair in parameters.split('&').filter(|pair| !pair.is_empty()) {
            // What we cannot parse may be part of an unencoded password, so the message does not show it.
            let (name, value) = pair.split_once('=').ok_or("a setting without a value")?;
            pairs.push((decoded(name)?, decoded(value)?));
        }
        let filled = |text: &str| decoded(text).map(|text| (!text.is_empty()).then_some(text));
        Ok(Self {
            user: filled(user)?,
            password,
            host: filled(host)?,
            port: filled(port)?,
            database: filled(database)?,
            parameters: pairs,
        })
    }

    fn address(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Address, String> {
        let (mut connections, mut pipeline, mut connect_timeout_secs) = (1, 1, 10);
        let (mut mode, mut roots, mut binding) = (None, None, None);
        let mut settings = vec![("application_name".to_owned(), "larch bench".to_owned())];
        for (name, value) in std::mem::take(&mut self.parameters) {
            match name.as_str() {
                "user" => self.user = Some(value),
                "password" => self.password = Some(value),
                "host" => self.host = Some(value),
                "port" => self.port = Some(value),
                "dbname" => self.database = Some(value),
                "connections" => connections = number(&name, &value, CONNECTIONS_MAX)?,
                "pipeline" => pipeline = number(&name, &value, PIPELINE_MAX)?,
                "connect_timeout" => connect_timeout_secs = u64::from(number(&name, &value, 3_600)?),
                "sslmode" => mode = Some(value),
                "sslrootcert" => roots = Some(value),
                "channel_binding" => binding = Some(value),
                "sslcert" | "sslkey" => return Err(format!("{name}: certificates of clients are not supported,")),
                "application_name" => settings[0].1 = value,
                _ => settings.push((name, value)),
            }
        }
        let port = self.port.or_else(|| variable("PGPORT")).unwrap_or_else(|| "5432".to_owned());
        let port = port.parse().ok().filter(|port| *port != 0).ok_or("no port, which is a number from 1 to 65535,")?;
        let host = self.host.or_else(|| variable("PGHOST")).unwrap_or_else(|| {
            let is_here = std::path::Path::new(SOCKET_DIRECTORY).is_dir();
            if is_here { SOCKET_DIRECTORY } else { "localhost" }.to_owned()
        });
        let place = if host.starts_with('/') {
            Place::Unix { directory: PathBuf::from(host), port }
        } else {
            Place::Tcp { host, port }
        };
        let user = self.user.or_else(|| variable("PGUSER")).or_else(|| variable("USER"));
        let user = user.ok_or("no user, and neither PGUSER nor USER is set,")?;
        let database = self.database.or_else(|| variable("PGDATABASE")).unwrap_or_else(|| user.clone());
        let password = self.password.or_else(|| variable("PGPASSWORD"));
        let encryption = Encryption::new(mode, roots, binding, &variable)?;
        Ok(Address {
            place,
            user,
            password,
            database,
            connections,
            pipeline,
            connect_timeout_secs,
            encryption,
            settings,
        })
    }
}

/// Parses a number from 1 to `most`.
fn number(name: &str, value: &str, most: u32) -> Result<u32, String> {
    value
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| format!("{name}={value} is not from 1 to {most}"))
}

/// Decodes percent-encoding: `%41` → `A`.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = byte.ok_or("no two hexadecimal digits after a `%`")?;
        bytes.push(u8::from_str_radix(byte, 16).expect("two hexadecimal digits make a byte"));
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(|| "bytes that are no text".to_owned())
}

//! Parses a target: the nodes of a running cluster, perhaps with a keyspace, or a server of our own.
//!
//! ```text
//!   cassandra://user:password@host:port,host:port/keyspace
//!   cassandra:start     a server of our own in a temporary directory
//!   cassandra:DIR       a server of our own whose data stay in DIR
//! ```

#[cfg(test)]
mod tests;

use crate::cassandra::server::ServerOptions;
use harness::{Failure, Target};
use std::path::PathBuf;

/// The options after the question mark: name, explanation and default.
pub const OPTIONS: &[(&str, &str)] = &[
    ("compression", "of the files of a new table, none or lz4: none"),
    ("heap", "memory of the heap of a server of our own, in bytes: 768MiB"),
    ("durability", "buffered, or synced: a server of our own syncs its commit log before it answers: buffered"),
];

const PORT: u16 = 9042;

/// A parsed target.
#[derive(Clone, Debug)]
pub struct Address {
    /// Where the server is.
    pub server: Where,
    /// The keyspace, if the target names one.
    pub keyspace: Option<String>,
    /// Whether the files of a new table are compressed.
    pub compressed: bool,
}

/// Where the server is.
#[derive(Clone, Debug)]
pub enum Where {
    /// A cluster that runs already.
    Nodes {
        /// `host:port`.
        nodes: Vec<String>,
        /// User and password, if they are given.
        login: Option<(String, String)>,
    },
    /// A server that we start and stop.
    Ours(ServerOptions),
}

impl Address {
    /// Parses a target.
    ///
    /// # Errors
    ///
    /// Returns a failure that says what is wrong with the target and what it should look like.
    pub fn of(target: &Target) -> Result<Self, Failure> {
        let bad = |why: &str| Failure::session("target", format!("target `{}`: {why}", target.shown()));
        let mut options = target.options()?;
        let compressed = options.choice("compression", &[("none", false), ("lz4", true)])?;
        let heap = options.bytes("heap", 768 << 20)?;
        let synced = options.choice("durability", &[("", None), ("buffered", Some(false)), ("synced", Some(true))])?;
        if heap < 256 << 20 {
            return Err(options.bad("heap", &heap.to_string(), "at least 256MiB"));
        }
        options.finish()?;

        let ours =
            |directory| Where::Ours(ServerOptions { directory, heap_mib: heap >> 20, synced: synced.unwrap_or(false) });
        let (server, keyspace) = match (target.place.strip_prefix("//"), target.place.as_str()) {
            (Some(place), _) => {
                if target.query.iter().any(|(name, _)| name == "heap" || name == "durability") {
                    return Err(bad(
                        "`heap` and `durability` are options of `cassandra:start` and `cassandra:DIR`; the server that \
                                    is named has its own",
                    ));
                }
                nodes(place).map_err(bad)?
            }
            (None, "") => {
                return Err(bad("names no server: write `cassandra://host:port/keyspace`, `cassandra:start`, or \
                                `cassandra:DIR` for a server whose data stay in DIR"));
            }
            (None, "start") => (ours(None), None),
            (None, directory) => (ours(Some(PathBuf::from(directory))), None),
        };
        Ok(Self { server, keyspace, compressed })
    }
}

/// Checks `name` and returns it as our CQL writes the name of a keyspace or table. We do not quote names, so case
/// does not matter.
///
/// # Errors
///
/// Returns what a name must look like, if `name` cannot be used.
pub fn name(name: &str) -> Result<String, &'static str> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name =
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_of_word) && name.len() <= 48;
    let text = "a name of Cassandra is a letter, then letters, digits and `_`, 48 at most";
    if is_name { Ok(name.to_ascii_lowercase()) } else { Err(text) }
}

/// Parses `user:password@host:port,host/keyspace`.
fn nodes(place: &str) -> Result<(Where, Option<String>), &'static str> {
    let (hosts, keyspace) = place.split_once('/').unwrap_or((place, ""));
    let keyspace = if keyspace.is_empty() { None } else { Some(name(keyspace)?) };
    let (login, hosts) = match hosts.rsplit_once('@') {
        Some((login, hosts)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            (Some((user.to_owned(), password.to_owned())), hosts)
        }
        None => (None, hosts),
    };
    let nodes = hosts.split(',').map(node).collect::<Option<Vec<_>>>();
    let nodes = nodes.ok_or("a node is `host` or `host:port`, several with commas between them")?;
    Ok((Where::Nodes { nodes, login }, keyspace))
}

/// Completes an address to `host:port`, with the default port if it has none. IPv6 addresses are in brackets.
fn node(text: &str) -> Option<String> {
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if has_port => (host, port.parse().ok()?),
        _ => (text, PORT),
    };
    (!host.is_empty()).then(|| format!("{host}:{port}"))
}

//! `larch bench targets`: lists all known stores, which of them this binary has, and how to build a binary with the
//! others.

#[cfg(test)]
mod tests;

use harness::{Failure, Scheme, Target};
use std::fmt::Write as _;

/// A command that works on stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `larch bench ycsb`, and the commands that compare peers.
    Ycsb,
    /// `larch bench rows`.
    Rows,
    /// `larch bench kv`.
    Kv,
    /// `larch bench tpcc`.
    Tpcc,
}

impl Task {
    /// The task's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ycsb => "YCSB",
            Self::Rows => "row access",
            Self::Kv => "kv",
            Self::Tpcc => "TPC-C",
        }
    }
}

use Task::{Kv, Rows, Tpcc, Ycsb};

/// A store that this suite knows of.
struct Known {
    scheme: &'static str,
    form: &'static str,
    about: &'static str,
    /// The tasks that run on this store.
    tasks: &'static [Task],
    availability: Availability,
}

/// Which binaries have a store.
enum Availability {
    /// Every binary has it.
    Default,
    /// Binaries built `--with` it.
    With,
    /// It cannot be measured, for this reason.
    Not(&'static str),
}

const NO_SERVER: &str = "no server of it is available here";

const KNOWN: [Known; 13] = [
    Known {
        scheme: "larch",
        form: "larch:DIR",
        about: "Larch, embedded",
        tasks: &[Ycsb, Rows, Kv, Tpcc],
        availability: Availability::Default,
    },
    Known {
        scheme: "noop",
        form: "noop:",
        about: "nothing: what the client costs by itself",
        tasks: &[Ycsb, Kv, Tpcc],
        availability: Availability::Default,
    },
    Known {
        scheme: "postgres",
        form: "postgres://user@host:port/database",
        about: "PostgreSQL; its server is Debian's package postgresql",
        tasks: &[Ycsb, Rows, Kv, Tpcc],
        availability: Availability::Default,
    },
    Known {
        scheme: "rocksdb",
        form: "rocksdb:DIR",
        about: "RocksDB, embedded",
        tasks: &[Ycsb, Tpcc],
        availability: Availability::With,
    },
    embedded("fjall", "fjall:DIR", "fjall, embedded"),
    embedded("redb", "redb:DIR", "redb, embedded"),
    embedded("lmdb", "lmdb:DIR", "LMDB, embedded"),
    Known {
        scheme: "sqlite",
        form: "sqlite:DIR",
        about: "SQLite, embedded; `rows` and `tpcc` take a file, sqlite:FILE",
        tasks: &[Ycsb, Rows, Tpcc],
        availability: Availability::With,
    },
    Known {
        scheme: "cockroach",
        form: "cockroach://user@host:port/database",
        about: "CockroachDB, by PostgreSQL's protocol",
        tasks: &[Tpcc],
        availability: Availability::Not(NO_SERVER),
    },
    Known {
        scheme: "yugabyte",
        form: "yugabyte://user@host:port/database",
        about: "YugabyteDB, by PostgreSQL's protocol",
        tasks: &[Tpcc],
        availability: Availability::Not(NO_SERVER),
    },
    Known {
        scheme: "cassandra",
        form: "cassandra://host:port/keyspace",
        about: "Cassandra; cassandra:start, cassandra:DIR: a server of our own",
        tasks: &[Kv],
        availability: Availability::With,
    },
    Known {
        scheme: "scylla",
        form: "scylla://host:port/keyspace",
        about: "ScyllaDB, by the driver of `cassandra`",
        tasks: &[],
        availability: Availability::Not(
            "no server of it is available here; `cassandra` has its driver, and was not tried with it",
        ),
    },
    Known {
        scheme: "ydb",
        form: "ydb://host:port/database",
        about: "YDB",
        tasks: &[],
        availability: Availability::Not(NO_SERVER),
    },
];

/// An embedded key-value engine that runs YCSB only.
const fn embedded(scheme: &'static str, form: &'static str, about: &'static str) -> Known {
    Known { scheme, form, about, tasks: &[Ycsb], availability: Availability::With }
}

/// Aliases of schemes: (alias, scheme).
const ALIASES: [(&str, &str); 1] = [("postgresql", "postgres")];

/// Finds the scheme of `target` among `schemes`, the schemes of this binary for `task`.
///
/// # Errors
///
/// Fails if this binary has no such scheme. The error says how to build a binary that has it, or, if the task does
/// not run on this store at all, on which stores it does.
pub fn find<'s, S>(
    schemes: &'s [S],
    name_of: impl Fn(&S) -> &'static str,
    task: Task,
    target: &Target,
) -> Result<&'s S, Failure> {
    let name = canonical(&target.scheme);
    if let Some(scheme) = schemes.iter().find(|scheme| name_of(scheme) == name) {
        return Ok(scheme);
    }
    let task_name = task.name();
    let why = match KNOWN.iter().find(|known| known.scheme == name) {
        Some(Known { availability: Availability::Not(why), .. }) => format!("`{name}` cannot be measured: {why}"),
        Some(known) if known.tasks.contains(&task) => {
            format!("this binary has no `{name}`: run it with {}", command(name))
        }
        Some(_) => {
            let is_run =
                |known: &&Known| known.tasks.contains(&task) && !matches!(known.availability, Availability::Not(_));
            let runs: Vec<&str> = KNOWN.iter().filter(is_run).map(|known| known.scheme).collect();
            format!("there is no {task_name} on `{name}`; it runs on {}", runs.join(", "))
        }
        None => format!("there is no scheme `{name}`; `larch bench targets` lists them"),
    };
    Err(Failure::session("target", format!("target `{}`: {why}", target.shown())))
}

/// [`find`] for key-value stores.
///
/// # Errors
///
/// Returns the same errors as [`find`].
pub fn find_key_value<'s>(schemes: &'s [Scheme], target: &Target) -> Result<&'s Scheme, Failure> {
    find(schemes, |scheme| scheme.name, Ycsb, target)
}

/// Whether several processes can use `target` at the same time: a server that is already running, or the no-op
/// store.
pub fn is_one_for_all(target: &Target) -> bool {
    let name = canonical(&target.scheme);
    let is_server = KNOWN.iter().any(|known| known.scheme == name && known.form.contains("://"));
    name == harness::noop::SCHEME.name || (is_server && target.place.starts_with("//"))
}

/// Resolves an alias of a scheme.
pub fn canonical(scheme: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == scheme).map_or(scheme, |(_, name)| name)
}

fn command(scheme: &str) -> String {
    format!("cargo x bench --with {scheme} …")
}

/// The list of stores as text. `schemes` are this binary's key-value stores, `others` the names of its other
/// stores.
pub fn list(schemes: &[Scheme], others: &[&str]) -> String {
    let is_built =
        |known: &Known| schemes.iter().any(|scheme| scheme.name == known.scheme) || others.contains(&known.scheme);
    let form = KNOWN.iter().map(|known| known.form.len()).max().unwrap_or_default();
    let mut text = format!("{:form$}  {:9}  {:8}  {:22}  what it is\n", "target", "built", "run here", "for");
    for known in &KNOWN {
        let (state, run, rest) = match (is_built(known), &known.availability) {
            (true, Availability::Not(why)) => ("built", "not", format!(": not run here, {why}")),
            (true, _) => ("built", "run", String::new()),
            (false, Availability::Not(why)) => ("not built", "not", format!(": not run here, {why}")),
            (false, _) => ("not built", "run", format!(": {}", command(known.scheme))),
        };
        let tasks = known.tasks.iter().map(|task| match task {
            Ycsb => "ycsb",
            Rows => "rows",
            Kv => "kv",
            Tpcc => "tpcc",
        });
        let tasks = tasks.collect::<Vec<_>>().join(", ");
        put(&mut text, format_args!("{:form$}  {state:9}  {run:8}  {tasks:22}  {}{rest}\n", known.form, known.about));
    }
    for own in schemes.iter().filter(|scheme| KNOWN.iter().all(|known| known.scheme != scheme.name)) {
        put(&mut text, format_args!("{:form$}  {:9}  {:8}  {:22}  {}\n", own.form, "built", "run", "ycsb", own.about));
    }
    text.push_str("\noptions, after `?` and between `&`, as in larch:DIR?cache=64MiB&durability=synced\n");
    for scheme in schemes.iter().filter(|scheme| !scheme.options.is_empty()) {
        put(&mut text, format_args!("  {}\n", scheme.name));
        for (name, about) in scheme.options {
            put(&mut text, format_args!("    {name:18} {about}\n"));
        }
    }
    text
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes all");
}

//! `larch bench targets`: lists all known stores, which of them this binary has, and how to build a binary with the
//! others.

#[cfg(test)]
mod tests;

use harness::{Failure, Scheme, Target};
use kit::hints::with_engine;
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

    /// The word after `larch bench`.
    pub fn command(self) -> &'static str {
        match self {
            Self::Ycsb => "ycsb",
            Self::Rows => "rows",
            Self::Kv => "kv",
            Self::Tpcc => "tpcc",
        }
    }
}

use Task::{Kv, Rows, Tpcc, Ycsb};

/// A store that this suite knows of.
pub struct Known {
    /// The text before the colon of a target.
    pub scheme: &'static str,
    /// How a target is written.
    pub form: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The tasks that run on this store.
    pub tasks: &'static [Task],
    /// The feature of `larch-cli` that brings it: `engines-NAME`, of which this is the name. `None`: every binary has
    /// it.
    pub engine: Option<&'static str>,
    /// The reason why the store was not measured for the pages of this repository. `None` if it was.
    pub not_run: Option<&'static str>,
}

const NO_SERVER: &str = "no server of it is available here";

/// All stores. Targets are understood, hints are given, and lists are made by this one list; a test compares it with
/// the stores that a binary has.
pub const KNOWN: &[Known] = &[
    known("larch", "larch:DIR", "Larch, embedded", &[Ycsb, Rows, Kv, Tpcc]),
    known("noop", "noop:", "nothing: what the client costs by itself", &[Ycsb, Kv, Tpcc]),
    known(
        "postgres",
        "postgres://user@host:port/database",
        "PostgreSQL; its server is Debian's package postgresql",
        &[Ycsb, Rows, Kv, Tpcc],
    ),
    known("redis", "redis://host:port/NUMBER", "Redis; its server is Debian's package redis-server", &[Ycsb, Kv]),
    engine("rocksdb", "rocksdb:DIR", "RocksDB, embedded", &[Ycsb, Tpcc]),
    engine("fjall", "fjall:DIR", "fjall, embedded", &[Ycsb]),
    engine("redb", "redb:DIR", "redb, embedded", &[Ycsb]),
    engine("lmdb", "lmdb:DIR", "LMDB, embedded", &[Ycsb]),
    engine("surrealkv", "surrealkv:DIR", "SurrealKV, embedded", &[Ycsb]),
    engine("bf-tree", "bf-tree:DIR", "Bf-Tree, embedded", &[Ycsb]),
    engine("sqlite", "sqlite:DIR", "SQLite, embedded; `rows` and `tpcc` take a file, sqlite:FILE", &[Ycsb, Rows, Tpcc]),
    Known {
        not_run: Some(NO_SERVER),
        ..known(
            "cockroach",
            "cockroach://user@host:port/database",
            "CockroachDB, by PostgreSQL's protocol",
            &[Ycsb, Rows, Kv, Tpcc],
        )
    },
    Known {
        not_run: Some(NO_SERVER),
        ..known(
            "yugabyte",
            "yugabyte://user@host:port/database",
            "YugabyteDB, by PostgreSQL's protocol",
            &[Ycsb, Rows, Kv, Tpcc],
        )
    },
    engine(
        "cassandra",
        "cassandra://host:port/keyspace",
        "Cassandra; cassandra:start, cassandra:DIR: a server of our own",
        &[Kv],
    ),
    Known {
        not_run: Some("no server of it is available here; `cassandra` has its driver, and was not tried with it"),
        ..known("scylla", "scylla://host:port/keyspace", "ScyllaDB, by the driver of `cassandra`", &[])
    },
    Known { not_run: Some(NO_SERVER), ..known("ydb", "ydb://host:port/database", "YDB", &[]) },
];

/// A store that every binary has.
const fn known(scheme: &'static str, form: &'static str, about: &'static str, tasks: &'static [Task]) -> Known {
    Known { scheme, form, about, tasks, engine: None, not_run: None }
}

/// A store of an engine that only some binaries have. The engine has the name of the scheme.
const fn engine(scheme: &'static str, form: &'static str, about: &'static str, tasks: &'static [Task]) -> Known {
    Known { engine: Some(scheme), ..known(scheme, form, about, tasks) }
}

impl Known {
    /// Whether `task` runs on this store.
    fn has(&self, task: Task) -> bool {
        self.tasks.contains(&task)
    }

    /// The names of its tasks, as words after `larch bench`.
    fn commands(&self) -> String {
        self.tasks.iter().map(|task| task.command()).collect::<Vec<_>>().join(", ")
    }
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
        Some(known) if known.has(task) => match known.engine {
            Some(engine) => format!("this binary has no `{name}`: run it with {}", with_engine(engine, "…")),
            None => format!("this binary has no `{name}`, which the `larch` of this repository has"),
        },
        Some(Known { tasks: [], not_run: Some(why), .. }) => format!("`{name}` cannot be measured: {why}"),
        Some(_) => {
            let is_run = |known: &&Known| known.has(task) && known.not_run.is_none();
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

/// What `--help` says of an option that takes a target of `task`.
pub fn help(task: Task) -> String {
    let is_run = |known: &&Known| known.has(task) && known.not_run.is_none();
    let forms = |is_there: bool| {
        let known = KNOWN.iter().filter(is_run).filter(|known| known.engine.is_none() == is_there);
        known.map(|known| known.form).collect::<Vec<_>>().join(", ")
    };
    let more = match forms(false) {
        forms if forms.is_empty() => String::new(),
        forms => format!("; where it is built in {forms}"),
    };
    format!("The store: {}{more}; `larch bench targets` lists them with their options", forms(true))
}

/// The list of stores as a table of a document.
pub fn table() -> String {
    let mut text = "| target | what it is | for | built |\n|---|---|---|---|\n".to_owned();
    for known in KNOWN {
        let built = match (known.tasks, known.engine) {
            ([], _) => "never".to_owned(),
            (_, None) => "always".to_owned(),
            (_, Some(engine)) => format!("`--with {engine}`"),
        };
        let not_run = known.not_run.map(|why| format!("; not run: {why}")).unwrap_or_default();
        let (form, about, commands) = (known.form, known.about, known.commands());
        put(&mut text, format_args!("| `{form}` | {about}{not_run} | {commands} | {built} |\n"));
    }
    text
}

/// The list of stores as text. `schemes` are this binary's key-value stores, `others` the names of its other
/// stores.
pub fn list(schemes: &[Scheme], others: &[&str]) -> String {
    let is_built =
        |known: &Known| schemes.iter().any(|scheme| scheme.name == known.scheme) || others.contains(&known.scheme);
    let form = KNOWN.iter().map(|known| known.form.len()).max().unwrap_or_default();
    let mut text = format!("{:form$}  {:9}  {:8}  {:22}  what it is\n", "target", "built", "run here", "for");
    for known in KNOWN {
        let run = if known.not_run.is_none() { "run" } else { "not" };
        let (state, rest) = match (is_built(known), known.not_run) {
            (true, None) => ("built", String::new()),
            (false, None) => ("not built", format!(": {}", with_engine(known.scheme, "…"))),
            (true, Some(why)) => ("built", format!(": not run here, {why}")),
            (false, Some(why)) => ("not built", format!(": not run here, {why}")),
        };
        let tasks = known.commands();
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

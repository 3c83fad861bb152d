//! `larch bench targets`: lists all known stores, whether this binary has them, and how to build a binary that does.

#[cfg(test)]
mod tests;

use harness::{Failure, Scheme, Target};
use std::fmt::Write as _;

/// A store that this suite knows of.
struct Known {
    scheme: &'static str,
    form: &'static str,
    about: &'static str,
    /// Where it is available.
    availability: Availability,
}

/// Where a store is available.
enum Availability {
    /// In every binary.
    Default,
    /// In a binary that was built with it.
    With,
    /// Nowhere yet: why.
    Not(&'static str),
}

const NO_SERVER: &str = "no server of it is available here";

const KNOWN: [Known; 13] = [
    Known { scheme: "larch", form: "larch:DIR", about: "Larch, embedded", availability: Availability::Default },
    Known {
        scheme: "noop",
        form: "noop:",
        about: "nothing: what the client costs by itself",
        availability: Availability::Default,
    },
    Known {
        scheme: "postgres",
        form: "postgres://user@host:port/database",
        about: "PostgreSQL; its server is Debian's package postgresql",
        availability: Availability::Default,
    },
    Known { scheme: "rocksdb", form: "rocksdb:DIR", about: "RocksDB, embedded", availability: Availability::With },
    Known { scheme: "fjall", form: "fjall:DIR", about: "fjall, embedded", availability: Availability::With },
    Known { scheme: "redb", form: "redb:DIR", about: "redb, embedded", availability: Availability::With },
    Known { scheme: "lmdb", form: "lmdb:DIR", about: "LMDB, embedded", availability: Availability::With },
    Known { scheme: "sqlite", form: "sqlite:DIR", about: "SQLite, embedded", availability: Availability::With },
    Known {
        scheme: "cockroach",
        form: "cockroach://user@host:port/database",
        about: "CockroachDB, by PostgreSQL's protocol",
        availability: Availability::Not(NO_SERVER),
    },
    Known {
        scheme: "yugabyte",
        form: "yugabyte://user@host:port/database",
        about: "YugabyteDB, by PostgreSQL's protocol",
        availability: Availability::Not(NO_SERVER),
    },
    Known {
        scheme: "cassandra",
        form: "cassandra://host:port/keyspace",
        about: "Cassandra, for `kv`; cassandra:start, cassandra:DIR: a server of our own",
        availability: Availability::With,
    },
    Known {
        scheme: "scylla",
        form: "scylla://host:port/keyspace",
        about: "ScyllaDB, by the driver of `cassandra`",
        availability: Availability::Not(
            "no server of it is available here; `cassandra` has its driver, and was not tried with it",
        ),
    },
    Known { scheme: "ydb", form: "ydb://host:port/database", about: "YDB", availability: Availability::Not(NO_SERVER) },
];

/// Other names of schemes.
const ALIASES: [(&str, &str); 1] = [("postgresql", "postgres")];

/// The scheme of `target` among `schemes`, those that this binary has.
pub fn find<'s>(schemes: &'s [Scheme], target: &Target) -> Result<&'s Scheme, Failure> {
    let name = canonical(&target.scheme);
    if let Some(scheme) = schemes.iter().find(|scheme| scheme.name == name) {
        return Ok(scheme);
    }
    let why = match KNOWN.iter().find(|known| known.scheme == name) {
        Some(Known { availability: Availability::Not(why), .. }) => format!("`{name}` cannot be measured: {why}"),
        Some(_) => format!("this binary has no `{name}`: run it with {}", command(name)),
        None => format!("there is no scheme `{name}`; `larch bench targets` lists them"),
    };
    Err(Failure::session("target", format!("target `{}`: {why}", target.shown())))
}

/// Whether processes can have the same `target` at the same time: a server that runs by itself, or one that keeps nothing.
pub fn is_one_for_all(target: &Target) -> bool {
    let name = canonical(&target.scheme);
    let is_server = KNOWN.iter().any(|known| known.scheme == name && known.form.contains("://"));
    name == harness::noop::SCHEME.name || (is_server && target.place.starts_with("//"))
}

/// The name of a scheme that may have been written by another one.
pub fn canonical(scheme: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == scheme).map_or(scheme, |(_, name)| name)
}

fn command(scheme: &str) -> String {
    format!("cargo x bench --with {scheme} …")
}

/// The list, as text: key-value stores, then databases of TPC-C.
pub fn list(schemes: &[Scheme], tpcc: &[tpcc::Scheme]) -> String {
    let built = |known: &Known| schemes.iter().find(|scheme| scheme.name == known.scheme);
    let form = KNOWN.iter().map(|known| known.form.len()).max().unwrap_or_default();
    let mut text = format!("{:form$}  {:9}  {:8}  what it is\n", "target", "built", "run here");
    for known in &KNOWN {
        let (state, run, rest) = match (built(known), &known.availability) {
            (Some(_), Availability::Not(why)) => ("built", "not", format!(": not run here, {why}")),
            (Some(_), _) => ("built", "run", String::new()),
            (None, Availability::Not(why)) => ("not built", "not", format!(": not run here, {why}")),
            (None, _) => ("not built", "run", format!(": {}", command(known.scheme))),
        };
        put(&mut text, format_args!("{:form$}  {state:9}  {run:8}  {}{rest}\n", known.form, known.about));
    }
    for own in schemes.iter().filter(|scheme| KNOWN.iter().all(|known| known.scheme != scheme.name)) {
        put(&mut text, format_args!("{:form$}  {:9}  {:8}  {}\n", own.form, "built", "run", own.about));
    }
    put_tpcc(&mut text, tpcc);
    text.push_str("\noptions, after `?` and between `&`, as in larch:DIR?cache=64MiB&durability=synced\n");
    for scheme in schemes.iter().filter(|scheme| !scheme.options.is_empty()) {
        put(&mut text, format_args!("  {}\n", scheme.name));
        for (name, about) in scheme.options {
            put(&mut text, format_args!("    {name:18} {about}\n"));
        }
    }
    text
}

/// What `larch bench tpcc` runs on.
fn put_tpcc(text: &mut String, tpcc: &[tpcc::Scheme]) {
    let is_run = |scheme: &&tpcc::Scheme| {
        let known = KNOWN.iter().find(|known| known.scheme == scheme.name);
        !known.is_some_and(|known| matches!(known.availability, Availability::Not(_)))
    };
    let (run, not): (Vec<_>, Vec<_>) = tpcc.iter().partition(is_run);
    let names = |schemes: &[&tpcc::Scheme]| schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(", ");
    put(text, format_args!("\nTPC-C runs on {}\n", names(&run)));
    if !not.is_empty() {
        put(text, format_args!("  and, as their manuals say, on {}: not run here, {NO_SERVER}\n", names(&not)));
    }
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes all");
}

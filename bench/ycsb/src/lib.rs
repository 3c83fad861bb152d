//! The Yahoo! Cloud Serving Benchmark, as its original in Java has it in version 0.17.0: its property files, its core
//! workload as clients for the harness, its output.
//!
//! ```text
//!   property files, -p name=value ──Properties──> Settings ──> Load, Run: clients draw what Java's draw
//!                                                    │                     │ the harness drives and measures
//!                                                    └──> export, Status <─┘
//! ```
//!
//! **What is the same, bit for bit** (compared with what the original's own classes draw and print; see `vectors/`):
//! keys, distributions, operations and their order, fields, lengths of scans, values with `dataintegrity`. Random
//! numbers are those of `ThreadLocalRandom` in Java 17. A client has its own stream, made from the seed and its number;
//! so a run can be repeated, which the original cannot.
//!
//! **What is different:**
//!
//! * Random values are other bytes, of a stream of their own: with or without them the same keys are drawn.
//! * Clients share nothing but the number of the last record, and that only if they insert. `sequential` and the load
//!   are dealt out in turns. With `latest`, a client may for a moment draw with the constants of a few records ago.
//! * Numbers of records have 63 bits; the original cuts them to 31.
//! * A read-modify-write whose read fails or finds nothing writes nothing.
//! * A load without `insertcount` ends where the records do, not `recordcount` records after `insertstart`.
//! * Wrong values of properties are errors. The original takes some of them for the default, or dies of them later.
//! * Single times (`raw`) are written while it runs, so that memory stays what it is: lines of different kinds stand
//!   between each other. What lies outside the window is left out. `intended` times are refused with a rate.
//! * Logs of histograms (`hdrhistogram.fileoutput`) have a line for every second, not for every status line.
//! * Output: see [`export`].
//!
//! Powers and logarithms are those of the system's mathematical library. The library of glibc gives the same powers as
//! Java in all vectors. Its logarithms sometimes differ in the last bit, which no number of a record has shown.

mod ceiling;
mod draw;
mod generator;
mod key;
mod keyspace;
mod kinds;
mod load;
mod properties;
mod random;
mod raw;
mod report;
mod run;
mod settings;
#[cfg(test)]
mod tests;
mod value;
#[cfg(test)]
mod vectors;

pub use ceiling::Ceiling;
pub use generator::{BadHistogram, Histogram, Zipfian};
pub use key::KeyNames;
pub use load::{Load, LoadClient, LoadRows};
pub use properties::{BadSyntax, Properties};
pub use random::Random;
pub use raw::{RawError, RawLog};
pub use report::{Status, export, hdr_logs, seed_line};
pub use run::{Run, RunClient};
pub use settings::{
    BadProperty, Drive, FieldLength, Format, Interval, KeyDistribution, Measure, Operations, Output, Records, Settings,
};
pub use value::Text;

/// The properties of the official workload `name`, from `a` to `f`.
pub fn built_in(name: &str) -> Option<Properties> {
    let file = match name {
        "a" => include_str!("../workloads/a.properties"),
        "b" => include_str!("../workloads/b.properties"),
        "c" => include_str!("../workloads/c.properties"),
        "d" => include_str!("../workloads/d.properties"),
        "e" => include_str!("../workloads/e.properties"),
        "f" => include_str!("../workloads/f.properties"),
        _ => return None,
    };
    let mut properties = Properties::new();
    properties.load(file.as_bytes()).expect("the tests read all of them");
    Some(properties)
}

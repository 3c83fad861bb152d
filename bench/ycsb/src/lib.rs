//! The Yahoo! Cloud Serving Benchmark, following version 0.17.0 of the original in Java. It has the original's
//! property files and output, and its core workload as clients for the harness.
//!
//! ```text
//!   property files, -p name=value ──Properties──> Settings ──> Load, Run: clients draw what Java's draw
//!                                                    │                     │ the harness drives and measures
//!                                                    └──> export, Status <─┘
//! ```
//!
//! **What is the same, bit for bit** (compared with the output of the original's own classes; see `vectors/`):
//! keys, distributions, operations and their order, fields, lengths of scans, and values with `dataintegrity`. The
//! random numbers are those of `ThreadLocalRandom` in Java 17. Each client has its own stream of random numbers,
//! which depends on the seed and the client's number. Therefore a run can be repeated, which is impossible in the
//! original.
//!
//! **What is different:**
//!
//! * The bytes of random values differ from the original's. They come from a separate stream of random numbers, so
//!   they do not influence which keys are drawn.
//! * Clients share only the number of the last record, and only if they insert. In a load, and in a run with
//!   `sequential`, each client takes every n-th record, where n is the number of clients. With `latest`, a client
//!   may for a short time draw as if the newest few records did not exist yet.
//! * Record numbers have 63 bits. The original cuts them to 31 bits.
//! * If the read of a read-modify-write fails or finds nothing, nothing is written.
//! * A load without `insertcount` ends after the last record. The original ends such a load at the record
//!   `insertstart + recordcount`.
//! * Wrong property values are errors. The original uses the default in place of some of these values, and fails
//!   later because of others.
//! * Single times (`raw`) are written to a file during the run, so that memory does not grow. Therefore lines of
//!   different kinds are mixed in the file. Times outside of the measured window are left out. If a rate is set, a
//!   file of `intended` times is refused.
//! * Logs of histograms (`hdrhistogram.fileoutput`) have a line for every second. In the original, they have a line
//!   for every status line.
//! * Output: see [`export`].
//!
//! Powers and logarithms come from the system's mathematical library. In all vectors, glibc's library gives the
//! same powers as Java. Logarithms sometimes differ from Java's in the last bit. No such difference has ever
//! changed the number of a record.

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
    BadProperty, Drive, FieldLength, Format, KeyDistribution, MeasurementInterval, MeasurementType, Operations, Output,
    Records, Settings,
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

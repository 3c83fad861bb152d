//! Results as files: what was run, on which machine, and with which result, so that others can judge and repeat it.
//!
//! [`Report`] is everything, as JSON; `csv`, `hdr_log` and `text` are views of it. The format is described in
//! `docs/format/bench-result.md`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "results are files of the machine")]

pub mod csv;
pub mod environment;
pub mod hdr_log;
pub mod live;
pub mod merge;
pub mod million;
pub mod text;

#[cfg(test)]
mod tests;

pub use environment::Environment;
pub use million::{Meter, Million};

use crate::measured::Measured;
use crate::password::{SECRET, without_password};
use crate::plan::Plan;
use crate::share::Share;
use crate::store::Setting;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// What the first member of a file says.
const FORMAT: &str = "larch-bench-result";
/// Version of the format that is written and read.
const VERSION: u32 = 1;

/// Runs that were made one after the other, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    format: String,
    version: u32,
    /// The program and the machine.
    pub environment: Environment,
    /// Results in the order they were made.
    pub runs: Vec<Run>,
}

/// One run: a load, or a workload on what was loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What it is called: `load`, `workload a`.
    pub name: String,
    /// The store as it was asked for, without a password.
    pub target: String,
    /// The store as it described itself.
    pub settings: Vec<Pair>,
    /// Everything that decides what the clients do.
    pub workload: Vec<Pair>,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// Its share of a run that several processes made together, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// How it was run.
    pub plan: Plan,
    /// Processor time an operation costs on a store that does nothing, in nanoseconds, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noop_nanos: Option<f64>,
    /// How long the store went on in the background after the run, in nanoseconds, if it was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_nanos: Option<u64>,
    /// What an hour of a processor costs, in any currency, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// What a million operations cost. It is made anew from the rest where the run is written, and not read.
    #[serde(default, skip_deserializing)]
    million: Million,
    /// The figures that TPC-C's own rules make of a run of it. The writer of a result makes them anew; they are not
    /// read.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub tpcc: Option<serde_json::Value>,
    /// What must be known before these numbers are believed.
    pub warnings: Vec<String>,
    /// Why the run ended before it should have, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The result.
    pub measured: Measured,
}

/// A name and what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The name.
    pub name: String,
    /// What it says.
    pub value: String,
}

impl Pair {
    /// `name` and `value`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// A property of a workload; the value is `***` if the name says that it is a password.
    pub fn property(name: &str, value: &str) -> Self {
        Self::new(name, if name.to_ascii_lowercase().contains(SECRET) { "***" } else { value })
    }
}

impl From<Setting> for Pair {
    fn from(setting: Setting) -> Self {
        Self::new(setting.name, setting.value)
    }
}

impl Run {
    /// A run that came to `measured`. Warnings and what else is known are added by the caller.
    pub fn new(name: impl Into<String>, target: &str, plan: &Plan, measured: Measured) -> Self {
        Self {
            name: name.into(),
            target: without_password(target),
            settings: Vec::new(),
            workload: Vec::new(),
            seed: 0,
            share: None,
            plan: plan.clone(),
            noop_nanos: None,
            settled_nanos: None,
            price: None,
            million: Million::default(),
            tpcc: None,
            warnings: Vec::new(),
            error: None,
            measured,
        }
    }

    /// What a million of its operations cost, where an hour of a processor costs `price`.
    pub fn million(&self, price: Option<f64>) -> Million {
        Million::of(&self.measured, self.noop_nanos, price)
    }
}

/// A result that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The system refused.
    #[error("{path}: {error}")]
    File {
        /// Which file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is not a result, or not one of this version.
    #[error("{path} is not a result of a benchmark: {why}")]
    Content {
        /// Which file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl Report {
    /// A report without runs.
    pub fn new(environment: Environment) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, environment, runs: Vec::new() }
    }

    /// The whole as JSON.
    pub fn json(&self) -> String {
        let with_cost = |run: &Run| Run { million: run.million(run.price), ..run.clone() };
        let whole = Self {
            format: self.format.clone(),
            version: self.version,
            environment: self.environment.clone(),
            runs: self.runs.iter().map(with_cost).collect(),
        };
        let mut text = serde_json::to_string_pretty(&whole).expect("all of it can be written");
        text.push('\n');
        text
    }

    /// What [`Report::json`] wrote, or why not.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
            /// What a reader must know besides the version; this one knows nothing of that kind.
            #[serde(default)]
            requires: Vec<String>,
        }
        let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if head.format != FORMAT {
            return Err(format!("its format is `{}` and should be `{FORMAT}`", head.format));
        }
        if head.version != VERSION {
            let version = head.version;
            return Err(format!("it was made by a newer Larch: version {version}; this one reads {VERSION}"));
        }
        if let Some(what) = head.requires.first() {
            return Err(format!("it was made by a newer Larch: {what}; read it with that release or a later one"));
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Writes it to the file `path`, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        write_whole(path, self.json().as_bytes())
    }

    /// Reads the file `path`.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(|why| ReportError::Content { path: name, why }),
            Err(error) => Err(ReportError::File { path: name, error }),
        }
    }
}

/// Writes a file beside `path` and gives it that name, so that no half of a result is ever found there. What is there
/// and no file, as /dev/stdout, takes the bytes itself.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let written = match is_special(path) {
        true => std::fs::OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes)),
        false => {
            let beside = beside(path);
            let written = std::fs::File::create(&beside).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()?;
                std::fs::rename(&beside, path)
            });
            if written.is_err() {
                // Half of a result is worth nothing. The error to report is the one of writing.
                std::fs::remove_file(&beside).unwrap_or_default();
            }
            written
        }
    };
    written.map_err(|error| ReportError::File { path: path.display().to_string(), error })
}

/// Complains if [`write_whole`] could not write to `path` now, because a measurement whose result cannot be written is
/// lost.
pub fn check_place(path: &Path) -> Result<(), ReportError> {
    let failed = |error| ReportError::File { path: path.display().to_string(), error };
    if path.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    if is_special(path) {
        return Ok(());
    }
    let beside = beside(path);
    std::fs::File::create(&beside).and_then(|_| std::fs::remove_file(&beside)).map_err(failed)
}

/// Whether `path` is there and neither file nor directory: a device, a pipe.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

fn beside(path: &Path) -> std::path::PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

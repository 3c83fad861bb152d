//! Results as files: what was run, on which machine, and with which result. With such a file, others can judge and
//! repeat the run.
//!
//! [`Report`] holds everything, as JSON; `csv`, `hdr_log` and `text` are views of the report. The format is
//! described in `docs/format/bench-result.md`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "results are files of the machine")]

pub mod csv;
pub mod environment;
pub mod figures;
pub mod hdr_log;
pub mod live;
pub mod merge;
pub mod million;
pub mod text;

#[cfg(test)]
pub(crate) mod tests;

pub use environment::Environment;
pub use figures::{Figure, Figures};
pub use million::{Meter, Million};

use crate::measured::Measured;
use crate::password::{SECRET, without_password};
use crate::plan::Plan;
use crate::share::Share;
use crate::store::Setting;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

/// The value of the first member of a file, `format`.
const FORMAT: &str = "larch-bench-result";
/// The version of the format that this module reads and writes.
const VERSION: u32 = 1;

/// A window that is shorter than this is marked.
const SHORTEST_NANOS: u64 = 10_000_000_000;

/// Runs that were made one after the other, and the machine on which they were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    format: String,
    version: u32,
    /// The program and the machine.
    pub environment: Environment,
    /// Results in the order in which they were made.
    pub runs: Vec<Run>,
}

/// One run: a load, or a workload on what was loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The name of the run: `load`, `workload a`.
    pub name: String,
    /// The target of the run, without a password.
    pub target: String,
    /// The store as it described itself.
    pub settings: Vec<Pair>,
    /// Everything that decides what the clients do.
    pub workload: Vec<Pair>,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// The share of the run that this process made, if several processes made the run together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// How it was run.
    pub plan: Plan,
    /// Processor time of an operation on a store that does nothing, in nanoseconds, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noop_nanos: Option<f64>,
    /// How long the store kept working in the background after the run, in nanoseconds, if the program waited for
    /// this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_nanos: Option<u64>,
    /// What an hour of a processor costs, in any currency, if a price was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// What a million operations cost. Computed from the other fields when the run is written, and not read from a
    /// file.
    #[serde(default, skip_deserializing)]
    million: Million,
    /// The figures of a TPC-C run by TPC-C's own rules. The program that writes a result computes them; they are not
    /// read from a file.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub tpcc: Option<serde_json::Value>,
    /// All figures of the run, for programs that show them. Computed when the run is written, and not read from a
    /// file.
    #[serde(default, skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Warnings that a reader must know before believing the numbers of the run.
    pub warnings: Vec<String>,
    /// The reason why the run ended too early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The result.
    pub measured: Measured,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl Pair {
    /// A pair of `name` and `value`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// A property of a workload. If the name says that the property is a password, the value is `***`.
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
    /// A run with the result `measured`. The caller adds warnings and everything else that is known.
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
            figures: Vec::new(),
            warnings: Vec::new(),
            error: None,
            measured,
        }
    }

    /// The figures of the run: those that its command has computed, or else those that all workloads have.
    pub fn all_figures(&self) -> Cow<'_, [Figure]> {
        if self.figures.is_empty() { figures::figures(self).into() } else { self.figures.as_slice().into() }
    }

    /// The mark of a run whose window is so short that other runs may give other figures. `None` if it is long
    /// enough.
    pub fn short_window(&self) -> Option<String> {
        let nanos = self.measured.nanos;
        (nanos < SHORTEST_NANOS).then(|| {
            format!(
                "SHORT WINDOW of {}: it is below ten seconds, so another run may give other figures",
                text::nanos(nanos as f64)
            )
        })
    }

    /// What a million of the run's operations cost, if an hour of a processor costs `price`.
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
    /// The file is not a result, or is a result of another version.
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

    /// The whole report as JSON.
    pub fn json(&self) -> String {
        let with_cost =
            |run: &Run| Run { million: run.million(run.price), figures: run.all_figures().into_owned(), ..run.clone() };
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

    /// Parses the text that [`Report::json`] wrote. The error says why the text is not such a report.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
            /// Names of features that a reader must know in addition to the version. This reader knows no such
            /// feature.
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

    /// Writes the report to the file `path`, as a whole or not at all.
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

/// Writes a file beside `path` and then renames it to `path`, so that `path` never holds half of a result. If
/// `path` exists and is not a file, for example /dev/stdout, the bytes are written directly to `path`.
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
                // Half of a result is worth nothing. If removing the half result also fails, the error of the write
                // is still the error to report.
                std::fs::remove_file(&beside).unwrap_or_default();
            }
            written
        }
    };
    written.map_err(|error| ReportError::File { path: path.display().to_string(), error })
}

/// Returns an error if [`write_whole`] could not write to `path` now. A measurement is lost if its result cannot be
/// written.
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

/// Whether `path` exists and is neither a file nor a directory, for example a device or a pipe.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

fn beside(path: &Path) -> std::path::PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

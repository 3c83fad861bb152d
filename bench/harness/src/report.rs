//! Results as files: what was run, on what, and what came of it, so that somebody else can judge and repeat it.
//!
//! [`Report`] is all there is, as JSON; `csv`, `hdr_log` and `text` are views of it. The format is described in
//! `docs/format/bench-result.md`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "results are files of the machine")]

pub mod csv;
pub mod environment;
pub mod hdr_log;
pub mod text;

#[cfg(test)]
mod tests;

pub use environment::Environment;

use crate::measured::Measured;
use crate::run::Plan;
use crate::store::Setting;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

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
    /// The store as it said it was.
    pub settings: Vec<Pair>,
    /// Everything that decides what the clients do.
    pub workload: Vec<Pair>,
    /// Where all that is drawn comes from.
    pub seed: u64,
    /// How it was run.
    pub plan: Plan,
    /// Processor time an operation costs on a store that does nothing, in nanoseconds, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noop_nanos: Option<f64>,
    /// What must be known before these numbers are believed.
    pub warnings: Vec<String>,
    /// Why the run ended before it should have, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What came of it.
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
            plan: plan.clone(),
            noop_nanos: None,
            warnings: Vec::new(),
            error: None,
            measured,
        }
    }
}

/// A target whose password, between `user:` and `@` or after `password=`, is replaced by `***`.
pub fn without_password(target: &str) -> String {
    let (place, options) = target.split_once('?').map_or((target, None), |(place, options)| (place, Some(options)));
    let hidden = place.split_once("//").and_then(|(scheme, rest)| {
        let (user, place) = rest.rsplit_once('@')?;
        let (user, _) = user.split_once(':')?;
        Some(format!("{scheme}//{user}:***@{place}"))
    });
    let mut shown = hidden.unwrap_or_else(|| place.to_owned());
    if let Some(options) = options {
        let hidden = |option| if str::starts_with(option, "password=") { "password=***" } else { option };
        shown.push('?');
        shown.push_str(&options.split('&').map(hidden).collect::<Vec<_>>().join("&"));
    }
    shown
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
        let mut text = serde_json::to_string_pretty(self).expect("all of it can be written");
        text.push('\n');
        text
    }

    /// What [`Report::json`] wrote, or why not.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if head.format != FORMAT {
            return Err(format!("its format is `{}` and should be `{FORMAT}`", head.format));
        }
        if head.version != VERSION {
            return Err(format!("its version is {} and this program reads {VERSION}", head.version));
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

/// Writes a file beside `path` and gives it that name, so that no half of a result is ever found there. What is no file,
/// such as a pipe or `/dev/null`, is written to.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let (mut file, beside) = begin(path)?;
    let written = file.write_all(bytes).and_then(|()| match &beside {
        Some(beside) => file.sync_all().and_then(|()| std::fs::rename(beside, path)),
        None => Ok(()),
    });
    written.map_err(|error| {
        // The first error is the one to tell.
        beside.iter().for_each(|beside| std::fs::remove_file(beside).unwrap_or_default());
        failed(path, error)
    })
}

/// Whether [`write_whole`] can write to `path`, as far as that is known before it does.
pub fn can_write(path: &Path) -> Result<(), ReportError> {
    if is_special(path) {
        // Whoever reads from it would take this for the end.
        return Ok(());
    }
    match begin(path)? {
        (_, Some(beside)) => std::fs::remove_file(beside).map_err(|error| failed(path, error)),
        (_, None) => Ok(()),
    }
}

/// The file to write to and, if it is to get the name `path` when it is whole, its own.
fn begin(path: &Path) -> Result<(File, Option<PathBuf>), ReportError> {
    if is_special(path) {
        let file = File::options().write(true).open(path).map_err(|error| failed(path, error))?;
        return Ok((file, None));
    }
    if path.is_dir() {
        return Err(failed(path, std::io::ErrorKind::IsADirectory.into()));
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let file = File::create(&beside).map_err(|error| failed(path, error))?;
    Ok((file, Some(beside)))
}

/// Whether `path` is there and neither a file nor a directory.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn failed(path: &Path, error: std::io::Error) -> ReportError {
    ReportError::File { path: path.display().to_string(), error }
}

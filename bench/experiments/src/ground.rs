//! The state of an experiment: its directory, its databases, and the cells (single measurements) that it has so far. A
//! cell is written to disk as soon as it is measured, so an interrupted experiment resumes where it stopped.
//!
//! ```text
//! DIR/cells.jsonl   a line that says which experiment it is, then a line for each cell and each database
//! DIR/data/         databases, while the experiment goes on; one that is not complete is called NAME.part
//! DIR/result.json   everything that was measured
//! DIR/index.html    the same as a page
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "results and databases of real files, never simulated"
)]

use crate::args::{ExperimentArgs, Scale};
use crate::disk::bytes_under;
use crate::made::{Made, remove};
use harness::directory::failure;
use harness::{Failure, Million};
use kit::scratch::check_room;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use suite::results::VERSION;
use suite::stop::{INTERRUPTED, Stop};

#[cfg(test)]
mod tests;

/// The state of an experiment.
pub struct Ground {
    /// The size of the experiment.
    pub scale: Scale,
    /// ^C.
    pub stop: Stop,
    directory: PathBuf,
    cells: BTreeMap<String, Value>,
    failures: BTreeMap<String, String>,
    file: File,
}

/// The first line of the file of cells.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    experiment: String,
    scale: String,
    version: String,
}

/// A line of the file of cells.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    cell: String,
    measured: Value,
}

impl Ground {
    /// Opens the directory of experiment `name`, whose databases take at most `most_bytes`, and reads the cells
    /// that are there, unless everything is to be measured again.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created, if the file of cells cannot be read or written, or if the disk has
    /// too little room.
    pub fn open(name: &str, args: &ExperimentArgs, most_bytes: u64, stop: Stop) -> Result<Self, Failure> {
        let directory = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("larch-experiment-{name}")));
        let head =
            Head { experiment: name.to_owned(), scale: args.scale.name().to_owned(), version: VERSION.to_owned() };
        let made = fs::create_dir_all(&directory);
        made.map_err(|error| refused(format!("cannot make {}: {error}", directory.display())))?;
        let path = directory.join("cells.jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(refused(format!("cannot read {}: {error}", path.display()))),
        };
        let cells = known(&text, &head).filter(|_| !args.again);
        let advice = "name a directory with more, or measure less";
        // Files left by an interrupted experiment take no new room.
        let needed_bytes = most_bytes.saturating_sub(bytes_under(&directory));
        check_room(&directory, needed_bytes, advice).map_err(refused)?;
        let cannot_write = |error: std::io::Error| refused(format!("cannot write {}: {error}", path.display()));
        let is_new = cells.is_none();
        let mut options = OpenOptions::new();
        options.create(true).append(!is_new).write(true).truncate(is_new);
        let mut file = options.open(&path).map_err(cannot_write)?;
        if is_new {
            writeln!(file, "{}", json(&head)).map_err(cannot_write)?;
        } else if !text.ends_with('\n') {
            // The last line was cut short: begin the next cell on a new line.
            writeln!(file).map_err(cannot_write)?;
        }
        let cells = cells.unwrap_or_default();
        if !cells.is_empty() {
            let count = cells.len();
            suite::say(&format!("{count} cells are in {} already; --again measures them again", path.display()));
        }
        Ok(Self { scale: args.scale, stop, directory, cells, failures: BTreeMap::new(), file })
    }

    /// The directory of the results.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A path for the files `name`, in a directory that exists.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created.
    pub fn data(&self, name: &str) -> Result<PathBuf, Failure> {
        let data = self.directory.join("data");
        fs::create_dir_all(&data).map_err(|error| refused(format!("cannot make {}: {error}", data.display())))?;
        Ok(data.join(name))
    }

    /// Returns the database that `build` creates, and what `build` returned, which is kept like a cell. A database that
    /// is complete is used again; an unfinished one is removed.
    ///
    /// # Errors
    ///
    /// Returns the errors of `build`, and fails if a directory cannot be created or removed, or the result cannot
    /// be written, or ^C was pressed.
    pub fn built<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        build: impl FnOnce(&Path, &Stop) -> Result<T, Failure>,
    ) -> Result<(Made, T), Failure> {
        let place = self.data(name)?;
        if let Some(known) = self.told(name).filter(|_| place.exists()) {
            return Ok((Made { place }, known));
        }
        self.check_stop()?;
        let part = self.data(&format!("{name}.part"))?;
        remove(&place)?;
        remove(&part)?;
        let built = build(&part, &self.stop);
        // An error after ^C comes from it.
        self.check_stop()?;
        let built = built?;
        fs::rename(&part, &place).map_err(|error| failure(&error, "rename", &part))?;
        self.keep(&data_name(name), serde_json::to_value(&built).expect("names are texts"))?;
        Ok((Made { place }, built))
    }

    /// [`Ground::built`] for databases that are needed one after the other: removes the others before it builds one.
    ///
    /// # Errors
    ///
    /// As [`Ground::built`].
    pub fn built_alone<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        build: impl FnOnce(&Path, &Stop) -> Result<T, Failure>,
    ) -> Result<(Made, T), Failure> {
        if !self.data(name)?.exists() {
            self.remove_data()?;
        }
        self.built(name, build)
    }

    /// Fails after ^C.
    pub fn check_stop(&self) -> Result<(), Failure> {
        match self.stop.is_pressed() {
            false => Ok(()),
            true => Err(Failure::session(INTERRUPTED, "interrupted; the same command goes on from here")),
        }
    }

    /// Writes a cell to disk.
    pub fn keep(&mut self, name: &str, measured: Value) -> Result<(), Failure> {
        let line = Line { cell: name.to_owned(), measured };
        let written = writeln!(self.file, "{}", json(&line)).and_then(|()| self.file.sync_data());
        written.map_err(|error| refused(format!("cannot write cell {name}: {error}")))?;
        self.cells.insert(line.cell, line.measured);
        Ok(())
    }

    /// Notes that the cell `name` failed in this run.
    pub fn fail(&mut self, name: &str, why: String) {
        self.failures.insert(name.to_owned(), why);
    }

    /// The cells that failed in this run, with the reasons.
    pub fn failures(&self) -> &BTreeMap<String, String> {
        &self.failures
    }

    /// The value of `cell`, if it was measured.
    pub fn known<T: DeserializeOwned>(&self, cell: impl Display) -> Option<T> {
        serde_json::from_value(self.cells.get(&cell.to_string())?.clone()).ok()
    }

    /// The values of `cell` in all repeats.
    pub fn all<T: DeserializeOwned, C: Display>(&self, repeats: u64, cell: impl Fn(u64) -> C) -> Vec<T> {
        (0..repeats).filter_map(|repeat| self.known(cell(repeat))).collect()
    }

    /// What the build of the database `name` returned.
    pub fn told<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.known(data_name(name))
    }

    /// Whether the cell `name` was measured.
    pub fn has(&self, name: &str) -> bool {
        self.cells.contains_key(name)
    }

    /// All cells by name.
    pub fn cells(&self) -> &BTreeMap<String, Value> {
        &self.cells
    }

    /// The cells that have a cost of a million operations (field `million`), with that cost.
    pub fn costs(&self) -> Vec<(String, Million)> {
        let cost = |cell: &Value| serde_json::from_value::<Million>(cell.get("million")?.clone()).ok();
        self.cells.iter().filter_map(|(name, cell)| Some((name.clone(), cost(cell)?))).collect()
    }

    /// Removes the databases. The cells stay.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be removed.
    pub fn remove_data(&self) -> Result<(), Failure> {
        remove(&self.directory.join("data"))
    }
}

/// The cell of what the build of the database `name` returned.
fn data_name(name: &str) -> String {
    format!("data of {name}")
}

/// Parses a file of cells, skipping lines that were cut short. `None` if its head is not `head`.
fn known(text: &str, head: &Head) -> Option<BTreeMap<String, Value>> {
    let mut lines = text.lines();
    let first: Head = serde_json::from_str(lines.next()?).ok()?;
    (first == *head).then(|| {
        let cells = lines.filter_map(|line| serde_json::from_str::<Line>(line).ok());
        cells.map(|cell| (cell.cell, cell.measured)).collect()
    })
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("names are texts")
}

fn refused(text: String) -> Failure {
    Failure::session("target", text)
}

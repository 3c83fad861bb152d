//! The state of an experiment: its directory, and the cells (single measurements) that it has so far. A cell is
//! written to disk as soon as it is measured, so an interrupted experiment resumes where it stopped.
//!
//! ```text
//! DIR/cells.jsonl   a line that says which experiment it is, then a line for each cell
//! DIR/data/         databases, while the experiment goes on
//! DIR/result.json   everything that was measured
//! DIR/index.html    the same as a page
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "results and databases of real files, never simulated"
)]

use crate::args::{ExperimentArgs, Scale};
use harness::{Failure, Million};
use kit::scratch::check_room;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use suite::results::VERSION;
use suite::stop::Stop;

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
struct Cell {
    cell: String,
    measured: Value,
}

impl Ground {
    /// Opens the directory of experiment `name`, whose databases take at most `most_bytes`, and reads the cells
    /// that are there.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created, if the file of cells cannot be read or written, or if the disk has
    /// too little room.
    pub fn open(name: &str, args: &ExperimentArgs, most_bytes: u64) -> Result<Self, Failure> {
        Self::with_stop(name, args, most_bytes, Stop::catch()?)
    }

    /// [`Ground::open`] for a caller that catches ^C itself.
    ///
    /// # Errors
    ///
    /// As [`Ground::open`].
    pub fn with_stop(name: &str, args: &ExperimentArgs, most_bytes: u64, stop: Stop) -> Result<Self, Failure> {
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
        let cells = known(&text, &head);
        let advice = "name a directory with more by --out, or a smaller --scale";
        // Files left by an interrupted experiment take no new room.
        let needed_bytes = most_bytes.saturating_sub(suite::bytes_under(&directory));
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
            suite::say(&format!("{count} cells are in {} already; remove it to measure them again", path.display()));
        }
        Ok(Self { scale: args.scale, stop, directory, cells, file })
    }

    /// The directory of the results.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A path for the database `name`, in a directory that exists.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created.
    pub fn data(&self, name: &str) -> Result<PathBuf, Failure> {
        let data = self.directory.join("data");
        fs::create_dir_all(&data).map_err(|error| refused(format!("cannot make {}: {error}", data.display())))?;
        Ok(data.join(name))
    }

    /// Returns the path of the database that `build` creates, and what `build` returned. A database that an earlier
    /// run completed is used again; an unfinished one is removed. `None` if ^C was pressed.
    ///
    /// # Errors
    ///
    /// Returns the errors of `build`, and fails if a directory cannot be created or removed, or the result cannot
    /// be written.
    pub fn built<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        build: impl FnOnce(&Path, &Stop) -> Result<T, Failure>,
    ) -> Result<Option<(PathBuf, T)>, Failure> {
        let place = self.data(name)?;
        let cell = format!("data of {name}");
        if let Some(known) = self.known(&cell).filter(|_| place.exists()) {
            return Ok(Some((place, known)));
        }
        remove(&place)?;
        if self.stop.is_pressed() {
            return Ok(None);
        }
        let built = build(&place, &self.stop)?;
        if self.stop.is_pressed() {
            return Ok(None);
        }
        self.keep(&cell, &built)?;
        Ok(Some((place, built)))
    }

    /// Returns the cell `name`, measuring it now if it is missing. `None` if ^C was pressed before it was measured.
    ///
    /// # Errors
    ///
    /// Returns the errors of `measure`, and fails if the cell cannot be written.
    pub fn cell<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        measure: impl FnOnce(&Stop) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let known = self.known(name);
        if known.is_some() {
            return Ok(known);
        }
        if self.stop.is_pressed() {
            return Ok(None);
        }
        let measured = measure(&self.stop)?;
        // Drop a measurement that ^C cut short.
        if self.stop.is_pressed() {
            return Ok(None);
        }
        self.keep(name, &measured)?;
        Ok(Some(measured))
    }

    /// Writes a cell to disk.
    fn keep<T: Serialize>(&mut self, name: &str, measured: &T) -> Result<(), Failure> {
        let value = serde_json::to_value(measured).expect("names are texts");
        let line = json(&Cell { cell: name.to_owned(), measured: value.clone() });
        let written = writeln!(self.file, "{line}").and_then(|()| self.file.sync_data());
        written.map_err(|error| refused(format!("cannot write cell {name}: {error}")))?;
        self.cells.insert(name.to_owned(), value);
        Ok(())
    }

    /// The value of cell `name`, if it was measured.
    pub fn known<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.cells.get(name)?.clone()).ok()
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

fn remove(directory: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(refused(format!("cannot remove {}: {error}", directory.display())))
        }
        _ => Ok(()),
    }
}

/// Parses a file of cells, skipping lines that were cut short. `None` if its head is not `head`.
fn known(text: &str, head: &Head) -> Option<BTreeMap<String, Value>> {
    let mut lines = text.lines();
    let first: Head = serde_json::from_str(lines.next()?).ok()?;
    (first == *head).then(|| {
        let cells = lines.filter_map(|line| serde_json::from_str::<Cell>(line).ok());
        cells.map(|cell| (cell.cell, cell.measured)).collect()
    })
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("names are texts")
}

fn refused(text: String) -> Failure {
    Failure::session("target", text)
}

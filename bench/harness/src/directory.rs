//! Opens and locks the directory of an embedded store, which holds a note that names the engine and the options with
//! which its files were made.
//!
//! ```text
//!   DIR/store.txt   engine rocksdb          the engine and the options of the files, a line each, because engines do
//!                   table usertable         not keep them all. A directory without this file is never removed.
//!                   fields 10               Locked while the store is open
//!                   page 16 KiB
//!   DIR/data/       the engine's own
//! ```

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

#[cfg(test)]
mod tests;

use crate::failure::Failure;
use crate::request::Table;
use crate::target::{Opening, Target};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

const NOTE: &str = "store.txt";
const DATA: &str = "data";

/// The directory of an open store. As long as the store is open, no other process can open the directory as a store.
#[derive(Debug)]
pub struct Directory {
    data: PathBuf,
    /// The file of the note. It stays locked until the store is closed.
    note: File,
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A program that another thread is just starting has a copy of the descriptor for a moment, which would keep
        // the lock.
        self.note.unlock().ok();
    }
}

impl Directory {
    /// Opens the directory that `target` names, for a store of its scheme. `shape` has the options that decide how
    /// the store's files are made: each has a name and a value, in a form for people. An existing store must have
    /// been made with the same options.
    pub fn open(
        target: &Target,
        table: &Table,
        opening: Opening,
        shape: &[(&'static str, String)],
    ) -> Result<Self, Failure> {
        let place = target.directory()?;
        let data = place.join(DATA);
        let wanted = describe(&target.scheme, table, shape);
        let Some(mut note) = open_note(place)? else {
            if opening == Opening::Existing {
                let text = format!("there is no store in {}: load it first", place.display());
                return Err(Failure::session("no_store", text));
            }
            fs::create_dir_all(&data).map_err(|error| failure(&error, "make", &data))?;
            let path = place.join(NOTE);
            let mut note = File::create_new(&path).map_err(|error| failure(&error, "make", &path))?;
            lock(&note, place)?;
            note.write_all(wanted.as_bytes()).map_err(|error| failure(&error, "write", &path))?;
            return Ok(Self { data, note });
        };

        lock(&note, place)?;
        let path = place.join(NOTE);
        let mut found = String::new();
        note.read_to_string(&mut found).map_err(|error| failure(&error, "read", &path))?;
        let engine = found.lines().next().unwrap_or_default();
        if Some(engine) != wanted.lines().next() {
            let text = format!(
                "{} is not a store of {}: {NOTE} in it begins with `{engine}`; name another directory, or remove it",
                place.display(),
                target.scheme
            );
            return Err(Failure::session("not_this_engine", text));
        }
        if opening == Opening::Recreate {
            match fs::remove_dir_all(&data) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failure(&error, "remove", &data)),
            }
            fs::create_dir(&data).map_err(|error| failure(&error, "make", &data))?;
            fs::write(&path, &wanted).map_err(|error| failure(&error, "write", &path))?;
        } else if found != wanted {
            let text = format!(
                "the store in {} was made with other options ({}) than these ({}): give the same options, or load it again with \
                 --recreate",
                place.display(),
                one_line(&found),
                one_line(&wanted)
            );
            return Err(Failure::session("other_options", text));
        }
        Ok(Self { data, note })
    }

    /// The engine's own directory, which exists.
    pub fn data(&self) -> &Path {
        &self.data
    }
}

/// The note of the store in `place`. `None` if a new note may be made: `place` does not exist, or is empty.
fn open_note(place: &Path) -> Result<Option<File>, Failure> {
    let path = place.join(NOTE);
    match File::open(&path) {
        Ok(note) => return Ok(Some(note)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failure(&error, "open", &path)),
    }
    match fs::read_dir(place) {
        Ok(mut entries) => match entries.next() {
            None => Ok(None),
            Some(_) => {
                let text = format!(
                    "{} is not empty, and not a store of this program: it has no {NOTE}; name a new directory",
                    place.display()
                );
                Err(Failure::session("not_a_store", text))
            }
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failure(&error, "read", place)),
    }
}

fn lock(note: &File, place: &Path) -> Result<(), Failure> {
    match note.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let text = format!("the store in {} is open already, here or in another process", place.display());
            Err(Failure::session("locked", text))
        }
        Err(TryLockError::Error(error)) => Err(failure(&error, "lock", place)),
    }
}

fn describe(scheme: &str, table: &Table, shape: &[(&'static str, String)]) -> String {
    let mut lines = format!("engine {scheme}\ntable {}\nfields {}\n", table.name, table.fields.len());
    for (name, value) in shape {
        lines.push_str(&format!("{name} {value}\n"));
    }
    lines
}

fn one_line(lines: &str) -> String {
    lines.lines().collect::<Vec<_>>().join(", ")
}

/// The failure of `action` on `path`, which the system refused.
pub fn failure(error: &io::Error, action: &str, path: &Path) -> Failure {
    Failure::session(io_kind(error), format!("cannot {action} {}: {error}", path.display()))
}

/// The name under which an error of the system is counted.
pub fn io_kind(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "disk_full",
        ErrorKind::PermissionDenied => "not_allowed",
        ErrorKind::ReadOnlyFilesystem => "read_only",
        _ => "io",
    }
}

/// A number of bytes in the largest unit that divides it: `64 MiB`, `100 B`.
pub fn bytes_text(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} B")
}

//! A directory that is removed when the value that owns it is dropped.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io, process};

#[cfg(test)]
mod tests;

/// The number in the name of the next directory. No number is given twice: who drops a [`Scratch`] may find its
/// directory removed already, by its server's watchdog for instance, and must not remove the next one of that name.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A new directory. When the value is dropped, the directory is removed with everything in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A directory for a test, in the system's temporary directory, with `name` in its name.
    ///
    /// # Panics
    ///
    /// Panics if the directory cannot be made.
    pub fn new(name: &str) -> Self {
        Self::new_in(&std::env::temp_dir(), name).unwrap_or_else(|why| panic!("{why}"))
    }

    /// A directory in `parent`, with `name` in its name.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be made. The error is a sentence that names the directory.
    pub fn new_in(parent: &Path, name: &str) -> Result<Self, String> {
        loop {
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("larch-{name}-{}-{number}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                // A process that was killed has left it. Its number was ours.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("cannot make {}: {error}", path.display())),
            }
        }
    }

    /// Makes a directory for a benchmark in `parent`. If `parent` is missing, it is made, too. Without `parent`, the
    /// directory is made beside the directory of this program, so it is inside cargo's build directory. On ^C, calls
    /// `first`, removes the directory and ends the process.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says what the system refused.
    pub fn for_benchmark(parent: Option<&Path>, name: &str, first: impl Fn() + Send + 'static) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let beside = program.parent().and_then(Path::parent).ok_or("the program lies in no directory")?;
        let parent = parent.unwrap_or(beside);
        fs::create_dir_all(parent).map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
        let scratch = Self::new_in(parent, name)?;
        let path = scratch.path.clone();
        let on_interrupt = move || {
            first();
            if !remove_in_use(&path) {
                eprintln!("cannot remove {}", path.display());
            }
            process::exit(130);
        };
        ctrlc::set_handler(on_interrupt).map_err(|error| format!("cannot catch ^C: {error}"))?;
        Ok(scratch)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Removes everything in the directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refused to remove something.
    pub fn clear(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)?;
        fs::create_dir(&self.path)
    }

    /// Removes the directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refused to remove the directory.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error that ended the work was already reported. After `remove`, nothing is left to remove.
        fs::remove_dir_all(&self.path).unwrap_or_default();
    }
}

/// Removes a directory in which other threads or processes may still be making files. Tries many times, and returns
/// whether the directory is gone.
pub fn remove_in_use(path: &Path) -> bool {
    (0..100).any(|_| fs::remove_dir_all(path).is_ok() || !path.exists())
}

/// Checks that the disk of `place` has room for `needed_bytes`.
///
/// # Errors
///
/// Returns an error if the disk has too little room. The error is a sentence that says how much room is left, and
/// ends with `advice`.
pub fn check_room(place: &Path, needed_bytes: u64, advice: &str) -> Result<(), String> {
    let disk = rustix::fs::statvfs(place).map_err(|error| format!("{}: {error}: {advice}", place.display()))?;
    let room_bytes = disk.f_bavail * disk.f_frsize;
    if room_bytes >= needed_bytes {
        return Ok(());
    }
    let (room, needed) = (room_bytes >> 20, needed_bytes >> 20);
    Err(format!("{} has room for {room} MiB and this takes up to {needed} MiB: {advice}", place.display()))
}

//! Where the databases of a comparison lie: a directory of their own, removed whatever happens short of a kill.

#![allow(clippy::disallowed_methods, reason = "files beside the program, never simulated")]

use super::memory_limit;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// A new directory. Dropping it removes it with what is in it; so does ^C.
#[derive(Debug)]
pub struct Workplace {
    path: PathBuf,
}

impl Workplace {
    /// A directory in `parent`, or beside the directory of this program.
    pub fn new(parent: Option<&Path>, name: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let beside = program.parent().and_then(Path::parent).ok_or("the program lies in no directory")?;
        let path = parent.unwrap_or(beside).join(format!("{name}-{}", process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        let interrupted = path.clone();
        ctrlc::set_handler(move || {
            memory_limit::remove_all();
            // Peers that were making files are killed with this process; until then they may make more.
            let left = (0..100).all(|_| fs::remove_dir_all(&interrupted).is_err() && interrupted.exists());
            if left {
                eprintln!("cannot remove {}", interrupted.display());
            }
            process::exit(130);
        })
        .map_err(|error| format!("cannot catch ^C: {error}"))?;
        Ok(Self { path })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A name in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Complains if its disk has no room for `needed` bytes.
    pub fn check_room(&self, needed: u64) -> Result<(), String> {
        let about = rustix::fs::statvfs(&self.path).map_err(|error| format!("{}: {error}", self.path.display()))?;
        let room = about.f_bavail * about.f_frsize;
        if room >= needed {
            return Ok(());
        }
        Err(format!(
            "the databases may take {} MiB and the disk has room for {} MiB: name a directory with more by --dir, or \
             measure fewer rows with --records",
            needed >> 20,
            room >> 20
        ))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // After an error there is one to report already.
        fs::remove_dir_all(&self.path).unwrap_or_default();
    }
}

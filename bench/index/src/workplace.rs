//! The directory in which everything is built, removed whatever happens short of a kill.

use crate::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// A new directory. Dropping it removes it with what is in it; so does ^C.
pub struct Workplace {
    path: PathBuf,
}

impl Workplace {
    /// A directory in `parent`, or beside the directory of this program.
    pub fn new(parent: Option<&Path>) -> Result<Self> {
        let program = std::env::current_exe()?;
        let beside = program.parent().and_then(Path::parent).ok_or("the program lies in no directory")?;
        let path = parent.unwrap_or(beside).join(format!("bench-index-{}", process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        let interrupted = path.clone();
        ctrlc::set_handler(move || {
            // Whoever was measuring may be making files meanwhile.
            let left = (0..100).all(|_| fs::remove_dir_all(&interrupted).is_err() && interrupted.exists());
            if left {
                eprintln!("cannot remove {}", interrupted.display());
            }
            process::exit(130);
        })?;
        Ok(Self { path })
    }

    /// A name in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes what is in it.
    pub fn clear(&self) -> Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        Ok(())
    }

    /// Removes it, and says if that fails.
    pub fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(&self.path)?)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // After an error there is one to report already; after `remove` there is nothing left.
        fs::remove_dir_all(&self.path).unwrap_or_default();
    }
}

//! The directory in which an executor keeps rows that are sent between processes, and data that does not fit in
//! memory. It is removed when the executor ends or, if it is killed, by the next executor that starts on this
//! machine.
//!
//! ```text
//! PARENT/larch-executor-5cVx1q/LOCK     held as long as the executor lives
//! PARENT/larch-executor-5cVx1q/rows     what Ballista writes
//! ```
//!
//! The parent directory may be shared with other users and programs. Therefore only directories of the same user
//! are examined, and links are not followed.

#![allow(clippy::disallowed_methods, reason = "files of another program, which no simulated run has")]

use os::{Lock, Machine};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const LOCK: &str = "LOCK";
const ROWS: &str = "rows";
const PREFIX: &str = "larch-executor-";

/// How many directories an executor makes until it gives up. It needs a second one only if another executor removed
/// the first before it was locked.
const ATTEMPTS: u32 = 100;

/// A directory that is removed when this value is dropped.
#[derive(Debug)]
pub struct Work {
    /// The directory is removed before the lock is released.
    directory: TempDir,
    #[expect(dead_code, reason = "it tells others that the executor lives, until it is dropped")]
    lock: Box<dyn Lock>,
}

impl Work {
    /// Makes a directory in `parent`, and removes those of dead executors there.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made.
    pub fn make(parent: &Path) -> io::Result<Self> {
        let disk = Machine::real().disk;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            let lock_path = directory.path().join(LOCK);
            let locked = disk.lock(&lock_path);
            match locked.and_then(|lock| fs::create_dir(directory.path().join(ROWS)).map(|()| lock)) {
                Ok(lock) if lock_path.exists() => {
                    remove_left(parent, directory.path());
                    return Ok(Self { directory, lock });
                }
                // Another executor took the directory, which was not locked yet, for that of a dead one, and removed
                // it before or while it was locked here.
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| ErrorKind::NotFound.into()))
    }

    /// The directory in which Ballista writes.
    pub fn rows(&self) -> PathBuf {
        self.directory.path().join(ROWS)
    }
}

/// Removes all executors' directories in `parent` that no process has locked, except `own`. What cannot be removed
/// is left for the next executor.
fn remove_left(parent: &Path, own: &Path) {
    let disk = Machine::real().disk;
    let Ok(user) = fs::symlink_metadata(own).map(|own| own.uid()) else { return };
    let is_ours = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && path != own
            && is_ours(&path)
            && let Ok(lock) = disk.lock(&path.join(LOCK))
        {
            fs::remove_dir_all(&path).ok();
            drop(lock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::Scratch;

    fn names(parent: &Path) -> Vec<PathBuf> {
        fs::read_dir(parent).expect("it is there").map(|entry| entry.expect("it can be read").path()).collect()
    }

    #[test]
    fn a_directory_goes_with_its_executor_and_that_of_a_dead_one_with_the_next() {
        let scratch = Scratch::new("ballista-work");
        let parent = scratch.path();
        let living = Work::make(parent).expect("it is made");
        let dead = parent.join(format!("{PREFIX}dead00"));
        fs::create_dir_all(dead.join(ROWS).join("job")).expect("it is made");
        fs::write(dead.join(ROWS).join("job/data"), "rows").expect("it is written");
        let elsewhere = parent.join("elsewhere");
        fs::create_dir(&elsewhere).expect("it is made");
        fs::write(elsewhere.join("kept"), "").expect("it is written");
        let link = parent.join(format!("{PREFIX}link00"));
        std::os::unix::fs::symlink(&elsewhere, &link).expect("it is made");
        let next = Work::make(parent).expect("it is made");
        assert!(!dead.exists());
        assert!(living.rows().is_dir() && next.rows().is_dir(), "executors that live keep theirs");
        assert_eq!(names(&elsewhere), [elsewhere.join("kept")], "no link is followed");
        drop((living, next));
        let mut left = names(parent);
        left.sort();
        assert_eq!(left, [elsewhere, link]);
    }
}

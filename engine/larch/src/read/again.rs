//! Retries reads of a read-only database after a writer in another process has replaced and removed the files they
//! use.
//!
//! A read-only database takes no lock, so the writer does not know which versions its reads use, unless a follower's
//! lease tells it. A read that misses a file loads the newest manifest, which becomes the view of the database. A
//! read that chose its version with this very call starts over in the new view. A read whose version was chosen
//! earlier, by a snapshot or a range, goes on in the new files only if they show exactly this version: older ones may
//! be gone.

use crate::base::error::{Error, Result};
use crate::core::Core;
use crate::core::snapshots::PinnedVersion;
use crate::core::views::{Behind, Filled};
use crate::manifest::ManifestTail;
use crate::view::View;
use os::sync::Arc;
use sst::Version;

/// The most attempts of one read. Each of them fails only if a writer has replaced files since it began.
const ATTEMPTS: u32 = 100;

/// Which view a read uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The view that was the newest when the read began.
    Newest,
    /// The view of a version that was chosen earlier.
    Pinned,
}

/// One read, which is retried until it finds its files.
pub(crate) struct Again<'r> {
    core: &'r Core,
    /// Pins the version to read at. If `None`, each attempt reads the newest version.
    pin: Option<&'r PinnedVersion>,
    attempts: u32,
}

impl<'r> Again<'r> {
    pub fn new(core: &'r Core, pin: Option<&'r Arc<PinnedVersion>>) -> Self {
        Self { core, pin: pin.map(|pin| &**pin), attempts: 0 }
    }

    /// The view and the version for the next attempt.
    pub fn view(&self) -> (Arc<View>, Version) {
        match self.pin {
            Some(pin) => (self.core.views.of_pin(pin), pin.version()),
            None => self.core.views.now(),
        }
    }

    /// Called after an attempt at version `at` failed with `error`. Returns `Ok` if the read has to be tried again.
    ///
    /// # Errors
    ///
    /// [`Error::Outdated`] if the newest files do not show the version, or after too many attempts; `error` itself if
    /// no missing file caused it; and any error of reading the newest manifest.
    #[cold]
    pub fn after(&mut self, error: Error, at: Version) -> Result<()> {
        let whose = if self.pin.is_some() { Whose::Pinned } else { Whose::Newest };
        if !self.core.renew_after(&error, whose)? {
            return Err(error);
        }
        self.attempts += 1;
        let newest = self.core.views.now().1;
        let can_go_on = self.pin.is_none() || self.core.views.can_go_on(at);
        if can_go_on && self.attempts < ATTEMPTS { Ok(()) } else { Err(self.core.outdated_at(at, newest)) }
    }
}

impl Core {
    /// If `error` says that a file is missing, loads the newest manifest. Returns whether the new view no longer
    /// names the file, so that another attempt makes sense.
    fn renew_after(&self, error: &Error, whose: Whose) -> Result<bool> {
        let Some(missing) = error.missing_file().filter(|_| self.env.options.read_only) else { return Ok(false) };
        if let Some(followed) = self.followed.get() {
            // The reader's lease is gone, or the writer's release does not know leases.
            followed.state.lock().is_broken = true;
            self.catch_up()?;
            return Ok(!self.views.newest().files.has_file_at(missing));
        }
        // One reader loads the manifest; readers that wait for the lock find its view. That view is good enough for
        // them, unless they have to know the newest version.
        let _turn = self.writes.manifest.lock();
        let view = self.views.newest();
        if whose == Whose::Pinned || view.files.has_file_at(missing) {
            let opener = self.env.opener.knowing(view.files.files_by_number());
            let files = ManifestTail::open(&self.env.machine, &self.env.directory, &opener)?.into_files();
            if files.has_file_at(missing) {
                return Ok(false);
            }
            let version = files.flushed_version;
            let view = View { files: Arc::new(files), ..View::clone(&view) };
            self.views.renew(Filled { view, version }).map_err(|behind| self.fell_behind(behind))?;
        }
        Ok(true)
    }

    /// The error to report for a read at version `at` that failed with `error` and cannot be tried again here.
    pub fn outdated(&self, error: Error, at: Version) -> Error {
        match self.renew_after(&error, Whose::Pinned) {
            Ok(true) => self.outdated_at(at, self.views.now().1),
            Ok(false) => error,
            Err(error) => error,
        }
    }

    /// The error for a database that went back to an older state than its reads have seen.
    pub fn fell_behind(&self, behind: Behind) -> Error {
        Error::FellBehind { directory: self.env.directory.clone(), seen: behind.seen, newest: behind.filled }
    }

    fn outdated_at(&self, read: Version, newest: Version) -> Error {
        Error::Outdated { directory: self.env.directory.clone(), read, newest }
    }
}

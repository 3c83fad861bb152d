//! Reads of a database opened read-only whose files a writer in another process has replaced and removed.
//!
//! Such a database has no lock, so no writer knows which versions its reads use. A read that finds a file gone takes the
//! newest manifest, which becomes the view of the database. A read that has only begun there starts again and sees it. A read
//! at a version that was chosen before, by a snapshot or a range, goes on in the new files only if they show the same version:
//! older versions may be missing from them.

use crate::core::Core;
use crate::core::snapshots::PinnedVersion;
use crate::error::{Error, Result};
use crate::manifest::ManifestLog;
use crate::manifest::db_file::FileOpener;
use crate::read::View;
use os::sync::Arc;
use sst::Version;

/// How often one read is tried. Each time a writer has replaced files since the attempt began.
const ATTEMPTS: u32 = 100;

/// Which view a read had.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The newest when it began.
    Newest,
    /// That of a version that was chosen before.
    Pinned,
}

/// One read that is tried until its files are there.
pub(crate) struct Again<'r> {
    core: &'r Core,
    /// What keeps the version that is read; `None`: the newest is.
    pin: Option<&'r PinnedVersion>,
    attempts: u32,
}

impl<'r> Again<'r> {
    pub fn new(core: &'r Core, pin: Option<&'r Arc<PinnedVersion>>) -> Self {
        Self { core, pin: pin.map(|pin| &**pin), attempts: 0 }
    }

    /// What the next attempt sees.
    pub fn view(&self) -> (Arc<View>, Version) {
        match self.pin {
            Some(pin) => (self.core.views.of_pin(pin), pin.version()),
            None => self.core.views.now(),
        }
    }

    /// After an attempt at version `at` that ended with `error`: `Ok` if the read is to be tried again.
    #[cold]
    pub fn after(&mut self, error: Error, at: Version) -> Result<()> {
        let whose = if self.pin.is_some() { Whose::Pinned } else { Whose::Newest };
        if !self.core.renew_after(&error, whose)? {
            return Err(error);
        }
        self.attempts += 1;
        let newest = self.core.views.newest().files.flushed_version;
        let can_go_on = self.pin.is_none() || newest == at;
        if can_go_on && self.attempts < ATTEMPTS { Ok(()) } else { Err(self.core.outdated_at(at, newest)) }
    }
}

impl Core {
    /// Takes the newest manifest if `error` says that a file is gone which it does not name any more. False if the error has
    /// another cause.
    fn renew_after(&self, error: &Error, whose: Whose) -> Result<bool> {
        let Some(missing) = error.missing_file().filter(|_| self.env.options.read_only) else { return Ok(false) };
        // One reader reads the manifest. Those that wait for the lock find its view, which serves them unless they have to
        // know the newest version.
        let _turn = self.writes.manifest.lock();
        let view = self.views.newest();
        if whose == Whose::Pinned || view.files.has_file_at(missing) {
            let opener = FileOpener { known: Arc::new(view.files.files_by_number()), ..self.env.opener.clone() };
            let files = ManifestLog::read_newest(&self.env.machine, &self.env.directory, &opener)?;
            if files.has_file_at(missing) {
                return Ok(false);
            }
            let version = files.flushed_version;
            self.views.renew(View { files: Arc::new(files), ..View::clone(&view) }, version);
        }
        Ok(true)
    }

    /// What ends a read at version `at` that has failed with `error` and cannot be tried again from here.
    pub fn outdated(&self, error: Error, at: Version) -> Error {
        match self.renew_after(&error, Whose::Pinned) {
            Ok(true) => self.outdated_at(at, self.views.newest().files.flushed_version),
            Ok(false) => error,
            Err(error) => error,
        }
    }

    fn outdated_at(&self, read: Version, newest: Version) -> Error {
        Error::Outdated { directory: self.env.directory.clone(), read, newest }
    }
}

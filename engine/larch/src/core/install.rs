//! Installs edits: makes them durable, and then visible. From then on, the files that they add belong to the
//! database. This module does not know why the files were written.
//!
//! An install has three outcomes, and only this file tells them apart:
//!
//! | outcome | new files | to the caller |
//! |---|---|---|
//! | installed: the manifest has the edits, durably | belong to the database | `Ok` |
//! | not installed: an edit was refused, or the manifest could not be written and was cut back | are removed | an error; it may be tried again |
//! | unknown: the manifest could not be synced | stay, the next open decides | [`Error::OutcomeUnknown`]; writes are refused |
//!
//! Once the manifest has the edits, the install has succeeded, even if a later step fails: beginning a new manifest
//! or removing files. The next install and the next open try such a step again.

use crate::base::error::{Error, Result};
use crate::core::{Core, StopOnPanic};
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::log::EditsOutcome;
use crate::manifest::{Edit, FileSet, ManifestLog};
use crate::view::View;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use std::time::Duration;

/// [`Core::release_replaced_view`] looks `RELEASE_LOOKS` times whether other threads still hold the old view, and
/// waits `RELEASE_WAIT` in between.
const RELEASE_LOOKS: u32 = 50;
const RELEASE_WAIT: Duration = Duration::from_micros(100);

impl Core {
    /// Makes `edits` durable and then visible, together with the change that `change` makes to the memory sets of
    /// the view. `fresh` holds the new files that the edits add.
    ///
    /// # Errors
    ///
    /// See the table at the top of this file.
    pub fn install(&self, edits: &[Edit], fresh: FreshFiles, change: impl FnOnce(&mut View)) -> Result<()> {
        let outcome = {
            let mut manifest = self.writes.manifest.lock();
            self.install_in(&mut manifest, edits, fresh, change)
        };
        self.clean_up_after(edits);
        outcome
    }

    /// An edit for an install after which rows that have expired by now may be gone; `None` if no row has a time.
    pub fn expired_edit(&self) -> Option<Edit> {
        let clock = &self.env.row_clock;
        clock.has_times().then(|| Edit::Expired(clock.now()))
    }

    /// Frees the files and the memory that nothing uses any more after `edits`, whether or not the install
    /// succeeded. Looks at every open range, so the caller must not hold the lock of the manifest or of the writer.
    pub fn clean_up_after(&self, edits: &[Edit]) {
        self.env.opener.leftovers.retry();
        if edits.iter().any(Edit::frees) {
            self.views.free_old();
        }
        self.release_replaced_view();
    }

    /// Releases the view that was replaced. The last thread to release a view frees its memtables and removes its
    /// old files, which takes milliseconds. By waiting a short time for other holders, this thread mostly gets that
    /// work, rather than a commit or a read. It does not wait for a reader that holds the view for long.
    fn release_replaced_view(&self) {
        let Some(view) = self.views.take_replaced() else { return };
        for _ in 0..RELEASE_LOOKS {
            if Arc::strong_count(&view) == 1 || !self.env.machine.threads.are_real() {
                break;
            }
            self.env.machine.clock.sleep(RELEASE_WAIT);
        }
    }

    /// Like [`Core::install`], for a caller that already holds the lock of the manifest. After releasing the lock,
    /// the caller should call [`Core::clean_up_after`].
    ///
    /// # Errors
    ///
    /// The errors of [`Core::install`].
    pub fn install_in(
        &self,
        manifest: &mut Option<ManifestLog>,
        edits: &[Edit],
        mut fresh: FreshFiles,
        change: impl FnOnce(&mut View),
    ) -> Result<()> {
        // After a panic in this function, the content of the manifest is unknown, so writes are refused.
        let _guard = StopOnPanic::new(self);
        let outcome = self.write_edits(manifest, edits, &mut fresh, change);
        self.env.opener.forget_early(edits.iter().filter_map(Edit::added_number));
        if outcome.is_ok()
            && let Some(log) = manifest
            && log.is_overgrown(self.env.options.manifest_slack_bytes)
            && self.renew_manifest(log).is_err()
        {
            self.env.written.failed_renewals.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    fn write_edits(
        &self,
        manifest: &mut Option<ManifestLog>,
        edits: &[Edit],
        fresh: &mut FreshFiles,
        change: impl FnOnce(&mut View),
    ) -> Result<()> {
        let log = manifest.as_mut().ok_or(Error::ReadOnly)?;
        self.check_writable()?;
        if log.is_in_doubt() {
            self.renew_manifest(log)?;
        }
        let mut files = FileSet::clone(&self.views.newest().files);
        let mut removed = Vec::new();
        for edit in edits {
            files.apply(edit, &self.env.opener, &mut removed).map_err(|why| log.refused(why))?;
        }
        // The next step may write the names of the new files to the manifest, so `fresh` must no longer remove these
        // files. It gets them back only if the manifest has certainly stayed unchanged.
        let paths = fresh.take_paths();
        match log.commit(edits) {
            EditsOutcome::Durable => {}
            EditsOutcome::Not(error) => {
                paths.into_iter().for_each(|path| fresh.add(path));
                return Err(error.into());
            }
            EditsOutcome::Unknown(cause) => {
                let what = "the last change of tables and files is durable";
                return Err(self.stop_writes(Error::OutcomeUnknown { what, cause }));
            }
        }
        self.env.opener.leftovers.note_edits(log.position());
        self.env.held.manifest.store(log.memory_bytes(), Ordering::Relaxed);
        // A table that can be seen gives times to its rows, so that no row goes without one.
        edits.iter().for_each(|edit| self.expiring.note(edit, &self.env.options.expiry_times));
        self.views.change(|view| {
            view.files = Arc::new(files);
            change(view);
        });
        if edits.iter().any(Edit::changes_indexes) {
            self.indexes.renew(&self.views.newest().files, &self.env.options.extractors);
        }
        self.writes.picks.note(edits);
        removed.iter().for_each(|file| file.discard());
        Ok(())
    }

    /// Begins a new manifest with the current file set. If this fails, edits keep going to the old manifest, unless
    /// that manifest is [in doubt](ManifestLog::is_in_doubt).
    fn renew_manifest(&self, manifest: &mut ManifestLog) -> Result<()> {
        let mut files = FileSet::clone(&self.views.newest().files);
        let number = self.writes.new_number();
        files.next_number = self.writes.next_number();
        let leftovers = &self.env.opener.leftovers;
        let next = (number, &files, self.env.options.compat);
        manifest.renew(&self.env.log_machine, &self.env.directory, next, leftovers)?;
        leftovers.note_edits(manifest.position());
        Ok(())
    }
}

#[cfg(test)]
mod tests;

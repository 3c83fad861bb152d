//! Installs edits: they become durable, then visible, and the files that they add become the database's. It does not
//! know why the files were written.
//!
//! An install has three outcomes, and only this file tells them apart:
//!
//! | outcome | new files | to the caller |
//! |---|---|---|
//! | installed: the manifest has the edits, durably | belong to the database | `Ok` |
//! | not installed: an edit was refused, or the manifest could not be written and was cut back | are removed | an error; it may be tried again |
//! | unknown: the manifest could not be synced | stay, the next open decides | [`Error::OutcomeUnknown`]; writes are refused |
//!
//! Once the manifest has the edits, nothing is an error any more. If an overgrown manifest cannot be renewed, or a file
//! cannot be removed, the next install tries again, and so does the next open.

use crate::base::error::{Error, Result};
use crate::core::{Core, StopOnPanic};
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::log::EditsOutcome;
use crate::manifest::{Edit, FileSet, ManifestLog};
use crate::view::View;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use std::time::Duration;

/// How often [`Core::release_replaced_view`] looks whether others have let go of a view, and how long it waits in
/// between.
const RELEASE_LOOKS: u32 = 50;
const RELEASE_WAIT: Duration = Duration::from_micros(100);

impl Core {
    /// Makes `edits` durable, then visible together with what `change` does to the memtables. `fresh` are the files
    /// that the edits add and that were written for them.
    ///
    /// # Errors
    ///
    /// See the table in the header of this file.
    pub fn install(&self, edits: &[Edit], fresh: FreshFiles, change: impl FnOnce(&mut View)) -> Result<()> {
        let outcome = {
            let mut manifest = self.writes.manifest.lock();
            self.install_in(&mut manifest, edits, fresh, change)
        };
        self.clean_up_after(edits);
        outcome
    }

    /// Removes the files and memory that nothing uses any more after `edits`, whether these were installed or not.
    /// It looks at every open range, so it is not called under the lock of the manifest or of the writer.
    pub fn clean_up_after(&self, edits: &[Edit]) {
        self.env.opener.leftovers.retry();
        if edits.iter().any(Edit::frees) {
            self.views.free_old();
        }
        self.release_replaced_view();
    }

    /// Releases the view before the newest once no other thread holds it. So this thread frees its memtables and
    /// removes its files, which takes milliseconds. Otherwise a commit or a read that happens to release the view
    /// last would have to do that. It does not wait for a reader that holds the view for long.
    fn release_replaced_view(&self) {
        let Some(view) = self.views.take_replaced() else { return };
        for _ in 0..RELEASE_LOOKS {
            if Arc::strong_count(&view) == 1 || !self.env.machine.threads.are_real() {
                break;
            }
            self.env.machine.clock.sleep(RELEASE_WAIT);
        }
    }

    /// As [`Core::install`], for a caller that holds the lock of the manifest already. Once the caller has released
    /// the lock, it may call [`Core::clean_up_after`].
    ///
    /// # Errors
    ///
    /// As [`Core::install`].
    pub fn install_in(
        &self,
        manifest: &mut Option<ManifestLog>,
        edits: &[Edit],
        mut fresh: FreshFiles,
        change: impl FnOnce(&mut View),
    ) -> Result<()> {
        // After a panic in here it is unknown what the manifest holds.
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
        // From here on the manifest may name the files, so they are not removed. They become fresh files again only
        // if it is known that the commit left the manifest as it was.
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

    /// Begins a new manifest with the current file set. After an error edits still go to the old manifest, unless it is
    /// [in doubt](ManifestLog::is_in_doubt).
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

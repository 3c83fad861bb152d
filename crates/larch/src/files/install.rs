//! Installing: edits become durable, then visible; and the files that they add get an owner.
//!
//! There are three outcomes, and this is the only place that tells them apart:
//!
//! | outcome | new files | to the caller |
//! |---|---|---|
//! | installed: the manifest has the edits, durably | belong to the database | `Ok` |
//! | not installed: an edit was refused, or the manifest could not be written and was cut back | are removed | an error; it may be tried again |
//! | unknown: the manifest could not be synced | stay, the next open decides | [`Error::OutcomeUnknown`]; writes are refused |
//!
//! Once the manifest has the edits nothing is an error any more: renewing an overgrown manifest and removing files is done
//! again at the next install, and by the next open.

use crate::core::{Core, StopOnPanic};
use crate::error::{Error, Result};
use crate::files::leftovers::Leftovers;
use crate::manifest::log::Written;
use crate::manifest::{Edit, FileSet, ManifestLog};
use crate::read::View;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use std::path::PathBuf;

/// Files that were just written and that no manifest names. They are removed when this is dropped; an install takes them.
#[derive(Debug)]
pub struct FreshFiles {
    leftovers: Arc<Leftovers>,
    paths: Vec<PathBuf>,
}

impl FreshFiles {
    /// None yet.
    pub fn new(core: &Core) -> Self {
        Self { leftovers: core.opener.leftovers.clone(), paths: Vec::new() }
    }

    /// None, of the same database.
    pub fn empty(&self) -> Self {
        Self { leftovers: self.leftovers.clone(), paths: Vec::new() }
    }

    /// Takes a file that is about to be created.
    pub fn add(&mut self, path: PathBuf) {
        self.paths.push(path);
    }

    /// Takes all files of another.
    pub fn append(&mut self, mut other: FreshFiles) {
        self.paths.append(&mut other.paths);
    }

    /// Memory of their names.
    pub fn memory_bytes(&self) -> u64 {
        self.paths.iter().map(|path| (size_of::<PathBuf>() + path.as_os_str().len()) as u64).sum()
    }
}

impl Drop for FreshFiles {
    fn drop(&mut self) {
        self.paths.iter().for_each(|path| self.leftovers.remove(path));
    }
}

impl Core {
    /// Makes `edits` durable, then visible together with what `change` does to the memtables. `fresh` are the files that
    /// the edits add and that were written for them.
    ///
    /// # Errors
    /// See the table above.
    pub fn install(&self, edits: &[Edit], fresh: FreshFiles, change: impl FnOnce(&mut View)) -> Result<()> {
        let outcome = {
            let mut manifest = self.manifest.lock();
            self.install_in(&mut manifest, edits, fresh, change)
        };
        self.opener.leftovers.retry();
        if edits.iter().any(Edit::frees) {
            self.free_old_views();
        }
        outcome
    }

    /// As [`Core::install`], for who holds the manifest already.
    ///
    /// # Errors
    /// As [`Core::install`].
    pub fn install_in(
        &self,
        manifest: &mut Option<ManifestLog>,
        edits: &[Edit],
        mut fresh: FreshFiles,
        change: impl FnOnce(&mut View),
    ) -> Result<()> {
        // A panic on the way leaves open what the manifest holds.
        let _guard = StopOnPanic(self);
        let outcome = self.write_edits(manifest, edits, &mut fresh, change);
        self.opener.forget_early(edits.iter().filter_map(Edit::added_number));
        if outcome.is_ok()
            && let Some(log) = manifest
            && log.is_overgrown(self.options.manifest_slack_bytes)
            && self.renew_manifest(log).is_err()
        {
            self.written.failed_renewals.fetch_add(1, Ordering::Relaxed);
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
        let mut files = FileSet::clone(&self.view().files);
        let mut removed = Vec::new();
        for edit in edits {
            files.apply(edit, &self.opener, &mut removed).map_err(|why| log.refused(why))?;
        }
        // From here on they are not ours to remove, but for the one case that is known to leave the manifest as it was.
        let paths = std::mem::take(&mut fresh.paths);
        match log.commit(edits) {
            Written::Durable => {}
            Written::Not(error) => {
                fresh.paths = paths;
                return Err(error.into());
            }
            Written::Unknown(cause) => {
                let what = "the last change of tables and files is durable";
                return Err(self.stop_writes(Error::OutcomeUnknown { what, cause }));
            }
        }
        self.held.manifest.store(log.memory_bytes(), Ordering::Relaxed);
        self.change_view(|view| {
            view.files = Arc::new(files);
            change(view);
        });
        self.picks.note(edits);
        removed.iter().for_each(|file| file.discard());
        Ok(())
    }

    /// Begins a new manifest with the current set. After an error edits still go to the old one, if it is not
    /// [in doubt](ManifestLog::is_in_doubt).
    fn renew_manifest(&self, manifest: &mut ManifestLog) -> Result<()> {
        let mut files = FileSet::clone(&self.view().files);
        let number = self.new_number();
        files.next_number = self.next_number.load(Ordering::Acquire);
        manifest.renew(
            &self.log_machine,
            &self.directory,
            (number, &files, self.options.compat),
            &self.opener.leftovers,
        )
    }
}

#[cfg(test)]
mod tests;

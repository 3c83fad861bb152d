//! Begins the manifest and the log of a writer, and makes the rows visible that were recovered from older logs.
//! This module does not know how a log is read.
//!
//! An open needs little room on the disk, and none if the disk is full:
//!
//! ```text
//!                  with room                          on a full disk
//! recovered rows   files of level 0, and one edit     in memory, as frozen memtables; their logs stay
//! manifest         a new one, in place of the old     with the room of the reserve; else it goes on in the old one
//! log              a new one                          with the room of the reserve; else the first commit begins it
//! ```
//!
//! Rows that stay in memory are flushed like all frozen memtables: the flush is tried again until the disk has
//! room.

use super::idle::IDLE_TIME;
use crate::base::error::{Error, Result};
use crate::base::record::Previous;
use crate::base::table::TableId;
use crate::core::Core;
use crate::core::writer::{Writer, log_path};
use crate::manifest::directory::listing::ListedFile;
use crate::manifest::log::manifest_name;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{Edit, FileSet, ManifestLog};
use crate::memtable::set::MemSet;
use crate::write::recovery::{Recovered, replay, replay_to_memory};
use os::sync::Arc;
use sst::Version;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Describes what an open has begun and what it has recovered.
pub struct Begun {
    /// The number of the manifest.
    pub manifest: u64,
    /// Whether the open continues the manifest of an earlier process.
    pub is_old_manifest: bool,
    /// The numbers of the logs that are needed, including the log to which new commits go.
    pub logs: BTreeSet<u64>,
    /// The number of logs that were read.
    pub logs_read: u64,
    /// The number of commits in these logs.
    pub commits: u64,
    /// The number of files to which the recovered rows were written.
    pub files: u64,
}

/// A database whose manifest and log are about to begin.
pub struct Beginning<'c> {
    /// The database. Its view has its file set.
    pub core: &'c Arc<Core>,
    /// The files that were found in the directory of the database.
    pub listed: &'c [ListedFile],
    /// The unfinished indexes that this open has dropped from the file set.
    pub dropped: &'c [TableId],
}

impl Beginning<'_> {
    /// Recovers the commits in logs, and begins the manifest and the log.
    ///
    /// # Errors
    ///
    /// An error if a log that is needed is missing or corrupt; an error of the disk, except that the disk is full.
    pub fn begin(&self) -> Result<Begun> {
        match self.with_files() {
            Err(error) if error.is_disk_full() => self.in_memory(),
            begun => begun,
        }
    }

    /// Writes the recovered rows to files, and begins the manifest and the log. After most errors, everything is
    /// as it was before, except that there may be a new manifest with the same file set. After
    /// [`Error::OutcomeUnknown`], all written files stay, and the next open finds out which of them belong to the
    /// database.
    fn with_files(&self) -> Result<Begun> {
        let core = self.core;
        let recovered = replay(core, &core.env.directory, self.listed, &core.env.place())?;
        let (numbers, files, newest) = self.numbered(recovered.newest);
        let manifest = self.create_manifest(numbers.manifest, &files)?;
        let (writer, memory) = self.create_log(numbers.log, recovered.previous, newest, Vec::new())?;
        let begun = Begun {
            manifest: numbers.manifest,
            is_old_manifest: false,
            logs: BTreeSet::from([numbers.log]),
            logs_read: recovered.logs,
            commits: recovered.commits,
            files: recovered.rows.files.len() as u64,
        };
        self.show(files, manifest, writer, vec![memory], newest);
        let NewFiles { files, fresh } = recovered.rows;
        let mut edits: Vec<Edit> = files.into_iter().map(Edit::AddFile).collect();
        edits.extend([Edit::OldestLog(numbers.log), Edit::LastVersion(newest), Edit::FlushedVersion(newest)]);
        let installed = core.install(&edits, fresh, |_| {});
        // If the outcome is unknown, the manifest may already name the new log as the oldest log.
        let may_be_named = matches!(installed, Err(Error::OutcomeUnknown { .. }));
        installed.inspect_err(|_| {
            if !may_be_named {
                self.remove_log(numbers.log)
            }
        })?;
        core.writes.sync.note_durable(newest);
        Ok(begun)
    }

    /// Keeps the recovered rows in memory, and begins the manifest and the log with as little disk space as
    /// possible.
    fn in_memory(&self) -> Result<Begun> {
        let core = self.core;
        core.writes.reserve.give_back_left();
        let mut recovered = replay_to_memory(core, self.listed)?;
        let (numbers, files, newest) = self.numbered(recovered.newest);
        let (manifest, is_old_manifest) = self.manifest_without_room(numbers.manifest, &files)?;
        let mut begun = Begun {
            manifest: manifest.number(),
            is_old_manifest,
            logs: recovered.needed.iter().copied().collect(),
            logs_read: recovered.logs,
            commits: recovered.commits,
            files: 0,
        };
        // If no rows were recovered, there is no memory set that could be flushed to get rid of the old logs. In
        // this case, the first flush of the new log also removes the old logs.
        let older_logs = if recovered.rows.is_empty() { std::mem::take(&mut recovered.needed) } else { Vec::new() };
        let (writer, memory) = match (self.create_log(numbers.log, recovered.previous, newest, older_logs), recovered) {
            (Ok((writer, active)), Recovered { rows, .. }) => {
                begun.logs.insert(numbers.log);
                let frozen = (!rows.is_empty()).then(|| Arc::new(rows));
                (writer, [active].into_iter().chain(frozen).collect())
            }
            (Err(error), Recovered { rows, previous: Some(previous), .. }) if error.is_disk_full() => {
                let memory = Arc::new(rows);
                let (env, sync, next) = (&core.env, core.writes.sync.clone(), Version(newest.0 + 1));
                let left = (memory.clone(), previous.end.at);
                (Writer::without_log(&env.log_machine, &env.directory, left, sync, next)?, vec![memory])
            }
            (Err(error), _) => return Err(error),
        };
        self.show(files, manifest, writer, memory, newest);
        core.writes.sync.note_durable(newest);
        Ok(begun)
    }

    /// Takes numbers for a manifest and a log. Returns them, the present file set with a next number after these
    /// numbers, and the newest version. `recovered` is the version of the newest recovered commit.
    fn numbered(&self, recovered: Version) -> (Numbers, FileSet, Version) {
        let writes = &self.core.writes;
        let numbers = Numbers { manifest: writes.new_number(), log: writes.new_number() };
        let mut files = FileSet::clone(&self.core.views.newest().files);
        files.next_number = numbers.log + 1;
        let newest = recovered.max(files.last_version);
        (numbers, files, newest)
    }

    /// Creates a new manifest. After an error, its file is removed, unless `CURRENT` may name it.
    fn create_manifest(&self, number: u64, files: &FileSet) -> Result<ManifestLog> {
        let env = &self.core.env;
        let manifest = ManifestLog::create(&env.log_machine, &env.directory, number, files, env.options.compat);
        manifest.inspect_err(|_| {
            let path = env.directory.join(manifest_name(number));
            if self.current_manifest().is_ok_and(|current| current.as_ref() != Some(&path)) {
                env.opener.leftovers.remove(&path);
            }
        })
    }

    /// Creates a new manifest. If the disk has no room for a new manifest, continues the manifest of an earlier
    /// process. The second value says whether it does so.
    fn manifest_without_room(&self, number: u64, files: &FileSet) -> Result<(ManifestLog, bool)> {
        let env = &self.core.env;
        let old = self.current_manifest()?;
        let error = match (self.create_manifest(number, files), old) {
            (Ok(manifest), old) => {
                old.iter().for_each(|old| env.opener.leftovers.remove(old));
                return Ok((manifest, false));
            }
            // The old manifest is continued only if `CURRENT` still names it. Otherwise nobody would know which of
            // the two manifests `CURRENT` names after a crash.
            (Err(error), Some(old)) if error.is_disk_full() && self.current_manifest()?.as_ref() == Some(&old) => {
                let mut pending = vec![Edit::Epoch(files.epoch), Edit::NextNumber(files.next_number)];
                pending.extend(files.written_for.clone().map(Edit::WrittenFor));
                pending.extend(self.dropped.iter().map(|table| Edit::DropTable(*table)));
                match ManifestLog::go_on(&env.log_machine, &old, pending, env.options.compat)? {
                    Some(manifest) => return Ok((manifest, true)),
                    None => error,
                }
            }
            (Err(error), _) => error,
        };
        Err(error)
    }

    /// The manifest that `CURRENT` names, if the directory has a database.
    fn current_manifest(&self) -> Result<Option<PathBuf>> {
        let (machine, directory): (_, &Path) = (&self.core.env.machine, &self.core.env.directory);
        let is_there = ManifestLog::exists(machine, directory)?;
        is_there.then(|| ManifestLog::current(machine, directory)).transpose()
    }

    /// Creates log `number`, which continues `previous`, and the memtables for it. When these memtables are
    /// flushed, `older_logs` are not needed any more.
    fn create_log(
        &self,
        number: u64,
        previous: Option<Previous>,
        newest: Version,
        older_logs: Vec<u64>,
    ) -> Result<(Writer, Arc<MemSet>)> {
        let (env, sync, next) = (&self.core.env, self.core.writes.sync.clone(), Version(newest.0 + 1));
        let mut memory = MemSet::new(number, env.held.rows.clone()).with_filter();
        memory.older_logs = older_logs;
        let memory = Arc::new(memory);
        let writer = Writer::create(&env.log_machine, &env.directory, memory.clone(), previous, sync, next);
        Ok((writer.inspect_err(|_| self.remove_log(number))?, memory))
    }

    fn remove_log(&self, number: u64) {
        self.core.env.opener.leftovers.remove(&log_path(&self.core.env.directory, number));
    }

    /// Makes `files` and `memory` visible to readers. After this call, commits go to `writer` and edits go to
    /// `manifest`.
    fn show(&self, files: FileSet, manifest: ManifestLog, writer: Writer, memory: Vec<Arc<MemSet>>, newest: Version) {
        let core = self.core;
        let (leftovers, weak) = (&core.env.opener.leftovers, Arc::downgrade(core));
        leftovers.note_edits(manifest.position());
        leftovers.begin_to_hold(core.env.leases.clone(), move || {
            if let Some(core) = weak.upgrade() {
                core.background.wake_idle_after(IDLE_TIME);
            }
        });
        core.env.leases.tell_newest_log(memory[0].log);
        *core.writes.manifest.lock() = Some(manifest);
        *core.writes.writer.lock() = Some(writer);
        core.views.change(|view| {
            view.files = Arc::new(files);
            view.memory = memory;
        });
        core.views.publish(newest);
    }
}

struct Numbers {
    manifest: u64,
    log: u64,
}

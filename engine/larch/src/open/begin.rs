//! Begins the manifest and the log of a writer, and makes the rows visible that were recovered from older logs. This
//! module does not know how a log is read.
//!
//! An open needs little disk space, and none on a full disk:
//!
//! ```text
//!                  with room                          on a full disk
//! recovered rows   files of level 0, and one edit     in memory, as frozen memtables; their logs stay
//! manifest         a new one, in place of the old     with the room of the reserve; else it goes on in the old one
//! log              a new one                          with the room of the reserve; else the first commit begins it
//! ```
//!
//! Rows that stay in memory are flushed like all frozen memtables: the flush is retried until the disk has room.

use super::idle::IDLE_TIME;
use crate::base::error::{Error, Result};
use crate::base::record::{Previous, TIMES};
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

/// What an open has begun and recovered.
pub struct Begun {
    /// The number of the manifest.
    pub manifest: u64,
    /// Whether the manifest of an earlier process is continued.
    pub is_old_manifest: bool,
    /// The logs that are needed, including the one that new commits go to.
    pub logs: BTreeSet<u64>,
    /// Logs that were read.
    pub logs_read: u64,
    /// Commits in these logs.
    pub commits: u64,
    /// Files that the recovered rows were written to.
    pub files: u64,
}

/// A database whose manifest and log are about to begin.
pub struct Beginning<'c> {
    /// The database. Its view has its file set.
    pub core: &'c Arc<Core>,
    /// The files found in the directory of the database.
    pub listed: &'c [ListedFile],
    /// Unfinished indexes that this open has dropped from the file set.
    pub dropped: &'c [TableId],
}

impl Beginning<'_> {
    /// Recovers the commits in logs, and begins the manifest and the log.
    ///
    /// # Errors
    ///
    /// Fails if a log that is needed is missing or corrupt, or if the disk fails. A full disk is an error only if no
    /// manifest and log of an earlier process can be continued.
    pub fn begin(&self) -> Result<Begun> {
        match self.with_files() {
            Err(error) if error.is_disk_full() => self.in_memory(),
            begun => begun,
        }
    }

    /// Writes the recovered rows to files, and begins the manifest and the log. After most errors everything is as
    /// before, except perhaps for a new manifest with the same file set. After [`Error::OutcomeUnknown`], all
    /// written files stay, and the next open finds out which of them belong to the database.
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
        let (manifest, is_old_manifest) = self.manifest_without_room(numbers.manifest, (&files, newest))?;
        let mut begun = Begun {
            manifest: manifest.number(),
            is_old_manifest,
            logs: recovered.needed.iter().copied().collect(),
            logs_read: recovered.logs,
            commits: recovered.commits,
            files: 0,
        };
        // Without recovered rows, no memory set will be flushed to get rid of the old logs, so the first flush of
        // the new log removes them.
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

    /// Takes numbers for a manifest and a log. Returns them, the current file set with the next number after these,
    /// and the newest version. `recovered` is the newest recovered version.
    fn numbered(&self, recovered: Version) -> (Numbers, FileSet, Version) {
        let writes = &self.core.writes;
        let numbers = Numbers { manifest: writes.new_number(), log: writes.new_number() };
        let mut files = FileSet::clone(&self.core.views.newest().files);
        files.next_number = numbers.log + 1;
        let newest = recovered.max(files.last_version);
        // A crash may have lost commits that were not durable. Their versions are given to other commits.
        files.keep_through(newest);
        (numbers, files, newest)
    }

    /// Creates a new manifest. After an error, removes its file, unless `CURRENT` may name it.
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

    /// Creates a new manifest or, if the disk has no room for one, continues the old one. Returns whether it did the
    /// latter.
    fn manifest_without_room(&self, number: u64, (files, newest): (&FileSet, Version)) -> Result<(ManifestLog, bool)> {
        let env = &self.core.env;
        let old = self.current_manifest()?;
        let error = match (self.create_manifest(number, files), old) {
            (Ok(manifest), old) => {
                old.iter().for_each(|old| env.opener.leftovers.remove(old));
                return Ok((manifest, false));
            }
            // The old manifest can be continued only if `CURRENT` certainly still names it. Otherwise it would be
            // unknown which of the two manifests `CURRENT` names after a crash.
            (Err(error), Some(old)) if error.is_disk_full() && self.current_manifest()?.as_ref() == Some(&old) => {
                let mut pending = vec![Edit::Epoch(files.epoch), Edit::NextNumber(files.next_number)];
                pending.extend(files.written_for.clone().map(Edit::WrittenFor));
                pending.extend(files.retained.map(|retained| Edit::Retain(Some(retained))));
                let own = |(table, retained)| Edit::RetainTable { table, retained };
                pending.extend(files.table_pasts.iter().map(own));
                pending.extend(files.subscribers().cloned().map(Edit::Subscribe));
                pending.extend(self.core.views.newest().files.names_after(newest).into_iter().map(Edit::Forget));
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

    /// Creates log `number`, which continues `previous`, and its memtables. A flush of these memtables makes
    /// `older_logs` obsolete.
    fn create_log(
        &self,
        number: u64,
        previous: Option<Previous>,
        newest: Version,
        older_logs: Vec<u64>,
    ) -> Result<(Writer, Arc<MemSet>)> {
        let (env, sync, next) = (&self.core.env, self.core.writes.sync.clone(), Version(newest.0 + 1));
        let functions = &env.options.merge_functions;
        let mut memory = MemSet::new(number, env.held.rows.clone()).with_filter().with_functions(functions);
        memory.older_logs = older_logs;
        let memory = Arc::new(memory);
        let of = (&env.log_machine, &*env.directory, env.log_features());
        if env.log_features() & TIMES != 0 {
            env.row_clock.note_log_takes_times();
        }
        let writer = Writer::create(of, memory.clone(), previous, sync, next);
        Ok((writer.inspect_err(|_| self.remove_log(number))?, memory))
    }

    fn remove_log(&self, number: u64) {
        self.core.env.opener.leftovers.remove(&log_path(&self.core.env.directory, number));
    }

    /// Makes `files` and `memory` visible to readers. From now on, commits go to `writer` and edits to `manifest`.
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

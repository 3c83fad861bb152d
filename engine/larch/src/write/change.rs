//! Changes whole tables in one atomic step. Calls that create, drop or share tables use this, and so do imports and
//! large batches. This module does not know what is changed.
//!
//! A change holds the writer's lock, so that no commit comes between its steps. If it must not run beside
//! compactions, it also holds the levels lock. The lock order is that of [`writes`](crate::core::writes): levels,
//! writer, manifest.

use crate::base::error::{Error, Result};
use crate::base::table::{TableId, TableInfo};
use crate::core::Core;
use crate::core::writer::Writer;
use crate::levels::levels_lock::OwnedLevels;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::{Edit, FileSet};
use crate::write::room::{table_to_files, wait_for_level0};
use os::sync::MutexGuard;
use sst::Version;

/// Makes all commits so far durable, before the writer's lock is taken. The change syncs again under the lock,
/// while other commits wait. That second sync is short, because it covers only the commits since the first.
fn sync_before_locking(core: &Core) -> Result<()> {
    core.check_writable()?;
    if core.env.options.read_only {
        return Err(Error::ReadOnly);
    }
    core.make_durable(core.views.visible())
}

/// The tables to which `edits` add files; `None` if some edit does more than that, so that any table may have
/// changed.
fn changed_tables(edits: &[Edit]) -> Option<Vec<TableId>> {
    let tables = edits.iter().filter_map(|edit| match edit {
        Edit::AddFile(file) => Some(Some(file.table)),
        Edit::LastVersion(_) | Edit::FlushedVersion(_) => None,
        _ => Some(None),
    });
    tables.collect()
}

/// The right to change tables. If this value is dropped without an install, nothing is changed.
pub struct TableChange<'c> {
    core: &'c Core,
    // Fields are dropped in this order: the writer is released before the levels.
    writer: MutexGuard<'c, Option<Writer>>,
    _levels: Option<OwnedLevels<'c>>,
}

/// A change that lets commits go on while it works on files.
pub struct PausedChange<'c> {
    core: &'c Core,
    levels: OwnedLevels<'c>,
}

impl<'c> PausedChange<'c> {
    /// Takes the writer's lock again.
    ///
    /// # Errors
    ///
    /// The errors of [`TableChange::begin`].
    pub fn resume(self) -> Result<TableChange<'c>> {
        sync_before_locking(self.core)?;
        TableChange::take(self.core, Some(self.levels))
    }
}

impl<'c> TableChange<'c> {
    /// Makes all commits so far durable, and takes the writer's lock.
    ///
    /// # Errors
    ///
    /// The errors of [`Core::check_writable`]; [`Error::ReadOnly`] in a read-only database;
    /// [`Error::OutcomeUnknown`] if the sync failed.
    pub fn begin(core: &'c Core) -> Result<Self> {
        sync_before_locking(core)?;
        Self::take(core, None)
    }

    /// Waits until level 0 has room for the rows in memory, and for one more file in each of the `targets`. Then
    /// takes the levels lock and the writer's lock, flushes `tables`, and makes all commits durable. They must be
    /// durable before this change, because durable commits are always a prefix of all commits.
    ///
    /// # Errors
    ///
    /// The errors of [`TableChange::begin`]; the reason why a flush or a compaction fails; the error of `check`,
    /// which is called under the locks, before anything is written, with the version of the last commit. Reads
    /// already see this version.
    pub fn begin_with_levels<E: From<Error>>(
        core: &'c Core,
        tables: &[&TableInfo],
        targets: &[&TableInfo],
        check: impl FnOnce(Version) -> Result<(), E>,
    ) -> Result<Self, E> {
        sync_before_locking(core)?;
        wait_for_level0(core, None)?;
        targets.iter().try_for_each(|target| wait_for_level0(core, Some(target.id)))?;
        let levels = core.own_levels();
        let mut change = Self::take(core, Some(levels))?;
        let writer = change.writer();
        check(writer.last_version())?;
        tables.iter().try_for_each(|table| table_to_files(core, writer, table.id))?;
        core.sync(writer.unsynced())?;
        Ok(change)
    }

    /// Returns the id of a table that this change or a later one will create, and makes sure that no other table gets
    /// this id. So files can be written for the table before it is there.
    ///
    /// # Errors
    ///
    /// The errors of [`Core::install`].
    pub fn reserve_table(&mut self) -> Result<TableId> {
        let core = self.core;
        // Whoever creates a table holds the writer, as this change does.
        let id = core.views.newest().files.next_table;
        // There is no id after the last one. Then the edit that creates the table is refused.
        let edits = [Edit::NextTable(id.saturating_add(1))];
        let fresh = FreshFiles::new(&core.env.opener.leftovers);
        core.install_in(&mut core.writes.manifest.lock(), &edits, fresh, |_| {})?;
        Ok(TableId(id))
    }

    /// Releases the writer, so that commits go on, but not the levels, so that no file of a table is replaced.
    ///
    /// # Panics
    ///
    /// Panics if the change does not hold the levels.
    pub fn pause(self) -> PausedChange<'c> {
        let Self { core, writer, _levels: levels } = self;
        drop(writer);
        PausedChange { core, levels: levels.expect("the change began with the levels") }
    }

    fn take(core: &'c Core, levels: Option<OwnedLevels<'c>>) -> Result<Self> {
        let writer = core.writes.writer.lock();
        let open = writer.as_ref().ok_or(Error::ReadOnly)?;
        core.check_writable()?;
        core.wait_for_commits(open)?;
        Ok(Self { core, writer, _levels: levels })
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("a change begins with a writer")
    }

    /// Makes all commits so far durable.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if the sync failed. After this error, all writes fail.
    pub fn sync(&mut self) -> Result<()> {
        let unsynced = self.writer().unsynced();
        self.core.sync(unsynced)
    }

    /// The version of the last commit. Reads already see this version.
    pub fn last_version(&mut self) -> Version {
        self.writer().last_version()
    }

    /// The version that this change will get if it is installed as a commit.
    pub fn version(&mut self) -> Version {
        self.writer().next_version()
    }

    /// Installs `edits` without making a commit, so the change gets no version. `fresh` has the files written for
    /// the edits.
    ///
    /// # Errors
    ///
    /// The errors of [`Core::install`].
    pub fn install(self, edits: &[Edit], fresh: FreshFiles) -> Result<()> {
        self.finish(edits, fresh, None, |_| Ok(()))
    }

    /// Installs `edits` as a commit with the version [`TableChange::version`]. `fresh` has the files written for
    /// the edits.
    ///
    /// # Errors
    ///
    /// The errors of [`Core::install`].
    pub fn commit(self, edits: Vec<Edit>, fresh: FreshFiles) -> Result<()> {
        self.commit_versions(1, edits, fresh, |_| Ok(())).map(drop)
    }

    /// Like [`TableChange::commit`], but takes `count` versions, beginning with [`TableChange::version`]. Reads see
    /// all of them at once. Returns the last of them. `check` gets the tables as they are before the install, and none
    /// of their options changes between the two.
    ///
    /// # Errors
    ///
    /// The errors of `check` and of [`Core::install`].
    pub fn commit_versions(
        mut self,
        count: u64,
        mut edits: Vec<Edit>,
        fresh: FreshFiles,
        check: impl FnOnce(&FileSet) -> Result<()>,
    ) -> Result<Version> {
        let version = Version(self.version().0 + count - 1);
        edits.push(Edit::LastVersion(version));
        if self.core.views.newest().memory.iter().all(|memory| memory.is_empty()) {
            edits.push(Edit::FlushedVersion(version));
        }
        self.finish(&edits, fresh, Some(version), check)?;
        Ok(version)
    }

    fn finish(
        mut self,
        edits: &[Edit],
        fresh: FreshFiles,
        version: Option<Version>,
        check: impl FnOnce(&FileSet) -> Result<()>,
    ) -> Result<()> {
        let core = self.core;
        let outcome = {
            // An alter takes this lock, but not that of the writer.
            let mut manifest = core.writes.manifest.lock();
            let checked = check(&core.views.newest().files);
            checked.and_then(|()| core.install_in(&mut manifest, edits, fresh, |_| {}))
        };
        // After some edits, a transaction has read a table under one id while its rows are written under another,
        // so its reads cannot be compared with the writes. Edits that only add tables or change indexes are
        // harmless, because no transaction has read a new table.
        let is_comparable =
            |edit: &Edit| matches!(edit, Edit::Table { .. } | Edit::AlterIndex { .. } | Edit::LastVersion(_));
        let is_comparable = version.is_none() && edits.iter().all(is_comparable);
        if outcome.is_ok() && !is_comparable {
            core.writes.recent.note_change_of_tables(changed_tables(edits).as_deref(), self.writer().next_version());
        }
        if let (Ok(()), Some(version)) = (&outcome, version) {
            while self.writer().last_version() < version {
                self.writer().take_version();
            }
            core.writes.sync.note_durable(version);
            core.views.publish(version);
        }
        drop(self);
        core.clean_up_after(edits);
        outcome
    }
}

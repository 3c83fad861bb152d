//! The state that the handles, the committer and the background jobs of one open database share.
//!
//! Locks are taken in the order that [`writes`] names, and the lock of the newest view comes last. Callbacks of the
//! program (progress of long work, changes to a table's options) run with no lock held other than `levels` or
//! `altering`, and a panic in a callback leaves nothing under these two locks half changed. A thread that holds a
//! lock does not wait for background work, with one exception: imports, large batches, and clones, splits and renames
//! of tables wait for flushes while they hold `levels` and `writer`. This is safe because a flush takes only the locks
//! `manifest` and `numbering`.

pub mod acknowledged;
pub mod ahead;
pub mod background;
pub mod environment;
pub mod expiring;
pub mod files_only;
pub mod fill;
pub mod filters;
pub mod followed_writer;
pub mod handle;
pub mod install;
pub mod log_tail;
pub mod pace;
pub mod page_cache;
pub mod registry;
pub mod reserve;
pub mod scratch;
pub mod snapshots;
pub mod temporary;
pub mod views;
pub mod visible;
pub mod waiting;
pub mod writer;
pub mod writes;

use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::options::{Follow, Options};
use crate::base::record::LogError;
use crate::levels::levels_lock::OwnedLevels;
use crate::levels::offers::exchange::Exchange;
use crate::view::View;
use background::{Background, BackgroundClose};
use environment::Environment;
use expiring::Expiring;
use filters::Filters;
use followed_writer::FollowedWriter;
use os::sync::{Mutex, OnceLock};
use os::{Clock, Lock};
use registry::Registry;
use reserve::Reserve;
use sst::Version;
use std::time::Duration;
use temporary::TemporaryDirectory;
use views::{Shows, Views};
use visible::Broken;
use writer::{NotAppended, Unsynced, Writer, log_path};
use writes::Writes;

/// An open database.
#[derive(Debug)]
pub struct Core {
    /// The database's machine, directory and options.
    pub env: Environment,
    /// What readers see.
    pub views: Views,
    /// What writes change.
    pub writes: Writes,
    /// The indexes that writes keep up to date.
    pub indexes: Registry,
    /// The filters that compactions ask.
    pub filters: Filters,
    /// The tables that give times to the rows that are written to them.
    pub expiring: Expiring,
    /// The jobs of the database in the pool of threads. A read-only database has jobs only if it follows a writer in
    /// another process.
    pub background: Background,
    /// What a follower knows about its writer. Set only in a follower.
    pub followed: OnceLock<FollowedWriter>,
    /// Held while the database is open for writing. Released after everything that uses the files is gone.
    #[expect(dead_code, reason = "it does its work by being dropped")]
    lock: Option<Box<dyn Lock>>,
    /// Removes the directory of a temporary database when dropped, which happens after the lock is released.
    pub temporary: OnceLock<TemporaryDirectory>,
    /// Called by the close once no background work runs any more, if set.
    pub at_close: OnceLock<fn(&Core)>,
    /// Set if the close goes on in the background after the last handle is gone. Dropped after the lock.
    pub closing: Mutex<Option<BackgroundClose>>,
}

/// Which versions the reads of a database see if it is opened with `options`.
fn shows(options: &Options) -> Shows {
    match options.follow {
        _ if !options.read_only => Shows::Own,
        Some(Follow::Commits) => Shows::Followed,
        _ => Shows::Files,
    }
}

const PANICKED: &str = "a write or background job panicked; its message is on standard error";

/// Refuses writes if the thread that holds this guard panics. Otherwise writers could wait forever for background
/// work that this thread will never do, or could meet a half-done change of the log or the manifest. A thread that
/// was already panicking when it made the guard does not count: its panic began outside the guarded code and has
/// broken nothing. For example, after a callback of the program has panicked while an index was built, the unfinished
/// index is dropped under a guard.
pub struct StopOnPanic<'a> {
    core: &'a Core,
    was_panicking: bool,
}

impl<'a> StopOnPanic<'a> {
    /// Guards the calling thread.
    pub fn new(core: &'a Core) -> Self {
        Self { core, was_panicking: std::thread::panicking() }
    }
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            self.core.stop_writes(Error::WritesStopped(PANICKED.to_owned()));
        }
    }
}

impl Core {
    /// A database without a writer and a manifest, which the open adds later. A read-only database never gets them.
    pub fn new(env: Environment, lock: Option<Box<dyn Lock>>, view: View, visible: Version) -> Self {
        let reserve = Reserve::new(env.machine.disk.clone(), &env.directory, env.options.reserve_bytes);
        Self {
            writes: Writes::new(&view, visible, reserve, env.options.write_buffer_bytes),
            indexes: Registry::new(&view.files, &env.options.extractors),
            filters: Filters::default(),
            expiring: Expiring::new(&view.files, &env.options.expiry_times),
            views: Views::new(view, visible, shows(&env.options)),
            env,
            background: Background::default(),
            followed: OnceLock::new(),
            lock,
            temporary: OnceLock::new(),
            at_close: OnceLock::new(),
            closing: Mutex::new(None),
        }
    }

    /// Refuses all writes from now on. Returns `error`, for the caller to pass on.
    pub fn stop_writes(&self, error: Error) -> Error {
        if self.writes.stop(&error) {
            self.env.report(|| Event::WritesStopped { error: error.to_string() });
        }
        // Wakes the offer job, because threads may be waiting for levels that are claimed for workers.
        self.background.wake_offers_after(Duration::ZERO);
        self.background.tell_progress();
        error
    }

    /// Waits until reads see `version`, at most for `time`. Returns whether they see it.
    ///
    /// # Errors
    ///
    /// [`Error::WritesStopped`] if a commit up to this version panicked; [`Error::Forked`] in a child of the process that opened
    /// the database.
    pub fn wait_for(&self, version: Version, time: Duration) -> Result<bool> {
        self.env.check_origin()?;
        let begin = self.env.machine.clock.now();
        let left = || Some(time.saturating_sub(self.env.machine.clock.now().saturating_sub(begin)));
        let outcome = self.views.visible_versions().sleep_for(version, left);
        outcome.map_err(|broken| self.commit_broke(broken))
    }

    /// Whether all commits up to `version` are durable. Always true in a read-only database: only the process that
    /// wrote the commits can make them durable.
    pub fn is_durable(&self, version: Version) -> bool {
        self.writes.sync.is_durable(version) || self.env.options.read_only
    }

    /// Makes all commits up to `version` durable. Reads must already see these commits. A program should also call
    /// this before it passes on the result of a read, because the result may depend on a commit that is not durable
    /// yet.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if a sync fails or has failed, after which all writes fail; [`Error::Forked`] in a
    /// child of the process that opened the database.
    pub fn make_durable(&self, version: Version) -> Result<()> {
        if self.is_durable(version) {
            return Ok(());
        }
        self.env.check_origin()?;
        self.writes.sync.wait(version).map_err(|error| self.sync_failed(error))
    }

    /// Whether the commits up to `version` are durable. `None` if a sync can still make them durable, an error if a
    /// sync failed and it is unknown whether they are durable.
    pub fn durable_outcome(&self, version: Version) -> Option<Result<()>> {
        if self.env.options.read_only {
            return Some(Ok(()));
        }
        let outcome = self.writes.sync.outcome(version)?;
        Some(outcome.map_err(|error| self.sync_failed(error)))
    }

    /// Makes the log durable up to `unsynced`. If the sync fails, all later writes fail.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if the sync fails.
    pub fn sync(&self, unsynced: Unsynced) -> Result<()> {
        unsynced.sync().map_err(|error| self.sync_failed(error))
    }

    /// Refuses writes after a failed sync of the log. Returns the error for the commits that wait for this sync.
    pub fn sync_failed(&self, cause: LogError) -> Error {
        self.writes.sync.fail(&cause);
        self.stop_writes(Error::OutcomeUnknown { what: "the latest commits are durable", cause })
    }

    /// Converts the error of a commit that could not be appended to the log. If the cause is a failed sync, writes
    /// are refused from now on.
    pub fn not_appended(&self, cause: NotAppended) -> Error {
        match cause {
            NotAppended::Refused(error) => error.into(),
            NotAppended::SyncFailed(error) => self.sync_failed(error),
        }
    }

    /// Waits until all commits in the log of `writer` have been applied to the memtables. The caller holds the
    /// writer's lock.
    ///
    /// # Errors
    ///
    /// [`Error::WritesStopped`] if a commit panicked.
    pub fn wait_for_commits(&self, writer: &Writer) -> Result<()> {
        self.views.visible_versions().wait(writer.last_version()).map_err(|broken| self.commit_broke(broken))
    }

    /// Refuses writes, because a commit that is in the log was not applied, so reads will never see it.
    pub fn commit_broke(&self, _: Broken) -> Error {
        self.stop_writes(Error::WritesStopped(PANICKED.to_owned()))
    }

    /// Checks that writes are allowed.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child process; [`Error::WritesStopped`], with the cause, if an earlier error has ended
    /// all writes.
    pub fn check_writable(&self) -> Result<()> {
        self.env.check_origin()?;
        self.writes.check()
    }

    /// The clock for a thread that waits for other threads. `None` on a machine without threads, where waiting would
    /// be pointless because nothing else runs meanwhile.
    pub fn patient_clock(&self) -> Option<&dyn Clock> {
        self.env.machine.threads.are_real().then_some(&*self.env.machine.clock)
    }

    /// Waits until background work has made more progress than `seen`. On a machine without threads, does the work
    /// on this thread.
    pub fn wait_progress(&self, seen: u64) {
        self.background.drive();
        if self.env.machine.threads.are_real() {
            self.background.wait_progress(seen, || self.check_writable().is_err());
        }
    }

    /// Locks the levels exclusively: waits until no compaction is changing levels, and then keeps others from
    /// changing them.
    pub fn own_levels(&self) -> OwnedLevels<'_> {
        self.take_back_without_threads();
        self.writes.levels.own()
    }

    /// On a machine without threads, takes back all offers to workers, because no worker can finish one while this
    /// thread waits.
    pub fn take_back_without_threads(&self) {
        if !self.env.machine.threads.are_real() {
            self.withdraw_offers();
        }
    }

    /// Takes back all offers to workers. In a forked child this does nothing, because the offers belong to the
    /// parent process.
    pub fn withdraw_offers(&self) {
        if self.env.check_origin().is_ok() {
            let exchange = Exchange { disk: &*self.env.machine.disk, database: &self.env.directory };
            self.writes.offers.withdraw_all(exchange, self.env.machine.clock.now());
        }
    }

    /// Begins to load the tables that should stay in memory, in the background. Does nothing if no table should.
    pub fn warm_kept_tables(&self) {
        if self.views.newest().files.tables.values().any(|table| table.info.options.in_memory) {
            self.background.warmth.request_tables();
            self.background.wake_warm();
        }
    }
}

impl Drop for Core {
    /// The last part of a close that began with the drop of the last handle. No background work runs any more.
    fn drop(&mut self) {
        self.withdraw_offers();
        if !self.background.is_closing() || self.check_writable().is_err() {
            return;
        }
        if let Some(at_close) = self.at_close.get() {
            at_close(self);
        }
        if let Some(writer) = self.writes.writer.lock().as_mut() {
            // The last record of the log proves how much of the log is durable. Without it, the log is still
            // complete; the record only helps a later open to recognize damage.
            writer.append_proof().ok();
        }
        if let Some(next) = self.writes.ahead.take_next() {
            self.env.opener.leftovers.remove(&log_path(&self.env.directory, next.number()));
        }
        // If a leftover file cannot be removed now because a follower still reads it, the next open removes it.
        self.env.opener.leftovers.retry();
    }
}

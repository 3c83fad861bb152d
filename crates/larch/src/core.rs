//! What the handles, the committer and the background jobs of one open database share.
//!
//! The locks are those of [`writes`], in the order named there, and after them the lock of the newest view. Code of
//! the program (progress callbacks, the change of an alter) runs under `levels` or `altering` only, and a panic in
//! it does no harm to what these locks protect. No thread waits for background work while it holds a lock, with one
//! exception: an import, a large batch and a shared table wait for flushes while they hold `levels` and `writer`.
//! This is safe because a flush takes only `manifest` and `numbering`.

pub mod ahead;
pub mod background;
pub mod environment;
pub mod files_only;
pub mod fill;
pub mod following;
pub mod handle;
pub mod install;
pub mod log_tail;
pub mod pace;
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
use following::Following;
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
    /// Where it lives and how it was opened.
    pub env: Environment,
    /// What readers see.
    pub views: Views,
    /// What changes it.
    pub writes: Writes,
    /// The indexes that writes keep.
    pub indexes: Registry,
    /// Its jobs in the pool of threads. A database opened read-only has none, unless it follows another process.
    pub background: Background,
    /// What it knows of the process that it follows, if it follows one.
    pub following: OnceLock<Following>,
    /// Held while the database is open for writing; released after everything that touches its files.
    #[expect(dead_code, reason = "it does its work by being dropped")]
    lock: Option<Box<dyn Lock>>,
    /// Removes the directory of a temporary database, after the lock is released.
    pub temporary: OnceLock<TemporaryDirectory>,
    /// What the close does in addition, once no background work runs any more.
    pub at_close: OnceLock<fn(&Core)>,
    /// Set if the close goes on after the last handle is gone. It is dropped after the lock.
    pub closing: Mutex<Option<BackgroundClose>>,
}

/// What reads of a database see that is opened with `options`.
fn shows(options: &Options) -> Shows {
    match options.follow {
        _ if !options.read_only => Shows::Own,
        Some(Follow::Commits) => Shows::Followed,
        _ => Shows::Files,
    }
}

const PANICKED: &str = "a write or background job panicked; its message is on standard error";

/// Refuses writes if the thread that holds this guard panics. Otherwise writers could wait forever for background
/// work that this thread no longer does, or meet a half-done change of the log or the manifest. If the thread was
/// panicking before it took the guard, nothing is broken here. For example, a panic of the program may drop an
/// index.
pub struct StopOnPanic<'a> {
    core: &'a Core,
    was_panicking: bool,
}

impl<'a> StopOnPanic<'a> {
    /// Watches the thread that calls it.
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
    /// A database without a writer and a manifest. A database opened read-only stays so.
    pub fn new(env: Environment, lock: Option<Box<dyn Lock>>, view: View, visible: Version) -> Self {
        let reserve = Reserve::new(env.machine.disk.clone(), &env.directory, env.options.reserve_bytes);
        Self {
            writes: Writes::new(&view, visible, reserve, env.options.write_buffer_bytes),
            indexes: Registry::new(&view.files, &env.options.extractors),
            views: Views::new(view, visible, shows(&env.options)),
            env,
            background: Background::default(),
            following: OnceLock::new(),
            lock,
            temporary: OnceLock::new(),
            at_close: OnceLock::new(),
            closing: Mutex::new(None),
        }
    }

    /// Refuses writes from now on, and returns the error for the caller.
    pub fn stop_writes(&self, error: Error) -> Error {
        if self.writes.stop(&error) {
            self.env.report(|| Event::WritesStopped { error: error.to_string() });
        }
        // Threads may be waiting for levels on which workers work.
        self.background.wake_offers_after(Duration::ZERO);
        self.background.tell_progress();
        error
    }

    /// Whether every commit up to `version` is durable. It is also true if another process has written the commits:
    /// only that process makes them durable.
    pub fn is_durable(&self, version: Version) -> bool {
        self.writes.sync.is_durable(version) || self.env.options.read_only
    }

    /// Makes every commit up to `version` durable; reads see these commits. A read whose result is to be
    /// acknowledged calls it, too, because the result may depend on a commit that is not durable yet.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`], which is final for all writes; [`Error::Forked`].
    pub fn make_durable(&self, version: Version) -> Result<()> {
        if self.is_durable(version) {
            return Ok(());
        }
        self.env.check_origin()?;
        self.writes.sync.wait(version).map_err(|error| self.sync_failed(error))
    }

    /// What became of the commits up to `version`, if it is known already: they are durable, or a sync failed, and
    /// it stays unknown whether they are durable.
    pub fn durable_outcome(&self, version: Version) -> Option<Result<()>> {
        if self.env.options.read_only {
            return Some(Ok(()));
        }
        let outcome = self.writes.sync.outcome(version)?;
        Some(outcome.map_err(|error| self.sync_failed(error)))
    }

    /// Makes everything in the log up to `unsynced` durable. A sync that fails is final for all writes.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`].
    pub fn sync(&self, unsynced: Unsynced) -> Result<()> {
        unsynced.sync().map_err(|error| self.sync_failed(error))
    }

    /// Refuses writes after a sync of the log has failed, and says what that means for the commits that wait for one.
    pub fn sync_failed(&self, cause: LogError) -> Error {
        self.writes.sync.fail(&cause);
        self.stop_writes(Error::OutcomeUnknown { what: "the latest commits are durable", cause })
    }

    /// The error of a commit that the log did not take. If a sync has failed, writes are refused from now on.
    pub fn not_appended(&self, cause: NotAppended) -> Error {
        match cause {
            NotAppended::Refused(error) => error.into(),
            NotAppended::SyncFailed(error) => self.sync_failed(error),
        }
    }

    /// Waits until `writer`, which the caller has locked, has no commit that is still being applied.
    ///
    /// # Errors
    ///
    /// [`Error::WritesStopped`] if a commit panicked.
    pub fn wait_for_commits(&self, writer: &Writer) -> Result<()> {
        self.views.visible_versions().wait(writer.last_version()).map_err(|broken| self.commit_broke(broken))
    }

    /// Refuses writes, because reads will not see a commit that is in the log.
    pub fn commit_broke(&self, _: Broken) -> Error {
        self.stop_writes(Error::WritesStopped(PANICKED.to_owned()))
    }

    /// Whether writes are taken.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child process, [`Error::WritesStopped`] with the cause after an error that is final for
    /// writes.
    pub fn check_writable(&self) -> Result<()> {
        self.env.check_origin()?;
        self.writes.check()
    }

    /// The clock by which a thread waits for others; `None` on a machine without threads, where nothing would happen
    /// meanwhile.
    pub fn patient_clock(&self) -> Option<&dyn Clock> {
        self.env.machine.threads.are_real().then_some(&*self.env.machine.clock)
    }

    /// Waits until background work has made progress since `seen`; on a machine without threads, does the work here.
    pub fn wait_progress(&self, seen: u64) {
        self.background.drive();
        if self.env.machine.threads.are_real() {
            self.background.wait_progress(seen, || self.check_writable().is_err());
        }
    }

    /// Waits until nothing else changes levels, and keeps it so.
    pub fn own_levels(&self) -> OwnedLevels<'_> {
        self.take_back_without_threads();
        self.writes.levels.own()
    }

    /// On a machine without threads, takes back the offers to workers, because nothing happens there while a caller
    /// waits.
    pub fn take_back_without_threads(&self) {
        if !self.env.machine.threads.are_real() {
            self.withdraw_offers();
        }
    }

    /// Takes back the offers to workers, unless this is a forked child: they belong to the parent process.
    pub fn withdraw_offers(&self) {
        if self.env.check_origin().is_ok() {
            let exchange = Exchange { disk: &*self.env.machine.disk, database: &self.env.directory };
            self.writes.offers.withdraw_all(exchange, self.env.machine.clock.now());
        }
    }

    /// Begins to load the pages of tables that are to be in memory, in the background, if any table is.
    pub fn warm_kept_tables(&self) {
        if self.views.newest().files.tables.values().any(|table| table.info.options.in_memory) {
            self.background.warmth.request_tables();
            self.background.wake_warm();
        }
    }
}

impl Drop for Core {
    /// Ends the close that the last handle began. No background work runs any more.
    fn drop(&mut self) {
        self.withdraw_offers();
        if !self.background.is_closing() || self.check_writable().is_err() {
            return;
        }
        if let Some(at_close) = self.at_close.get() {
            at_close(self);
        }
        if let Some(writer) = self.writes.writer.lock().as_mut() {
            // The log is complete without the proof. The proof only helps to recognize later damage.
            writer.append_proof().ok();
        }
        if let Some(next) = self.writes.ahead.take_next() {
            self.env.opener.leftovers.remove(&log_path(&self.env.directory, next.number()));
        }
        // Files that followers still read are removed by the next open.
        self.env.opener.leftovers.retry();
    }
}

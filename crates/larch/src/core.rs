//! What the handles, the committer and the background jobs of one open database share.
//!
//! The locks are those of [`writes`], in the order named there, and after them the lock of the newest view. Code of others
//! (progress callbacks, the change of an alter) runs under `compacting` or `altering` only, and unwinds through them without
//! harm. Nothing waits for background work while it holds a lock, but for an import, which waits for flushes under
//! `compacting` and `writer`: a flush takes only `manifest` and `numbering`.

pub mod environment;
pub mod handle;
pub mod snapshots;
pub mod views;
pub mod writes;

use crate::background::{Background, BackgroundClose};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::log::record::LogError;
use crate::read::View;
use crate::warm::state;
use crate::write::reserve::Reserve;
use crate::write::writer::Unsynced;
use environment::Environment;
use os::Lock;
use os::sync::Mutex;
use sst::Version;
use views::Views;
use writes::Writes;

/// An open database.
#[derive(Debug)]
pub struct Core {
    /// Where it lives and how it was opened.
    pub env: Environment,
    /// What readers see.
    pub views: Views,
    /// The way of changes.
    pub writes: Writes,
    /// Its jobs in the pool of threads. A database opened read-only has none.
    pub background: Background,
    /// Held while the database is open for writing; let go after all that touches its files.
    #[expect(dead_code, reason = "it does its work by being dropped")]
    lock: Option<Box<dyn Lock>>,
    /// Set if the close goes on after the last handle is gone. Ends after the lock.
    pub closing: Mutex<Option<BackgroundClose>>,
}

/// Refuses writes when the thread that holds it panics: its background work would not be done any more, so that writers would
/// wait for ever, or its change of the log or the manifest may be half done.
pub struct StopOnPanic<'a>(pub &'a Core);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop_writes(Error::WritesStopped(
                "a write or background job panicked; its message is on standard error".to_owned(),
            ));
        }
    }
}

impl Core {
    /// Without a writer and a manifest, as it stays when opened read-only.
    pub fn new(env: Environment, lock: Option<Box<dyn Lock>>, view: View, visible: Version) -> Self {
        let reserve = Reserve::new(env.machine.disk.clone(), &env.directory, env.options.reserve_bytes);
        Self {
            writes: Writes::new(&view, reserve),
            views: Views::new(view, visible, env.options.read_only),
            env,
            background: Background::default(),
            lock,
            closing: Mutex::new(None),
        }
    }

    /// Refuses writes from now on, and returns the error for the caller that met it.
    pub fn stop_writes(&self, error: Error) -> Error {
        if self.writes.stop(&error) {
            self.env.report(|| Event::WritesStopped { error: error.to_string() });
        }
        self.background.tell_progress();
        error
    }

    /// Makes what was committed up to `unsynced` durable. A sync that fails is final for all writes.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`].
    pub fn sync(&self, unsynced: Unsynced) -> Result<()> {
        unsynced.sync().map_err(|error| self.sync_failed(error))
    }

    /// Refuses writes after a sync of the log has failed, and says what that means for the commits that waited for it.
    pub fn sync_failed(&self, cause: LogError) -> Error {
        self.stop_writes(Error::OutcomeUnknown { what: "the latest commits are durable", cause })
    }

    /// Whether writes are taken.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child process, [`Error::WritesStopped`] with the cause after an error that is final for writes.
    pub fn check_writable(&self) -> Result<()> {
        self.env.check_origin()?;
        self.writes.check()
    }

    /// Waits until there was progress since `seen`, or does the work here where no thread does it.
    pub fn wait_progress(&self, seen: u64) {
        self.background.drive();
        if self.env.machine.threads.are_real() {
            self.background.wait_progress(seen, || self.check_writable().is_err());
        }
    }

    /// Brings pages of tables that are to be in memory, in the background; nothing if there is no such table.
    pub fn warm_kept_tables(&self) {
        if self.views.newest().files.tables.values().any(|table| table.info.options.in_memory) {
            self.background.warmth.want_tables();
            self.background.wake_warm();
        }
    }
}

impl Drop for Core {
    /// Ends the close that the last handle began; nothing runs in the background any more.
    fn drop(&mut self) {
        if !self.background.is_closing() || self.check_writable().is_err() {
            return;
        }
        if self.env.options.warm_from_last && !self.env.options.read_only {
            // Best effort: losing it costs only time.
            state::save(&self.env, &self.views.newest()).ok();
        }
        if let Some(writer) = self.writes.writer.lock().as_mut() {
            // The log is whole without it; it only helps to tell later damage.
            writer.append_proof().ok();
        }
    }
}

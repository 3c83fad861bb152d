//! What the handles, the committer and the background jobs of one open database share.
//!
//! Locks, in the order in which they may be taken: `compacting`, `altering`, `write` (the log and the next version),
//! `manifest`, `numbering`, `view`. No lock is poisoned: what can panic under `write` or `manifest`, the disk and the memtables,
//! is guarded by [`StopOnPanic`], so that later writes get an error and reads go on. Foreign code (progress, the change of an
//! alter) runs under `compacting` or `altering` only, and unwinds through them without harm. Readers take `view` for the time of one reference count. Nothing waits for background work while it holds a
//! lock, but for an import, which waits for flushes under the first two: a flush takes only the last two.

pub mod snapshots;

use crate::background::{Background, Closing};
use crate::compact::picks::Picks;
use crate::core::snapshots::{Pin, Snapshots};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::gauge::Gauge;
use crate::inspect::scrub::Scrub;
use crate::log::resting::RestingDisk;
use crate::manifest::db_file::FileOpener;
use crate::manifest::{ManifestLog, TableId, TableInfo};
use crate::options::Options;
use crate::read::View;
use crate::read::range::Ranges;
use crate::warm::job::Warmth;
use crate::warm::state;
use crate::write::commit::{Pace, Writer};
use crate::write::reserve::Reserve;
use os::process::Origin;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, OnceLock, RwLock};
use os::{Lock, Machine};
use pages::{OwnMemory, PageCache};
use sst::Version;
use std::path::PathBuf;

/// An open database.
#[derive(Debug)]
pub struct Core {
    pub machine: Machine,
    /// The same with a disk that closes log and manifest while nobody writes to them.
    pub log_machine: Machine,
    pub log_disk: Arc<RestingDisk>,
    pub directory: PathBuf,
    pub options: Options,
    pub cache: Arc<PageCache>,
    pub opener: FileOpener,
    pub epoch: u64,
    pub view: RwLock<Arc<View>>,
    /// Of the newest view. In a database opened read-only it stays as it is: there are ranges that go on in older files.
    generation: AtomicU64,
    /// Newest version that reads may see.
    visible: AtomicU64,
    /// `None` in a database opened read-only.
    pub write: Mutex<Option<Writer>>,
    /// `None` in a database opened read-only, where the lock is held while a newer manifest is read.
    pub manifest: Mutex<Option<ManifestLog>>,
    pub next_number: AtomicU64,
    pub snapshots: Arc<Snapshots>,
    /// The process that writes.
    origin: Origin,
    /// One alter at a time, from reading the options to changing them.
    pub altering: Mutex<()>,
    /// Held by who takes a number for a file and reads the options it is written with; exclusively by an alter, from taking
    /// the number that splits old files from new to showing the new options.
    pub numbering: RwLock<()>,
    pub reserve: Reserve,
    pub picks: Picks,
    /// Why writes are refused, once they are.
    stopped: OnceLock<String>,
    pub background: Background,
    /// Held by whoever changes levels: one compaction at a time.
    pub compacting: Mutex<()>,
    pub written: Written,
    pub held: Held,
    pub pace: Pace,
    pub ranges: Arc<Ranges>,
    pub warmth: Warmth,
    pub scrub: Scrub,
    /// Held while the database is open for writing; let go after all that touches its files.
    #[expect(dead_code, reason = "it does its work by being dropped")]
    pub lock: Option<Box<dyn Lock>>,
    /// Set if the close goes on after the last handle is gone. Ends after the lock.
    pub closing: Mutex<Option<Closing>>,
}

/// Bytes written since the database was opened, by cause.
#[derive(Debug, Default)]
pub struct Written {
    pub log: AtomicU64,
    pub flush: AtomicU64,
    pub compaction: AtomicU64,
    pub import: AtomicU64,
    /// Files moved down a level without being rewritten.
    pub trivial_moves: AtomicU64,
    pub compactions: AtomicU64,
    pub flushes: AtomicU64,
    /// Attempts to renew an overgrown manifest that failed. Each later install tries again.
    pub failed_renewals: AtomicU64,
    /// Time commits were slowed, in microseconds.
    pub slowed_micros: AtomicU64,
}

/// Memory that passes through the hands of writers, by what it is for; what stays is counted where it is.
#[derive(Debug)]
pub struct Held {
    /// Files being built, and range erases on their way into them, by whoever builds them.
    pub builders: Arc<Gauge>,
    /// Pages that compactions and merges of imports read.
    pub compactions: OwnMemory,
    /// Rows of imports that are to be sorted.
    pub imports: Arc<Gauge>,
    /// What the log keeps to lay out records in.
    pub log: AtomicU64,
    /// What the manifest keeps for that.
    pub manifest: AtomicU64,
}

impl Held {
    /// Nothing yet. Half of `work_bytes` is for reading.
    fn new(work_bytes: u64) -> Self {
        Self {
            builders: Arc::default(),
            compactions: OwnMemory::new(work_bytes / 2),
            imports: Arc::default(),
            log: AtomicU64::new(0),
            manifest: AtomicU64::new(0),
        }
    }
}

/// Refuses writes when whoever holds it panics: background work that nobody would do any more, so that writers would wait
/// for ever, or a change of log or manifest of which nobody knows how far it came.
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
    pub fn new(
        machine: Machine,
        directory: PathBuf,
        options: Options,
        opener: FileOpener,
        lock: Option<Box<dyn Lock>>,
        view: View,
        visible: Version,
    ) -> Self {
        let reserve = Reserve::new(machine.disk.clone(), &directory, options.reserve_bytes);
        let held = Held::new(options.work_bytes);
        let log_disk = Arc::new(RestingDisk::new(machine.disk.clone()));
        Self {
            log_machine: Machine { disk: log_disk.clone(), ..machine.clone() },
            log_disk,
            machine,
            directory,
            options,
            origin: Origin::here(),
            altering: Mutex::new(()),
            numbering: RwLock::new(()),
            reserve,
            picks: Picks::of(&view.files),
            cache: opener.cache.clone(),
            opener,
            epoch: view.files.epoch,
            generation: AtomicU64::new(view.generation),
            visible: AtomicU64::new(visible.0),
            write: Mutex::new(None),
            manifest: Mutex::new(None),
            next_number: AtomicU64::new(view.files.next_number),
            view: RwLock::new(Arc::new(view)),
            snapshots: Arc::default(),
            stopped: OnceLock::new(),
            background: Background::default(),
            compacting: Mutex::new(()),
            written: Written::default(),
            held,
            pace: Pace::default(),
            ranges: Arc::default(),
            warmth: Warmth::default(),
            scrub: Scrub::default(),
            lock,
            closing: Mutex::new(None),
        }
    }

    /// The newest view.
    pub fn view(&self) -> Arc<View> {
        self.view.read().clone()
    }

    /// Its generation.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Newest version that reads may see. A reader takes its view first: then every file in it is older.
    pub fn visible(&self) -> Version {
        Version(self.visible.load(Ordering::Acquire))
    }

    /// Lets reads see up to `version`.
    pub fn publish(&self, version: Version) {
        self.visible.store(version.0, Ordering::Release);
    }

    /// The versions that somebody may read at, ascending: the pinned ones, the newest, what a database opened read-only
    /// shows, and what it may show after the next flushes.
    pub fn boundaries(&self) -> Vec<Version> {
        let mut boundaries = self.snapshots.boundaries(|| self.visible());
        let newest = *boundaries.last().expect("the newest version is one");
        let view = self.view();
        let before_memory = view.memory.iter().filter_map(|memory| memory.oldest().0.checked_sub(1).map(Version));
        boundaries.extend(before_memory.chain([view.files.flushed_version]).filter(|&version| version < newest));
        boundaries.sort_unstable();
        boundaries.dedup();
        boundaries
    }

    /// The oldest version that somebody may read at.
    pub fn oldest_seen(&self) -> Version {
        self.boundaries()[0]
    }

    /// What a read that begins now sees: a view, and a version that all of it is seen at.
    pub fn now(&self) -> (Arc<View>, Version) {
        let view = self.view();
        // The view first: then every file in it is older than the version read afterwards.
        let at = if self.options.read_only { view.files.flushed_version } else { self.visible() };
        (view, at)
    }

    /// Keeps the newest version for a reader.
    pub fn pin(&self) -> Pin {
        if self.options.read_only {
            return self.snapshots.pin_in(self.view());
        }
        self.snapshots.pin(|| self.visible())
    }

    /// The newest view that shows the version of `pin`.
    pub fn view_of(&self, pin: &Pin) -> Arc<View> {
        let newest = self.view();
        match pin.view() {
            Some(own) if newest.files.flushed_version != pin.version() => own.clone(),
            _ => newest,
        }
    }

    /// Makes a new view from the newest. Idle ranges keep the old one until [`Core::free_old_views`].
    pub fn change_view(&self, change: impl FnOnce(&mut View)) {
        let mut view = self.view.write();
        let mut next = View::clone(&view);
        next.generation += 1;
        change(&mut next);
        let generation = next.generation;
        let old = std::mem::replace(&mut *view, Arc::new(next));
        self.generation.store(generation, Ordering::Release);
        drop(view);
        drop(old);
    }

    /// Takes views before the newest away from ranges that are not in use, so that files and memory that are no longer in it
    /// are freed. Looks at every open range: not to be called under the locks of the manifest or the writers.
    pub fn free_old_views(&self) {
        self.ranges.let_go(self.generation());
    }

    /// The next free file number.
    pub fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::AcqRel)
    }

    /// A table by id, if it still exists.
    pub fn table_info(&self, table: TableId) -> Option<Arc<TableInfo>> {
        self.view().files.tables.get(&table).map(|table| table.info.clone())
    }

    /// From now on writes are refused. Returns the error for the one who met it.
    pub fn stop_writes(&self, error: Error) -> Error {
        // The first cause is the one to tell.
        if self.stopped.set(error.to_string()).is_ok() {
            self.report(|| Event::WritesStopped { error: error.to_string() });
        }
        self.background.tell_progress();
        error
    }

    /// Reports what `event` makes to the hook of the database.
    pub fn report(&self, event: impl FnOnce() -> Event) {
        self.options.events.report(event);
    }

    /// Why writes are refused, if they are.
    pub fn check_writable(&self) -> Result<()> {
        self.check_origin()?;
        match self.stopped.get() {
            Some(why) => Err(Error::WritesStopped(why.clone())),
            None => Ok(()),
        }
    }

    /// Refuses a forked child. To be called before any lock is taken: another thread may have held it when the process was
    /// forked, and nobody in the child will let it go.
    pub fn check_origin(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(Error::Forked) }
    }
}

impl Drop for Core {
    /// Ends the close that the last handle began; nothing runs in the background any more.
    fn drop(&mut self) {
        if !self.background.is_closing() || self.check_writable().is_err() {
            return;
        }
        if self.options.warm_from_last && !self.options.read_only {
            // It is worth nothing but time.
            state::save(self).ok();
        }
        if let Some(writer) = self.write.lock().as_mut() {
            // The log is whole without it; it only helps to tell later damage.
            writer.append_proof().ok();
        }
    }
}

//! A page on its way into memory: read by one session, awaited by any number. It does not know the cache's table.
//!
//! A flight lands exactly once. Thread safe.

use crate::{Error, PageRef};
use os::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use os::sync::{Condvar, Mutex};

/// How a flight ended.
#[derive(Clone)]
pub(crate) enum Landing {
    /// The page is here.
    Arrived(PageRef),
    /// Reading failed; so it did for all who wait.
    Failed(Error),
    /// The session that read it went away without an outcome (it panicked): whoever needs the page asks again.
    Abandoned,
}

/// One page being read.
#[derive(Default)]
pub(crate) struct Flight {
    landing: Mutex<Option<Landing>>,
    landed: Condvar,
    waiting: AtomicUsize,
    /// Set, under the shard's lock, by whoever wants the cache to keep the page.
    keep: AtomicBool,
}

impl Flight {
    /// Asks for the page to be kept. Under the shard's lock.
    pub fn ask_to_keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked for the page to be kept. Under the shard's lock.
    pub fn is_to_be_kept(&self) -> bool {
        self.keep.load(Ordering::Relaxed)
    }

    /// Ends the flight.
    pub fn land(&self, landing: Landing) {
        let before = self.landing.lock().replace(landing);
        debug_assert!(before.is_none(), "a flight lands once");
        self.landed.notify_all();
    }

    /// Waits for the end of the flight. The caller has no flight of its own that has not landed.
    pub fn wait(&self) -> Landing {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut landing = self.landing.lock();
        let outcome = loop {
            match &*landing {
                Some(outcome) => break outcome.clone(),
                None => landing = self.landed.wait(landing),
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    /// How many sessions wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

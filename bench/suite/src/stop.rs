//! Catches ^C. The first ^C ends a run in good order, and the second one ends the process at once.

#![allow(clippy::disallowed_methods, reason = "ends the process, never simulated")]

use crate::{live, say};
use harness::Failure;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Mutex};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The kind of the failure that ^C causes.
pub const INTERRUPTED: &str = "interrupted";

/// Whether ^C was pressed.
#[derive(Clone, Debug)]
pub struct Stop {
    pressed: Arc<AtomicBool>,
    /// A directory to remove at the end of the process.
    temporary: Arc<OnceLock<PathBuf>>,
}

impl Stop {
    /// Installs the handler for ^C, SIGTERM and SIGHUP.
    pub fn catch() -> Result<Self, Failure> {
        let stop = Self { pressed: Arc::new(AtomicBool::new(false)), temporary: Arc::default() };
        let (pressed, temporary) = (stop.pressed.clone(), stop.temporary.clone());
        ctrlc::set_handler(move || {
            if pressed.swap(true, Ordering::Relaxed) {
                // Other threads may still make files in the temporary directory, and there is no time to wait
                // until these threads end.
                live::screen::give_back();
                temporary.get().map(|directory| kit::scratch::remove_in_use(directory));
                std::process::exit(130);
            }
            say("larch: ending; what was measured so far is printed. Press ^C again to end at once");
        })
        .map_err(|error| Failure::session("signal", format!("cannot catch ^C: {error}")))?;
        Ok(stop)
    }

    /// Names the directory that a second ^C removes.
    pub fn removes(&self, temporary: &Path) {
        self.temporary.set(temporary.to_owned()).expect("there is one temporary directory");
    }

    /// A value that ^C does not change.
    pub fn never() -> Self {
        Self { pressed: Arc::default(), temporary: Arc::default() }
    }

    /// Ends the run as a ^C would.
    pub fn press(&self) {
        self.pressed.store(true, Ordering::Relaxed);
    }

    /// Whether ^C was pressed, or the run was ended by [`Stop::press`].
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// The flag that a run checks.
    pub fn flag(&self) -> &AtomicBool {
        &self.pressed
    }
}

/// Catches ^C in a process that makes one run after another. If a run is under way, ^C ends this run in good
/// order, and then the process ends. If no run is under way, ^C ends the process at once.
#[derive(Clone, Debug, Default)]
pub struct Breaks {
    run: Arc<Mutex<Option<Stop>>>,
    is_pressed: Arc<AtomicBool>,
}

impl Breaks {
    /// Installs the handler for ^C, SIGTERM and SIGHUP.
    pub fn catch() -> Result<Self, Failure> {
        let breaks = Self::default();
        let (run, is_pressed) = (breaks.run.clone(), breaks.is_pressed.clone());
        ctrlc::set_handler(move || {
            let was_pressed = is_pressed.swap(true, Ordering::Relaxed);
            match &*run.lock() {
                Some(run) if !was_pressed => run.press(),
                _ => std::process::exit(130),
            }
        })
        .map_err(|error| Failure::session("signal", format!("cannot catch ^C: {error}")))?;
        Ok(breaks)
    }

    /// Begins a run, and returns the [`Stop`] that is set if ^C is pressed during the run.
    pub fn begin(&self) -> Stop {
        let stop = Stop::never();
        *self.run.lock() = Some(stop.clone());
        stop
    }

    /// Says that the run is over. Returns whether the process is to end.
    pub fn end(&self) -> bool {
        *self.run.lock() = None;
        self.is_pressed.load(Ordering::Relaxed)
    }
}

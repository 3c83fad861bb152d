//! Catches ^C: the first ends a run in good order, the second at once.

#![allow(clippy::disallowed_methods, reason = "ends the process, never simulated")]

use crate::say;
use harness::Failure;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Mutex};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The kind of the failure that ^C is.
pub const INTERRUPTED: &str = "interrupted";

/// Whether ^C was pressed.
#[derive(Clone, Debug)]
pub struct Stop {
    pressed: Arc<AtomicBool>,
    /// A directory to remove at the end of the process.
    temporary: Arc<OnceLock<PathBuf>>,
}

impl Stop {
    /// From now on, catches ^C and the request to end.
    pub fn catch() -> Result<Self, Failure> {
        let stop = Self { pressed: Arc::new(AtomicBool::new(false)), temporary: Arc::default() };
        let (pressed, temporary) = (stop.pressed.clone(), stop.temporary.clone());
        ctrlc::set_handler(move || {
            if pressed.swap(true, Ordering::Relaxed) {
                // Threads may still make files in the directory, and there is no time to wait until they end.
                temporary.get().map(|directory| kit::scratch::remove_in_use(directory));
                std::process::exit(130);
            }
            say("larch: ending; what was measured so far is printed. Press ^C again to end at once");
        })
        .map_err(|error| Failure::session("signal", format!("cannot catch ^C: {error}")))?;
        Ok(stop)
    }

    /// The second ^C removes this directory.
    pub fn removes(&self, temporary: &Path) {
        self.temporary.set(temporary.to_owned()).expect("there is one temporary directory");
    }

    /// One that ^C does not press.
    pub fn never() -> Self {
        Self { pressed: Arc::default(), temporary: Arc::default() }
    }

    /// Ends the run as ^C does.
    pub fn press(&self) {
        self.pressed.store(true, Ordering::Relaxed);
    }

    /// Whether it was.
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// What a run looks at.
    pub fn flag(&self) -> &AtomicBool {
        &self.pressed
    }
}

/// ^C in a process that makes one run after the other. It ends a run in good order and then the process; if no run
/// goes on, it ends the process at once.
#[derive(Clone, Debug, Default)]
pub struct Breaks {
    run: Arc<Mutex<Option<Stop>>>,
    is_pressed: Arc<AtomicBool>,
}

impl Breaks {
    /// From now on, catches ^C and the request to end.
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

    /// What ends the run that begins now.
    pub fn begin(&self) -> Stop {
        let stop = Stop::never();
        *self.run.lock() = Some(stop.clone());
        stop
    }

    /// The run is over. Whether the process is to end.
    pub fn end(&self) -> bool {
        *self.run.lock() = None;
        self.is_pressed.load(Ordering::Relaxed)
    }
}

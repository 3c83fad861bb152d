//! Catches ^C: the first ends a run in good order, the second at once.

#![allow(clippy::disallowed_methods, reason = "ends the process, never simulated")]

use crate::say;
use harness::Failure;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Whether ^C was pressed.
#[derive(Clone, Debug)]
pub struct Stop {
    pressed: Arc<AtomicBool>,
    /// A directory to remove at the end of the process.
    temporary: Arc<OnceLock<PathBuf>>,
}

impl Stop {
    /// Catches ^C, and being asked to end, from now on.
    pub fn catch() -> Result<Self, Failure> {
        let stop = Self { pressed: Arc::new(AtomicBool::new(false)), temporary: Arc::default() };
        let (pressed, temporary) = (stop.pressed.clone(), stop.temporary.clone());
        ctrlc::set_handler(move || {
            if pressed.swap(true, Ordering::Relaxed) {
                // Threads may still make files in it, and there is no time to wait until they end.
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

    /// One that is never pressed.
    pub fn never() -> Self {
        Self { pressed: Arc::default(), temporary: Arc::default() }
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

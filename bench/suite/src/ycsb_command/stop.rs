//! ^C: the first ends a run in good order, the second at once.

#![allow(clippy::disallowed_methods, reason = "ends the process, never simulated")]

use harness::Failure;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};

/// Whether ^C was pressed.
#[derive(Clone, Debug)]
pub struct Stop {
    pressed: Arc<AtomicBool>,
}

impl Stop {
    /// Catches ^C, and being asked to end, from now on.
    pub fn catch() -> Result<Self, Failure> {
        let stop = Self { pressed: Arc::new(AtomicBool::new(false)) };
        let pressed = stop.pressed.clone();
        ctrlc::set_handler(move || {
            if pressed.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            eprintln!("larch: ending; what was measured so far is told. Once more ends at once");
        })
        .map_err(|error| Failure::session("signal", format!("cannot catch ^C: {error}")))?;
        Ok(stop)
    }

    /// What a run looks at.
    pub fn flag(&self) -> &AtomicBool {
        &self.pressed
    }
}

//! Handles ^C during long work. The first ^C stops the work cleanly, and the second one ends the process at once.
//! Nothing is lost either way, and after a clean stop no half-written files are left for the next open to remove.
//! Work that waits for something outside, such as an import whose input does not come, cannot stop by itself: then
//! the process ends [`PATIENCE`] after the first ^C.

#![allow(clippy::disallowed_methods, reason = "ends the process by a thread of its own, never simulated")]

use os::Machine;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit code of a process that ^C ended.
pub const EXIT_CODE: u8 = 130;

/// How long work may take to stop. It checks for ^C at every page or row, so if it has not stopped by then, it is
/// waiting for something outside the process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the user wants long work to end. All clones share this state.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches ^C and termination signals from now on. Call it once per process.
    pub fn caught() -> Self {
        let interrupt = Self::default();
        let Self(asked) = interrupt.clone();
        let caught = ctrlc::set_handler(move || {
            if asked.swap(true, Ordering::AcqRel) {
                std::process::exit(EXIT_CODE.into());
            }
            eprintln!("larch: giving up; once more ends at once");
            std::thread::spawn(|| {
                Machine::real().clock.sleep(PATIENCE);
                std::process::exit(EXIT_CODE.into());
            });
        });
        // If this process cannot catch ^C, the first ^C ends the process at once.
        caught.map_or_else(|_| Self::default(), |()| interrupt)
    }

    /// The value that a callback returns to long work. It says whether the work should go on.
    pub fn goes_on(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns [`larch::Error::Cancelled`] if ^C was pressed, so that a command's own loops stop like work of the
    /// engine.
    pub fn check(&self, work: &'static str) -> larch::Result<()> {
        if self.goes_on().is_break() { Err(larch::Error::Cancelled(work)) } else { Ok(()) }
    }
}

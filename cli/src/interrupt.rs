//! Handles ^C during long work. The first ^C ends the work in good order, and the second one ends the process at
//! once. In both cases nothing is lost. If the first ^C has ended the work, there are no half-written files that
//! the next open would have to remove. Some work cannot end by itself, such as an import whose input does not
//! come. After some seconds, the whole process is ended in this case.

#![allow(clippy::disallowed_methods, reason = "ends the process by a thread of its own, never simulated")]

use os::Machine;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit code of a process that ^C ended.
pub const EXIT_CODE: u8 = 130;

/// Work checks at every page or at every row whether ^C was pressed. If it has not ended after this time, it is
/// waiting for something outside of the process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the user wants long work to end. All clones share this state.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From this call on, catches ^C and a request of the system to end the process. It is called once in a
    /// process.
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

    /// If ^C was pressed, returns the error with which the engine ends its own work. The command's own work can
    /// end in the same way.
    pub fn check(&self, work: &'static str) -> larch::Result<()> {
        if self.goes_on().is_break() { Err(larch::Error::Cancelled(work)) } else { Ok(()) }
    }
}

//! Handles ^C during long work. The first ^C ends the work in good order, and the second one ends the process at
//! once. In both cases nothing is lost. After the first ^C, there are also no half-written files that the next open
//! would have to remove. Some work cannot end by itself, such as an import whose input does not come. After some
//! seconds, the whole process is ended in this case.

#![allow(clippy::disallowed_methods, reason = "ends the process by a thread of its own, never simulated")]

use os::Machine;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit code of a process that ^C ended.
pub const EXIT_CODE: u8 = 130;

/// At each page or row, work checks whether it must end. If work takes longer than this time to end, it is waiting
/// for something outside of the process.
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
        // If ^C cannot be caught, it ends the process, as in any other program.
        caught.map_or_else(|_| Self::default(), |()| interrupt)
    }

    /// The answer of long work's callback: whether the work goes on.
    pub fn goes_on(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Ends `work` of the command itself, in the same way as the engine ends its own work.
    pub fn check(&self, work: &'static str) -> larch::Result<()> {
        if self.goes_on().is_break() { Err(larch::Error::Cancelled(work)) } else { Ok(()) }
    }
}

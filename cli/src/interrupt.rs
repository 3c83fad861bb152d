//! ^C during long work: the first ends the work in good order, the second ends the process at once. Neither loses
//! anything. The first also leaves no half-written files for the next open to remove. Some work does not end by
//! itself, such as an import whose input does not come: after some seconds, it ends with the process.

#![allow(clippy::disallowed_methods, reason = "ends the process by a thread of its own, never simulated")]

use os::Machine;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit code of a process that ^C ended.
pub const EXIT_CODE: u8 = 130;

/// Work checks at each page or row whether it must end. Work that takes longer than this is waiting for something
/// outside.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the user wants long work to end. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on, catches ^C and the request to end. Called once in a process.
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
        // If ^C cannot be caught, it ends the process, as for any other program.
        caught.map_or_else(|_| Self::default(), |()| interrupt)
    }

    /// What a callback of long work answers.
    pub fn goes_on(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Ends `work` that the command does itself, in the same way as the engine ends its work.
    pub fn check(&self, work: &'static str) -> larch::Result<()> {
        if self.goes_on().is_break() { Err(larch::Error::Cancelled(work)) } else { Ok(()) }
    }
}

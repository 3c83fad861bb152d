//! ^C during long work: the first gives it up in good order, the second ends the process at once. Nothing is lost by
//! either; after the first no half-written files are left for the next open to remove. Work that does not end by
//! itself, as an import whose input does not come, is ended with the process after some seconds.

#![allow(clippy::disallowed_methods, reason = "ends the process by a thread of its own, never simulated")]

use larch::Cancel;
use os::Machine;
use std::time::Duration;

/// The exit code of a process that ^C ended.
pub const EXIT_CODE: u8 = 130;

/// Work looks whether to give up at each page or row; what takes longer waits for something outside.
const PATIENCE: Duration = Duration::from_secs(10);

/// From now on, catches ^C and the request to end. Called once in a process.
pub fn cancels() -> Cancel {
    let cancel = Cancel::new();
    let asked = cancel.clone();
    let caught = ctrlc::set_handler(move || {
        if asked.is_cancelled() {
            std::process::exit(EXIT_CODE.into());
        }
        asked.cancel();
        eprintln!("larch: giving up; once more ends at once");
        std::thread::spawn(|| {
            Machine::real().clock.sleep(PATIENCE);
            std::process::exit(EXIT_CODE.into());
        });
    });
    // Where it cannot be caught it ends the process, as for any other program.
    caught.map_or_else(|_| Cancel::new(), |()| cancel)
}

//! Models a disk whose reads take longer: it makes the machine's real reads, and reports each read later by a fixed
//! time. The delay does not limit how many reads are under way. So this module models a disk that is far away, and
//! not a disk that is busy. This module does not know what is read.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a real disk and a real clock, never simulated"
)]

use os::sync::Arc;
use os::{Buffer, Clock, Done, Machine, ReadRequest, Reads, Usage};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// This machine, with `delay` added to each read.
pub fn machine(delay: Duration) -> Machine {
    let machine = Machine::real();
    if delay.is_zero() {
        return machine;
    }
    let reads = LateReads::new(machine.reads.clone(), machine.clock.clone(), delay);
    Machine { reads: Arc::new(reads), ..machine }
}

/// Reads that are reported late.
#[derive(Debug)]
pub struct LateReads {
    reads: Arc<dyn Reads>,
    clock: Arc<dyn Clock>,
    delay: Duration,
    /// Sends the reads that have ended to the thread that reports them, in the order in which they are to be
    /// reported. The thread ends when the last sender was dropped.
    ended: Sender<Ended>,
}

/// A read that has ended and is to be reported.
struct Ended {
    /// The clock's time at which the read is to be reported.
    due: Duration,
    buffer: Buffer,
    outcome: io::Result<usize>,
    done: Done,
}

impl LateReads {
    /// Makes the reads with `reads`, and reports each read `delay` late.
    pub fn new(reads: Arc<dyn Reads>, clock: Arc<dyn Clock>, delay: Duration) -> Self {
        let (ended, received) = channel();
        let of_thread = clock.clone();
        thread::spawn(move || report(&received, &*of_thread));
        Self { reads, clock, delay, ended }
    }
}

/// Reports reads when they are due. All reads are delayed by the same time, so the read that ends first is also due
/// first.
fn report(ended: &Receiver<Ended>, clock: &dyn Clock) {
    for Ended { due, buffer, outcome, done } in ended {
        clock.pause(due.saturating_sub(clock.now()));
        done(buffer, outcome);
    }
}

impl Reads for LateReads {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let late = |read: ReadRequest| {
            let (ended, clock, delay, done) = (self.ended.clone(), self.clock.clone(), self.delay, read.done);
            let later: Done = Box::new(move |buffer, outcome| {
                let told = Ended { due: clock.now() + delay, buffer, outcome, done };
                if let Err(untold) = ended.send(told) {
                    // The reporting thread has ended only if a callback panicked. If it has ended, the read is
                    // reported here, without a delay.
                    (untold.0.done)(untold.0.buffer, untold.0.outcome);
                }
            });
            ReadRequest { done: later, ..read }
        };
        self.reads.submit(reads.into_iter().map(late).collect());
    }

    fn raise(&self, ticket: u64) {
        self.reads.raise(ticket);
    }

    fn overlap(&self) -> bool {
        self.reads.overlap()
    }

    fn make(&self, read: ReadRequest) {
        self.clock.pause(self.delay);
        self.reads.make(read);
    }

    fn name(&self) -> &'static str {
        self.reads.name()
    }

    fn usage(&self) -> Usage {
        self.reads.usage()
    }

    fn drive(&self) -> bool {
        self.reads.drive()
    }
}

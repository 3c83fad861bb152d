//! A disk whose reads take longer: makes the machine's real reads, and completes each one late by a fixed time. The
//! delay does not limit the number of reads in flight, so this models a disk that is far away and not one that is
//! busy.

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

/// The real machine, with `delay` added to each read.
pub fn machine(delay: Duration) -> Machine {
    let machine = Machine::real();
    if delay.is_zero() {
        return machine;
    }
    let reads = LateReads::new(machine.reads.clone(), machine.clock.clone(), delay);
    Machine { reads: Arc::new(reads), ..machine }
}

/// Completes reads late.
#[derive(Debug)]
pub struct LateReads {
    reads: Arc<dyn Reads>,
    clock: Arc<dyn Clock>,
    delay: Duration,
    /// Sends finished reads to the thread that completes them, in the order in which they are due. The thread ends
    /// when the last sender is dropped.
    ended: Sender<Ended>,
}

/// A finished read that is not completed yet.
struct Ended {
    /// When to complete it.
    due: Duration,
    buffer: Buffer,
    outcome: io::Result<usize>,
    done: Done,
}

impl LateReads {
    /// Reads by `reads`, and completes each read `delay` late.
    pub fn new(reads: Arc<dyn Reads>, clock: Arc<dyn Clock>, delay: Duration) -> Self {
        let (ended, received) = channel();
        let of_thread = clock.clone();
        thread::spawn(move || report(&received, &*of_thread));
        Self { reads, clock, delay, ended }
    }
}

/// Completes reads when they are due. The delay is the same for all, so they are due in the order in which they
/// finish.
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
                    // The thread is gone, which happens only if a callback panicked: complete the read without a
                    // delay.
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

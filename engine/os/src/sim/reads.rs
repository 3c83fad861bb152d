//! Simulated reads, which are held back until a thread drives them, in an order that the seed decides. This module
//! does not know what is read; the disk decides what fails.

use super::random::Draws;
use crate::io::{ReadLoad, Usage};
use crate::sync::{Arc, Mutex};
use crate::{ReadRequest, Reads, Urgency};
use std::fmt;

/// The reads that are held back. When the seed chooses a read, it is made in one step.
pub struct SimReads {
    state: Mutex<SimReadsState>,
}

struct SimReadsState {
    draws: Draws,
    held: Vec<ReadRequest>,
    reads: u64,
    raised: Vec<u64>,
}

impl SimReads {
    /// No reads yet. `seed` decides the order in which reads end.
    pub fn new(seed: u64) -> Arc<SimReads> {
        let draws = Draws::new(seed);
        Arc::new(SimReads {
            state: Mutex::new(SimReadsState { draws, held: Vec::new(), reads: 0, raised: Vec::new() }),
        })
    }

    /// Ends one read, which the seed chooses, whatever its urgency. Returns false if none is held back. The callback
    /// runs on this thread, and may submit more reads.
    pub fn step(&self) -> bool {
        let mut state = self.state.lock();
        if state.held.is_empty() {
            return false;
        }
        let held = state.held.len();
        let chosen = state.draws.below(held);
        let read = state.held.swap_remove(chosen);
        drop(state);
        read.perform();
        true
    }

    /// Ends the first held-back read with the given ticket. Returns false if no read has it.
    pub fn step_ticket(&self, ticket: u64) -> bool {
        let mut state = self.state.lock();
        let Some(place) = state.held.iter().position(|read| read.ticket == ticket) else {
            return false;
        };
        let read = state.held.remove(place);
        drop(state);
        read.perform();
        true
    }

    /// Ends all reads, including reads that are submitted meanwhile.
    pub fn finish(&self) {
        while self.step() {}
    }

    /// How many reads are held back.
    pub fn held(&self) -> usize {
        self.state.lock().held.len()
    }

    /// The ticket and the urgency of each held-back read, sorted.
    pub fn tickets(&self) -> Vec<(u64, Urgency)> {
        let mut tickets: Vec<_> = self.state.lock().held.iter().map(|read| (read.ticket, read.urgency)).collect();
        tickets.sort_unstable();
        tickets
    }

    /// The tickets of the reads that were raised, in the order of the raises.
    pub fn raised(&self) -> Vec<u64> {
        self.state.lock().raised.clone()
    }
}

impl Reads for SimReads {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let mut state = self.state.lock();
        state.reads += reads.len() as u64;
        state.held.extend(reads);
    }

    fn raise(&self, ticket: u64) {
        let state = &mut *self.state.lock();
        for read in &mut state.held {
            if read.ticket == ticket && read.urgency != Urgency::Needed {
                read.urgency = Urgency::Needed;
                state.raised.push(ticket);
            }
        }
    }

    fn name(&self) -> &'static str {
        "simulated"
    }

    /// All reads that are held back count as queued.
    fn usage(&self) -> Usage {
        let state = self.state.lock();
        let mut usage = Usage { reads: state.reads, ..Usage::default() };
        for read in &state.held {
            usage.queued[read.urgency as usize].add(ReadLoad { reads: 1, bytes: read.buffer.len() });
        }
        usage
    }

    fn drive(&self) -> bool {
        self.step()
    }
}

impl fmt::Debug for SimReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimReads").field("held", &self.held()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

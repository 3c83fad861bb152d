//! Sessions whose futures wait, and which of them lose their pages to other sessions. It does not know what a session
//! holds.
//!
//! A future that is not polled may never be polled again, and it cannot be told apart from one that is late. So a
//! session that waits *parks* its pins, its round and its turn here, and other sessions may take them away:
//!
//! * The session with the tasks' turn loses everything when its pages have landed and tasks that queue were polled
//!   [`PATIENCE`] times, and twice for each of them, without its being polled.
//! * Every other session loses everything when it was found with all its pages landed, or queueing, each of
//!   [`PATIENCE`] times that the hand of a clock came past. The hand goes on by [`LOOK`] sessions whenever a turn is
//!   taken, which happens only while pins leave no room.
//!
//! A session that lost its pages asks for them again when it is polled, and each time that a step loses them its
//! patience doubles. So a future that is polled from time to time ends, however late it is polled; and a future that is
//! not polled holds up others once.
//!
//! Thread safe. Nothing is taken away, dropped or woken under the lock.

use super::look::LOOK;
use os::sync::{Arc, Mutex};
use std::collections::BTreeMap;

/// How often a session is passed over before it loses its pages for the first time. An executor that polls in the order
/// of wakes polls a session before one that was woken later is polled twice; the rest is for those with several
/// threads.
const PATIENCE: u64 = 32;

/// What a session has while it waits.
pub(crate) trait ParkedSession: Send + Sync {
    /// Whether nothing of it is on its way: the session has only to be polled.
    fn has_landed(&self) -> bool;
    /// Takes it away, unless the session has it back.
    fn strip(&self);
}

/// The sessions of a cache that wait.
#[derive(Default)]
pub(crate) struct Parking {
    state: Mutex<ParkingState>,
}

#[derive(Default)]
struct ParkingState {
    /// By number, in the order in which they were parked.
    lots: BTreeMap<u64, Lot>,
    /// The number given last.
    last: u64,
    /// The number that the hand passed last.
    hand: u64,
    /// Which of them has the tasks' turn.
    holder: Option<u64>,
}

struct Lot {
    parked: Arc<dyn ParkedSession>,
    /// How often it was passed over.
    passed: u64,
    /// How often it may be.
    patience: u64,
}

/// What a task that queues finds the holder of the turn doing.
pub(crate) enum Holder {
    /// It runs, or its pages are on their way: it will wake the tasks in the queue.
    Busy,
    /// Its pages have landed, and it still has time to be polled.
    Due,
    /// It was not polled for too long: this is to be stripped.
    Late(Arc<dyn ParkedSession>),
}

impl Parking {
    /// Takes in a session, whose step lost its pages `losses` times; the number is for [`Parking::leave`].
    pub fn park(&self, parked: Arc<dyn ParkedSession>, has_turn: bool, losses: u32) -> u64 {
        let patience = PATIENCE.saturating_mul(1u64.checked_shl(losses).unwrap_or(u64::MAX));
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        state.lots.insert(number, Lot { parked, passed: 0, patience });
        if has_turn {
            state.holder = Some(number);
        }
        number
    }

    /// Whether no session waits.
    pub fn is_empty(&self) -> bool {
        self.state.lock().lots.is_empty()
    }

    /// The session goes on.
    pub fn leave(&self, number: u64) {
        let left = self.state.lock().remove(number);
        drop(left);
    }

    /// A task that queues beside `queued` others was polled.
    pub fn look_at_holder(&self, queued: usize) -> Holder {
        let mut state = self.state.lock();
        let Some(number) = state.holder else { return Holder::Busy };
        let lot = state.lots.get_mut(&number).expect("the holder is one of them");
        if !lot.parked.has_landed() {
            return Holder::Busy;
        }
        lot.passed += 1;
        if lot.passed <= lot.patience.saturating_add(2 * queued as u64) {
            return Holder::Due;
        }
        let lot = state.remove(number).expect("it was found just now");
        Holder::Late(lot.parked)
    }

    /// A turn was taken: returns the sessions that are to lose their pages.
    pub fn advance_hand(&self) -> Vec<Arc<dyn ParkedSession>> {
        let state = &mut *self.state.lock();
        let mut late = Vec::new();
        for _ in 0..LOOK.min(state.lots.len()) {
            let next = state.lots.range(state.hand + 1..).next().or_else(|| state.lots.first_key_value());
            let Some((&number, lot)) = next else { break };
            state.hand = number;
            if state.holder == Some(number) || !lot.parked.has_landed() {
                continue;
            }
            let lot = state.lots.get_mut(&number).expect("it was found just now");
            lot.passed += 1;
            if lot.passed > lot.patience {
                late.extend(state.remove(number).map(|lot| lot.parked));
            }
        }
        late
    }

    /// How many wait.
    #[cfg(test)]
    pub fn parked(&self) -> usize {
        self.state.lock().lots.len()
    }
}

impl ParkingState {
    fn remove(&mut self, number: u64) -> Option<Lot> {
        if self.holder == Some(number) {
            self.holder = None;
        }
        self.lots.remove(&number)
    }
}

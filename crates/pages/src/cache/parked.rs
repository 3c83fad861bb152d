//! Sessions whose futures wait, and which of these sessions lose their pages to other sessions. This module does not
//! know what a session holds.
//!
//! A future that is not polled may never be polled again, and it cannot be told apart from a future that is polled
//! late. So a session that waits *parks* its pins, its round and its turn here, and other sessions may take them
//! away:
//!
//! * The session with the tasks' turn loses everything if its pages have landed and it is not polled for too long.
//!   Too long means that queueing tasks were polled [`PATIENCE`] times plus twice for each queueing task.
//! * Every other session loses everything when the hand of a clock has passed it [`PATIENCE`] times and found each
//!   time that all its pages had landed or that it was queueing. The hand advances by [`LOOK`] sessions whenever a
//!   turn is taken. A turn is taken only while pins leave no room.
//!
//! A session that lost its pages asks for them again when it is polled. Each time that a step loses its pages, the
//! step's patience doubles. So a future that is polled from time to time ends, however late it is polled. A future
//! that is not polled delays other sessions only once.
//!
//! Thread safe. While the lock is held, nothing is taken away, dropped or woken.

use super::look::LOOK;
use os::sync::{Arc, Mutex};
use std::collections::BTreeMap;

/// How often a session is passed over before it loses its pages for the first time. An executor that polls tasks in
/// the order of wakes polls each session before it polls a later-woken session twice. The number is larger than that
/// needs, for executors with several threads.
const PATIENCE: u64 = 32;

/// What a session has while it waits.
pub(crate) trait ParkedSession: Send + Sync {
    /// Whether nothing of the session is on its way, so that the session has only to be polled.
    fn has_landed(&self) -> bool;
    /// Takes the parked things away, unless the session has taken them back.
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
    /// The parked session that has the tasks' turn.
    holder: Option<u64>,
}

struct Lot {
    parked: Arc<dyn ParkedSession>,
    /// How often the session was passed over.
    passed: u64,
    /// How often the session may be passed over.
    patience: u64,
}

/// What a task that queues finds the holder of the turn doing.
pub(crate) enum Holder {
    /// The holder runs, or its pages are on their way. It will wake the tasks in the queue.
    Busy,
    /// The holder's pages have landed, and it still has time to be polled.
    Due,
    /// The holder was not polled for too long. This is the session to be stripped.
    Late(Arc<dyn ParkedSession>),
}

impl Parking {
    /// Parks a session whose step lost its pages `losses` times. The returned number is for [`Parking::leave`].
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

    /// The session with this number goes on, so it is no longer parked.
    pub fn leave(&self, number: u64) {
        let left = self.state.lock().remove(number);
        drop(left);
    }

    /// Notes that a queueing task was polled, beside `queued` other tasks in the queue. Returns what the holder of
    /// the turn does.
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

    /// Notes that a turn was taken. Returns the sessions that are to lose their pages.
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

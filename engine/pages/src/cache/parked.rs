//! Sessions whose futures wait, and which of them lose their pages to other sessions. This module does not know
//! what a session holds.
//!
//! A future that is not polled now may be polled late or never, and the cache cannot know which. So while a session
//! waits, it *parks* its pins, its round and its turn here, where other sessions may take them away:
//!
//! * The holder of the tasks' turn loses everything if its pages have landed and it is not polled in time: before
//!   the tasks in the queue were polled [`PATIENCE`] times, plus twice for each of them.
//! * The other sessions stand in a circle, and a *hand* points at one of them. Whenever a turn is taken, which
//!   happens only if no room can be made because too many pages are pinned, the hand advances by [`LOOK`] sessions.
//!   A session loses everything once the hand has passed it more than [`PATIENCE`] times. A pass counts only if all
//!   pages of the session had landed, or if it was queueing.
//!
//! A session that lost its pages asks for them again when it is polled. Each loss doubles the patience with its
//! step. So a future that is polled from time to time gets its pages in the end, however late each poll is, and a
//! future that is never polled delays other sessions only once.
//!
//! Thread safe. While the lock is held, nothing is taken away, dropped or woken.

use super::look::LOOK;
use os::sync::{Arc, Mutex};
use std::collections::BTreeMap;

/// How often a session is passed over before it loses its pages for the first time. An executor that polls tasks in
/// the order in which they were woken polls every woken session before it polls one of them again, so a small
/// number would do. The number is larger because executors may have several threads.
const PATIENCE: u64 = 32;

/// What a session has parked while it waits.
pub(crate) trait ParkedSession: Send + Sync {
    /// Whether all pages that the session waits for have landed, so that it only has to be polled.
    fn has_landed(&self) -> bool;
    /// Takes away what the session has parked, unless the session already took it back.
    fn strip(&self);
}

/// The sessions of a cache that wait.
#[derive(Default)]
pub(crate) struct Parking {
    state: Mutex<ParkingState>,
}

#[derive(Default)]
struct ParkingState {
    /// The parked sessions by number. The numbers grow in the order in which the sessions were parked.
    lots: BTreeMap<u64, Lot>,
    /// The number given last.
    last: u64,
    /// The number of the session that the hand passed last.
    hand: u64,
    /// The number of the parked session that holds the tasks' turn.
    holder: Option<u64>,
}

struct Lot {
    parked: Arc<dyn ParkedSession>,
    /// How often the session was passed over since it was parked.
    passed: u64,
    /// How often the session may be passed over before it loses what it has parked.
    patience: u64,
}

/// What the holder of the tasks' turn is doing when a task in the queue is polled.
pub(crate) enum Holder {
    /// The holder runs, or its pages are on their way. It will wake the tasks in the queue.
    Busy,
    /// The holder's pages have landed, and it still has time to be polled.
    Due,
    /// The holder was not polled in time. The caller takes away what it has parked.
    Late(Arc<dyn ParkedSession>),
}

impl Parking {
    /// Parks a session whose step has lost its pages `losses` times. Returns the number for [`Parking::leave`].
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

    /// Whether no session is parked.
    pub fn is_empty(&self) -> bool {
        self.state.lock().lots.is_empty()
    }

    /// Removes a session that goes on.
    pub fn leave(&self, number: u64) {
        let left = self.state.lock().remove(number);
        drop(left);
    }

    /// Notes that a task in the queue was polled, and returns what the holder of the turn is doing. `queued` is the
    /// number of sessions in the queue.
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

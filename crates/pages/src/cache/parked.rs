//! Sessions whose futures wait, and which of them lose their pages to other sessions. This module does not know
//! what a session holds.
//!
//! A future that is not polled now may be polled late, or never again. The cache cannot know which. So while a
//! session waits, it *parks* its pins, its round and its turn here, and other sessions may take these away:
//!
//! * The session with the tasks' turn loses everything if its pages have landed and it is not polled for too long.
//!   Too long means that the tasks in the queue were polled [`PATIENCE`] times, plus two times for each of these
//!   tasks.
//! * The other sessions stand in a circle, and a *hand* points at one of them. Whenever a turn is taken, the hand
//!   advances by [`LOOK`] sessions. A turn is taken only if so many pages are pinned that no room can be made. A
//!   session loses everything when the hand has passed it [`PATIENCE`] times. A pass counts only if all pages of
//!   the session had landed, or if the session was queueing.
//!
//! A session that lost its pages asks for them again when it is polled. Each time that a step loses its pages, the
//! step's patience doubles. So if a future is polled from time to time, it gets its pages in the end, however late
//! each poll is. If a future is not polled, it delays other sessions only once.
//!
//! Thread safe. While the lock is held, nothing is taken away, dropped or woken.

use super::look::LOOK;
use os::sync::{Arc, Mutex};
use std::collections::BTreeMap;

/// How often a session is passed over before it loses its pages for the first time. An executor that polls tasks
/// in the order in which they were woken polls a woken session before it polls another one twice. For such an
/// executor a small number would be enough. The number is larger because some executors have several threads.
const PATIENCE: u64 = 32;

/// What a session has while it waits.
pub(crate) trait ParkedSession: Send + Sync {
    /// Whether all pages that the session waits for have landed. If they have, the session only has to be polled.
    fn has_landed(&self) -> bool;
    /// Takes away what the session has parked, unless the session has taken it back already.
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
    /// The number that was given last.
    last: u64,
    /// The number that the hand passed last.
    hand: u64,
    /// The parked session that has the tasks' turn.
    holder: Option<u64>,
}

struct Lot {
    parked: Arc<dyn ParkedSession>,
    /// How often the session was passed over since it was parked.
    passed: u64,
    /// How often the session may be passed over before it loses what it has parked.
    patience: u64,
}

/// What the holder of the turn is doing at the moment when a task in the queue is polled.
pub(crate) enum Holder {
    /// The holder runs, or its pages are on their way. It will wake the tasks in the queue.
    Busy,
    /// The holder's pages have landed, and it still has time to be polled.
    Due,
    /// The holder was not polled for too long. What this session has parked is to be taken away.
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

    /// Whether no session is parked.
    pub fn is_empty(&self) -> bool {
        self.state.lock().lots.is_empty()
    }

    /// The session with the given number goes on, so it is no longer parked.
    pub fn leave(&self, number: u64) {
        let left = self.state.lock().remove(number);
        drop(left);
    }

    /// Notes that a task in the queue was polled. `queued` is the number of sessions in the queue. Returns what
    /// the holder of the turn is doing.
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

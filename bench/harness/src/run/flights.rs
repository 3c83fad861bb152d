//! Drives many clients on one thread, with a session that has many requests under way.
//!
//! A client is in one of four states. It waits for a point in time (given by its schedule, its own wait or a retry);
//! or it is ready and waits for a slot; or its request is under way; or it has no operation left. The wait for a
//! slot counts as a delay of the request.
//!
//! Each client has a [`Seat`], and a run may have a million clients. So state that only some runs need, or only a
//! few clients at a time, is kept outside the seats: schedules, the number of operations left, operations of several
//! requests, and the requests under way.

use super::recorder::{After, Answer, Begun, Recorder, Why};
use super::timeline::{Schedule, Timeline};
use super::wheel::{Link, Waiter, Wheel};
use crate::client::{Client, Kind};
use crate::failure::Failure;
use crate::reply::Reply;
use crate::store::{Flights, Outcome, Served};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// The longest time that a thread waits for answers before it checks whether to stop: 50 ms.
const LOOK_NANOS: u64 = 50_000_000;

/// A client and its state. It has no buffers of its own.
struct Seat<C> {
    client: C,
    /// When the current request is due.
    due: u64,
    /// The next client in a list of clients that wait for a time.
    next: Link,
    /// Whether the current operation has got an answer but has more requests. It is then in `Seats::operations`.
    goes_on: bool,
}

/// A seat takes 16 bytes more than its client: 150,000 clients of 48 bytes take 9.6 MB.
const _: () = assert!(size_of::<Seat<[u64; 6]>>() == 64);

impl<C> Waiter for Seat<C> {
    fn due(&self) -> u64 {
        self.due
    }

    fn next(&mut self) -> &mut Link {
        &mut self.next
    }
}

/// An operation that goes on: its latest request was answered, but more requests follow.
#[derive(Clone, Copy)]
struct Operation {
    begun: Begun,
    /// The sum of the delays with which the requests of this operation were sent.
    delay: u64,
}

/// The request that is under way in a slot.
#[derive(Clone, Copy)]
struct Slot {
    /// The client whose request is under way; [`NOBODY`] if the slot is free.
    index: u32,
    /// The kind that the request counts for.
    kind: Kind,
}

const NOBODY: u32 = u32::MAX;

/// All clients of a thread. In this module a client is known by its index.
pub(crate) struct Seats<C> {
    /// The number of the first client, and the step from one client's number to the next.
    first: usize,
    stride: usize,
    seats: Vec<Seat<C>>,
    /// In an open loop, the schedule of each client, or `None` if the client has no operation left. Empty in a closed
    /// loop.
    schedules: Vec<Option<Schedule>>,
    /// How many operations each client still has to do in the window. Empty if the plan does not limit their number.
    left: Vec<u64>,
    /// The operations that were answered and have another request, by the index of their client.
    operations: HashMap<u32, Operation, BuildHasherDefault<Spread>>,
    /// The clients that wait for a time.
    waiting: Wheel,
    /// The clients that wait for a slot, in the order in which they became ready.
    ready: VecDeque<u32>,
    /// Whether operations can be late: because of a schedule or a slack, or because they wait for a slot. If they
    /// cannot, an operation begins when its request is sent.
    queued: bool,
    /// Whether no operation may begin any more.
    stopping: bool,
}

impl<C: Client> Seats<C> {
    /// Makes the seats of clients number `first`, `first + stride`, … These clients are not placed in a run yet.
    pub(crate) fn new(first: usize, stride: usize, clients: impl Iterator<Item = C>) -> Self {
        Self {
            first,
            stride,
            seats: clients.map(|client| Seat { client, due: 0, next: None, goes_on: false }).collect(),
            schedules: Vec::new(),
            left: Vec::new(),
            operations: HashMap::default(),
            waiting: Wheel::new(0),
            ready: VecDeque::new(),
            queued: false,
            stopping: false,
        }
    }

    /// The number of clients.
    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    /// Places the clients in a run that has begun: each client begins when `timeline` says.
    pub(crate) fn place(&mut self, timeline: &Timeline) {
        if timeline.schedule(self.first).is_some() {
            let numbers = (0..self.seats.len()).map(|index| self.first + index * self.stride);
            self.schedules = numbers.map(|number| timeline.schedule(number)).collect();
        }
        for (index, seat) in self.seats.iter_mut().enumerate() {
            seat.due = timeline.ramp(self.first + index * self.stride);
        }
    }

    /// Limits each client to its number of operations in the window.
    pub(crate) fn limit(&mut self, left: Vec<u64>) {
        assert_eq!(left.len(), self.seats.len(), "each client has a number of operations");
        self.left = left;
    }

    /// The number of client `index`.
    fn number(&self, index: u32) -> usize {
        self.first + index as usize * self.stride
    }

    /// Moves client `index`, whose last request was served at `served`, on to its next operation, if it has one. The
    /// operation begins when it is due, or at once if it was due before `now`.
    fn begin(&mut self, index: u32, served: u64, now: u64) {
        let at = index as usize;
        let seat = &mut self.seats[at];
        if self.left.get(at) == Some(&0) || !seat.client.begin() {
            if let Some(schedule) = self.schedules.get_mut(at) {
                *schedule = None;
            }
            return;
        }
        match self.schedules.get_mut(at) {
            Some(schedule) => {
                let schedule = schedule.as_mut().expect("a client that goes on has its schedule");
                seat.due = schedule.next();
                self.waiting.add(&mut self.seats, index);
            }
            None => {
                seat.due = seat.client.wait().until(seat.due, served);
                if seat.due > now {
                    self.waiting.add(&mut self.seats, index);
                } else {
                    self.ready.push_back(index);
                }
            }
        }
    }

    /// Takes the answer to a request of client `index`. Returns `Some` if the session is lost.
    fn answered(
        &mut self,
        (index, kind): (u32, Kind),
        (sent, served): (u64, u64),
        result: Result<Outcome, Failure>,
        reply: &Reply,
        recorder: &mut Recorder<'_>,
    ) -> Option<Failure> {
        let seat = &mut self.seats[index as usize];
        let late = if self.queued { sent.saturating_sub(seat.due) } else { 0 };
        let mut operation = match std::mem::take(&mut seat.goes_on) {
            true => self.operations.remove(&index).expect("an operation that goes on is kept"),
            false => Operation { begun: Begun { at: sent - late.min(sent), sent, delay: late }, delay: 0 },
        };
        operation.delay += late;
        let begun = operation.begun;
        let answer = Answer { kind, sent, served, delay: operation.delay };
        match recorder.answered(&mut seat.client, answer, begun, result, reply) {
            Err(failure) => return Some(failure),
            Ok(After::More | After::Wait(_)) if self.stopping => recorder.abandon(begun),
            Ok(After::More) => {
                (seat.due, seat.goes_on) = (served, true);
                self.operations.insert(index, operation);
                self.ready.push_back(index);
            }
            Ok(After::Wait(until)) => {
                (seat.due, seat.goes_on) = (until, true);
                self.operations.insert(index, operation);
                self.waiting.add(&mut self.seats, index);
            }
            Ok(After::End { counts }) => {
                if let Some(left) = self.left.get_mut(index as usize) {
                    *left -= u64::from(counts);
                }
                if !self.stopping {
                    self.begin(index, served, served);
                }
            }
        }
        None
    }

    /// Moves the clients whose time has come to `ready`.
    fn wake(&mut self, now: u64) {
        while let Some(index) = self.waiting.take(&mut self.seats, now) {
            self.ready.push_back(index);
        }
    }

    /// Makes sure that nothing more is sent after `now`.
    fn stop(&mut self, now: u64, recorder: &mut Recorder<'_>) {
        self.stopping = true;
        let mut ended: Vec<u32> = self.ready.drain(..).collect();
        self.waiting.drain(&mut self.seats, |index| ended.push(index));
        for index in ended {
            let seat = &self.seats[index as usize];
            if seat.goes_on {
                recorder.abandon(self.operations[&index].begun);
            } else if !self.schedules.is_empty() {
                recorder.unsent(seat.due, now);
            }
        }
        self.schedules.iter().flatten().for_each(|rest| recorder.all_unsent(rest, now));
    }
}

/// Drives the clients of `seats` until they have no operation left, the window is over, or the run is stopped. If a
/// session is lost, the error contains the number of a client that used the session.
pub(crate) fn drive<C: Client>(
    session: &mut dyn Flights,
    mut seats: Seats<C>,
    recorder: &mut Recorder<'_>,
) -> Result<Why, (usize, Failure)> {
    seats.queued = recorder.queued();
    let clock = recorder.clock;
    let depth = u32::try_from(session.depth()).unwrap_or(u32::MAX).min(seats.len() as u32);
    // The free slots, and all slots.
    let mut free: Vec<u32> = (0..depth).rev().collect();
    let mut slots = vec![Slot { index: NOBODY, kind: Kind(0) }; depth as usize];
    for index in 0..seats.len() {
        let beginning = seats.seats[index].due;
        seats.begin(index as u32, beginning, recorder.timeline.origin);
    }
    let empty = Reply::new();
    let mut why = Why::Done;
    loop {
        let now = clock.nanos();
        recorder.pass(now);
        if !seats.stopping && (recorder.halted() || recorder.over()) {
            why = if recorder.halted() { Why::Halted } else { Why::Over };
            seats.stop(now, recorder);
        }
        seats.wake(now);
        while let (Some(&index), Some(&slot)) = (seats.ready.front(), free.last()) {
            // If a store refuses every request, this loop never waits, so the loop itself has to check whether to
            // stop.
            if !seats.stopping && (recorder.halted() || recorder.over()) {
                break;
            }
            seats.ready.pop_front();
            let (kind, request) = seats.seats[index as usize].client.request();
            match session.start(slot, &request) {
                Ok(()) => {
                    slots[slot as usize] = Slot { index, kind };
                    free.pop();
                }
                Err(failure) => {
                    let at = clock.nanos();
                    if let Some(failure) = seats.answered((index, kind), (at, at), Err(failure), &empty, recorder) {
                        return Err((seats.number(index), failure));
                    }
                }
            }
        }
        if free.len() == depth as usize && seats.ready.is_empty() && seats.waiting.is_empty() {
            return Ok(why);
        }
        let next = seats.waiting.next(&mut seats.seats);
        if free.len() == depth as usize && seats.ready.is_empty() {
            // Nothing is under way, so no answer can come before `next`, when the next client may begin.
            recorder.pause(next);
            continue;
        }
        let until = recorder.timeline.wake(next).min(recorder.edge()).min(now.saturating_add(LOOK_NANOS));
        let mut lost = None;
        let waited = session.wait(Some(until), &mut |answer: Served<'_>| {
            let Slot { index, kind } = slots[answer.slot as usize];
            slots[answer.slot as usize].index = NOBODY;
            assert!(index != NOBODY, "an answer in slot {}, where nothing is under way", answer.slot);
            free.push(answer.slot);
            let times = (answer.sent, answer.served);
            if let Some(failure) = seats.answered((index, kind), times, answer.result, answer.reply, recorder) {
                lost.get_or_insert((seats.number(index), failure));
            }
        });
        waited.map_err(|failure| (seats.first, failure))?;
        if let Some(lost) = lost {
            return Err(lost);
        }
    }
}

/// Hashes an index with one multiplication. No attacker chooses the indices, so one multiplication is enough.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, index: u32) {
        // 2^64 divided by the golden ratio. The upper bits of the product are mixed best, and the rotation moves
        // them to where hash tables look.
        self.0 = (self.0 ^ u64::from(index)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

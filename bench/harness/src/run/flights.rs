//! Many clients on one thread, over a session that has many requests under way.
//!
//! A client is in one of four states: it waits for a time (its schedule, a new attempt), it is ready and waits for a slot, its
//! request is under way, or it has nothing left. The time that it waits for a slot is counted as waiting.

use super::recorder::{After, Answer, Begun, Recorder, Why};
use super::timeline::Schedule;
use crate::client::{Client, Kind};
use crate::reply::Reply;
use crate::store::{Failure, Flights, Outcome, Served};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How long a thread waits for answers at most before it looks whether it is to stop: 50 ms.
const LOOK_NANOS: u64 = 50_000_000;

/// A client and its state. There may be a million of them, so it has no buffers of its own.
pub(crate) struct Seat<C> {
    number: u32,
    client: C,
    schedule: Option<Schedule>,
    /// Operations of the window it has to do yet.
    left: u64,
    /// When the request at hand should be sent.
    due: u64,
    /// What the request at hand counts for.
    kind: Kind,
    /// The operation at hand, once its first request was answered.
    begun: Option<Begun>,
    /// How much later than it should have been the last request was sent.
    delay: u64,
}

impl<C: Client> Seat<C> {
    /// Client `number`, which has no place in a run yet.
    pub(crate) fn new(number: usize, client: C) -> Self {
        let number = u32::try_from(number).expect("a plan has at most a million clients");
        Self { number, client, schedule: None, left: 0, due: 0, kind: Kind(0), begun: None, delay: 0 }
    }

    /// Which client it is.
    pub(crate) fn number(&self) -> usize {
        self.number as usize
    }

    /// The run began: the client has `left` operations of the window, and begins at `due` if it has no schedule.
    pub(crate) fn place(&mut self, schedule: Option<Schedule>, left: u64, due: u64) {
        (self.schedule, self.left, self.due) = (schedule, left, due);
    }

    /// Goes on to the next operation, at once or when the schedule says. `false`: there is none.
    fn begin(&mut self, now: u64) -> bool {
        if self.left == 0 || !self.client.begin() {
            self.schedule = None;
            return false;
        }
        (self.begun, self.delay) = (None, 0);
        self.due = self.schedule.as_mut().map_or(now, Schedule::next);
        true
    }
}

/// All clients of a thread.
struct Seats<C> {
    seats: Vec<Seat<C>>,
    /// Those that wait for a time.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Those that wait for a slot, in order.
    ready: VecDeque<u32>,
    /// Whether waiting for a slot delays an operation. Else each client has a slot of its own, and an operation begins
    /// when its request is sent.
    queued: bool,
    /// Whether no operation may begin any more.
    stopping: bool,
}

impl<C: Client> Seats<C> {
    /// Takes the answer to a request of client `index`; `Some` if the session is lost.
    fn answered(
        &mut self,
        index: u32,
        (sent, served): (u64, u64),
        result: Result<Outcome, Failure>,
        reply: &Reply,
        recorder: &mut Recorder<'_>,
    ) -> Option<Failure> {
        let seat = &mut self.seats[index as usize];
        let late = if self.queued { sent.saturating_sub(seat.due) } else { 0 };
        let begun = *seat.begun.get_or_insert_with(|| Begun { at: sent - late.min(sent), sent, delay: late });
        seat.delay += late;
        let answer = Answer { kind: seat.kind, sent, served, delay: seat.delay };
        match recorder.answered(&mut seat.client, answer, begun, result, reply) {
            Err(failure) => return Some(failure),
            Ok(After::More | After::Wait(_)) if self.stopping => {
                recorder.abandon(begun);
                return None;
            }
            Ok(After::More) => {
                seat.due = served;
                self.ready.push_back(index);
                return None;
            }
            Ok(After::Wait(until)) => {
                seat.due = until;
                self.waiting.push(Reverse((until, index)));
                return None;
            }
            Ok(After::End { counts }) => seat.left -= u64::from(counts),
        }
        if !self.stopping && seat.begin(served) {
            match seat.schedule {
                Some(_) => self.waiting.push(Reverse((seat.due, index))),
                None => self.ready.push_back(index),
            }
        }
        None
    }

    /// Makes the clients ready whose time has come.
    fn wake(&mut self, now: u64) {
        while let Some(Reverse((due, index))) = self.waiting.peek()
            && *due <= now
        {
            self.ready.push_back(*index);
            self.waiting.pop();
        }
    }

    /// Nothing more is to be sent after `now`.
    fn stop(&mut self, now: u64, recorder: &mut Recorder<'_>) {
        self.stopping = true;
        let waiting = self.waiting.drain().map(|Reverse((_, index))| index);
        for index in waiting.chain(self.ready.drain(..)) {
            let seat = &self.seats[index as usize];
            match seat.begun {
                Some(begun) => recorder.abandon(begun),
                None if seat.schedule.is_some() => recorder.unsent(seat.due, now),
                None => {}
            }
        }
        self.seats.iter().filter_map(|seat| seat.schedule.as_ref()).for_each(|rest| recorder.all_unsent(rest, now));
    }
}

/// Drives the clients of `seats` until they have nothing left, the window is over, or the run is stopped. The error of a lost
/// session comes with the number of a client that used it.
pub(crate) fn drive<C: Client>(
    session: &mut dyn Flights,
    seats: Vec<Seat<C>>,
    recorder: &mut Recorder<'_>,
) -> Result<Why, (usize, Failure)> {
    let queued = recorder.queued();
    let clock = recorder.clock;
    let first = seats.first().map_or(0, Seat::number);
    let depth = u32::try_from(session.depth()).unwrap_or(u32::MAX).min(seats.len() as u32);
    // Slots in which nothing is under way, and the clients of the others.
    let mut free: Vec<u32> = (0..depth).rev().collect();
    let mut owners: Vec<u32> = vec![u32::MAX; depth as usize];
    let count = seats.len();
    let (waiting, ready) = (BinaryHeap::with_capacity(count), VecDeque::with_capacity(count));
    let mut seats = Seats { seats, waiting, ready, queued, stopping: false };
    for (index, seat) in seats.seats.iter_mut().enumerate() {
        if seat.begin(seat.due) {
            seats.waiting.push(Reverse((seat.due, index as u32)));
        }
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
            // If a store refuses every request, this loop never waits: it has to look by itself.
            if !seats.stopping && (recorder.halted() || recorder.over()) {
                break;
            }
            seats.ready.pop_front();
            let seat = &mut seats.seats[index as usize];
            let (kind, request) = seat.client.request();
            let started = session.start(slot, &request);
            seat.kind = kind;
            match started {
                Ok(()) => {
                    owners[slot as usize] = index;
                    free.pop();
                }
                Err(failure) => {
                    let number = seat.number();
                    let at = clock.nanos();
                    if let Some(failure) = seats.answered(index, (at, at), Err(failure), &empty, recorder) {
                        return Err((number, failure));
                    }
                }
            }
        }
        if free.len() == depth as usize && seats.ready.is_empty() && seats.waiting.is_empty() {
            return Ok(why);
        }
        let next = seats.waiting.peek().map_or(u64::MAX, |Reverse((due, _))| *due);
        if free.len() == depth as usize && seats.ready.is_empty() {
            // Nothing is under way, so that no answer can come before the next time.
            recorder.pause(next);
            continue;
        }
        let until = next.min(recorder.edge()).min(now.saturating_add(LOOK_NANOS));
        let mut lost = None;
        let waited = session.wait(Some(until), &mut |answer: Served<'_>| {
            let index = owners[answer.slot as usize];
            owners[answer.slot as usize] = u32::MAX;
            assert!(index != u32::MAX, "an answer in slot {}, where nothing is under way", answer.slot);
            free.push(answer.slot);
            let times = (answer.sent, answer.served);
            if let Some(failure) = seats.answered(index, times, answer.result, answer.reply, recorder) {
                lost.get_or_insert((seats.seats[index as usize].number(), failure));
            }
        });
        waited.map_err(|failure| (first, failure))?;
        if let Some(lost) = lost {
            return Err(lost);
        }
    }
}

//! The counts of one thread of a run. The thread hands its counts over once an interval.
//!
//! A thread counts in its own memory. When it reads the clock after the end of its interval, it puts its counts on
//! the [`Desk`] and takes empty tallies from there. So it takes one lock per interval.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

use super::timeline::{Schedule, Timeline};
use crate::client::{Client, Extra, Kind, Next};
use crate::clock::Clock;
use crate::failure::{Failure, Harm};
use crate::reply::Reply;
use crate::store::Outcome;
use crate::times::Tally;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The "interval" after the end of the window.
pub(crate) const AFTER: usize = usize::MAX;

/// A thread spins for the last 10 us of a wait, because putting it to sleep and waking it takes about 10 us. So
/// waiting costs a client about 14 us of processor time for each operation that is not late (example `noop`).
const SPIN_NANOS: u64 = 10_000;

/// The requests of one kind in one thread and interval.
pub(crate) struct KindTally {
    pub(crate) service: Tally<u32>,
    pub(crate) response: Tally<u32>,
    pub(crate) waited: Tally<u32>,
    pub(crate) failed: Tally<u32>,
    pub(crate) oks: u64,
    pub(crate) not_found: u64,
    pub(crate) batched: u64,
    pub(crate) rolled_back: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) failures: Vec<(&'static str, u64)>,
    /// The failed requests that the client makes again.
    pub(crate) retries: u64,
}

impl KindTally {
    fn new() -> Self {
        let tally = Tally::new;
        let (service, response, waited, failed) = (tally(), tally(), tally(), tally());
        let (oks, not_found, batched, rolled_back, rows, bytes, retries) = (0, 0, 0, 0, 0, 0, 0);
        let failures = Vec::new();
        Self { service, response, waited, failed, oks, not_found, batched, rolled_back, rows, bytes, failures, retries }
    }

    fn clear(&mut self) {
        for tally in [&mut self.service, &mut self.response, &mut self.waited, &mut self.failed] {
            tally.clear();
        }
        let done = [&mut self.oks, &mut self.not_found, &mut self.batched, &mut self.rolled_back];
        for count in done.into_iter().chain([&mut self.rows, &mut self.bytes, &mut self.retries]) {
            *count = 0;
        }
        self.failures.clear();
    }

    #[inline]
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => self.oks += 1,
            Outcome::NotFound => self.not_found += 1,
            Outcome::Batched => self.batched += 1,
            Outcome::RolledBack => self.rolled_back += 1,
        }
    }

    /// Counts what the client itself noted. If `queued` is true, also records a response time, which equals the
    /// service time.
    fn note(&mut self, queued: bool, nanos: u64, result: Result<Outcome, &'static str>) {
        match result {
            Ok(outcome) => {
                self.count(outcome);
                self.service.record(nanos);
                if queued {
                    self.response.record(nanos);
                    self.waited.record(0);
                }
            }
            Err(name) => self.count_failure(nanos, name),
        }
    }

    #[cold]
    fn count_failure(&mut self, nanos: u64, kind: &'static str) {
        self.failed.record(nanos);
        match self.failures.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.failures.push((kind, 1)),
        }
    }
}

/// All that one thread counts in one interval.
pub(crate) struct Tallies {
    pub(crate) kinds: Vec<KindTally>,
    /// The clients' other counts.
    pub(crate) counts: Vec<u64>,
    pub(crate) operations: u64,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    pub(crate) warmed: u64,
    pub(crate) cut: u64,
    pub(crate) cpu_nanos: u64,
    /// The part of `cpu_nanos` spent waiting for a point in time.
    pub(crate) pausing_nanos: u64,
    /// The first text of each kind of failure.
    pub(crate) texts: Vec<(&'static str, String)>,
}

impl Tallies {
    fn new(kinds: usize, counts: usize) -> Self {
        let counts = vec![0; counts];
        let kinds = (0..kinds).map(|_| KindTally::new()).collect();
        let (operations, failed, retries, warmed, cut) = (0, 0, 0, 0, 0);
        let (cpu_nanos, pausing_nanos) = (0, 0);
        Self { kinds, counts, operations, failed, retries, warmed, cut, cpu_nanos, pausing_nanos, texts: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.kinds.iter_mut().for_each(KindTally::clear);
        self.counts.fill(0);
        for count in [&mut self.operations, &mut self.failed, &mut self.retries] {
            *count = 0;
        }
        for count in [&mut self.warmed, &mut self.cut, &mut self.cpu_nanos, &mut self.pausing_nanos] {
            *count = 0;
        }
        self.texts.clear();
    }
}

/// The counts that a thread hands over.
pub(crate) struct Parcel {
    pub(crate) thread: usize,
    /// The interval of the counts.
    pub(crate) interval: usize,
    /// The interval that the thread is in now; [`AFTER`] if the window is over or the thread has ended.
    pub(crate) reached: usize,
    pub(crate) tallies: Tallies,
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The thread's clients have done the operations that they had to do, or have no operation left.
    Done,
    /// The window is over.
    Over,
    /// The run was stopped.
    Halted,
}

/// How a thread ended.
pub(crate) enum End {
    /// Without a failure.
    Stopped(Why, Finish),
    /// A client lost its session: the client's number, and the failure.
    Lost(usize, Failure, Finish),
}

/// What a thread reports about its session after opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// How many requests the session can have under way; `None`: its calls wait.
    pub(crate) depth: Option<usize>,
    /// Whether the clients of the thread have to wait for a place in the session.
    pub(crate) queued: bool,
}

/// The place where the threads hand over their counts to the thread that gathers them.
pub(crate) struct Desk {
    halt: AtomicBool,
    /// The number of kinds, and of other counts.
    kinds: usize,
    counts: usize,
    state: Mutex<DeskState>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct DeskState {
    pub(crate) parcels: Vec<Parcel>,
    spare: Vec<Tallies>,
    pub(crate) opened: Vec<Opened>,
    pub(crate) ended: Vec<End>,
    pub(crate) refused: Option<(usize, Failure)>,
    /// Threads that were started and have not ended.
    pub(crate) running: usize,
    go: Option<(Timeline, bool)>,
}

impl Desk {
    pub(crate) fn new(kinds: usize, counts: usize) -> Self {
        Self { halt: AtomicBool::new(false), kinds, counts, state: Mutex::default(), changed: Condvar::new() }
    }

    fn new_tallies(&self) -> Tallies {
        Tallies::new(self.kinds, self.counts)
    }

    /// Locks what is on the desk. A thread that panicked while it held the lock left a consistent state, because
    /// everything is pushed and taken as a whole.
    pub(crate) fn state(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`Desk::state`], but first waits until `ready` says that the wait is over, or until `time` has passed.
    pub(crate) fn wait(&self, time: Duration, ready: impl Fn(&DeskState) -> bool) -> MutexGuard<'_, DeskState> {
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, time, |state| !ready(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Tells all threads to stop. Threads that are parked have to be woken.
    pub(crate) fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    /// Lets the threads begin. `timeline` gives each thread the times at which the parts of the run begin and end. If
    /// `queued` is set, the threads record response times.
    pub(crate) fn go(&self, timeline: Timeline, queued: bool) {
        self.state().go = Some((timeline, queued));
        self.changed.notify_all();
    }

    /// For threads: reports what the thread opened, and waits for the start. `None`: the run does not start.
    pub(crate) fn ready(&self, opened: Opened) -> Option<(Timeline, bool)> {
        let mut state = self.state();
        state.opened.push(opened);
        self.changed.notify_all();
        loop {
            if self.halted() {
                return None;
            }
            if state.go.is_some() {
                return state.go;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes all threads that wait here.
    pub(crate) fn wake(&self) {
        // A thread holds this lock from its last check until it waits. So no thread can miss the signal.
        let _state = self.state();
        self.changed.notify_all();
    }

    pub(crate) fn refuse(&self, client: usize, failure: Failure) {
        self.state().refused.get_or_insert((client, failure));
        self.halt();
        self.changed.notify_all();
    }

    pub(crate) fn end(&self, end: End) {
        if matches!(end, End::Lost(..)) {
            self.halt();
        }
        self.state().ended.push(end);
    }

    /// Takes tallies back, for the next thread that needs empty ones.
    pub(crate) fn give_back(&self, mut tallies: Tallies) {
        tallies.clear();
        self.state().spare.push(tallies);
    }
}

/// Counts for one thread. Times are read from the run's clock.
pub(crate) struct Recorder<'d> {
    desk: &'d Desk,
    pub(crate) clock: Clock,
    pub(crate) timeline: Timeline,
    thread: usize,
    tallies: Tallies,
    interval: usize,
    /// When the interval ends.
    edge: u64,
    /// Operations that began before this time are not counted.
    floor: u64,
    /// Whether response times are counted too.
    queued: bool,
    cpu_nanos: u64,
    last: u64,
    unsent: u64,
}

/// What a thread reports at its end, besides its counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Finish {
    /// The time of the last answer that the thread got inside the window.
    pub(crate) last: u64,
    /// Operations of an open loop that were due in the window but never began.
    pub(crate) unsent: u64,
}

/// When a request was sent and served, and the kind under which it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    pub(crate) sent: u64,
    pub(crate) served: u64,
    /// How late it was sent.
    pub(crate) delay: u64,
}

/// When the current operation began, and how late it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Begun {
    /// When the operation was due, or when it really began if it was not due at a given time. Decides whether the
    /// operation is counted.
    pub(crate) at: u64,
    /// When its first request was sent.
    pub(crate) sent: u64,
    /// How late that was.
    pub(crate) delay: u64,
}

/// How a client goes on after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The client makes another request of the same operation at once.
    More,
    /// The client makes another request of the same operation, but waits until the given time.
    Wait(u64),
    /// The operation has ended. `counts`: it began in the window, and so counts as one of the plan's operations.
    End { counts: bool },
}

impl<'d> Recorder<'d> {
    pub(crate) fn new(desk: &'d Desk, clock: Clock, timeline: Timeline, thread: usize, queued: bool) -> Self {
        let mut recorder = Self {
            desk,
            clock,
            timeline,
            thread,
            tallies: desk.new_tallies(),
            interval: 0,
            edge: 0,
            floor: 0,
            queued,
            cpu_nanos: crate::cost::thread_nanos(),
            last: 0,
            unsent: 0,
        };
        recorder.place(timeline.origin);
        recorder
    }

    /// Whether the run was stopped.
    #[inline]
    pub(crate) fn halted(&self) -> bool {
        self.desk.halted()
    }

    /// Whether the window is over.
    #[inline]
    pub(crate) fn over(&self) -> bool {
        self.interval == AFTER
    }

    /// The latest time at which [`Recorder::pass`] has to be called, even if no answer has come.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// If `now` is past the end of the interval, hands over the counts.
    #[inline]
    pub(crate) fn pass(&mut self, now: u64) {
        if now >= self.edge {
            self.turn(now);
        }
    }

    #[cold]
    fn turn(&mut self, now: u64) {
        let interval = self.interval;
        self.place(now);
        self.hand_over(interval);
    }

    fn place(&mut self, now: u64) {
        if now >= self.timeline.end {
            (self.interval, self.edge, self.floor) = (AFTER, u64::MAX, u64::MAX);
            return;
        }
        self.interval = self.timeline.interval(now);
        let (_, to, warming) = self.timeline.bounds(self.interval);
        (self.edge, self.floor) = (to, if warming { 0 } else { self.timeline.start });
    }

    fn hand_over(&mut self, interval: usize) {
        let cpu_nanos = crate::cost::thread_nanos();
        self.tallies.cpu_nanos = cpu_nanos - self.cpu_nanos;
        self.cpu_nanos = cpu_nanos;
        let mut state = self.desk.state();
        let empty = state.spare.pop();
        let empty = empty.unwrap_or_else(|| self.desk.new_tallies());
        let tallies = std::mem::replace(&mut self.tallies, empty);
        state.parcels.push(Parcel { thread: self.thread, interval, reached: self.interval, tallies });
    }

    /// Takes an answer to a request of `client`: counts it, and asks the client how it goes on.
    ///
    /// # Errors
    ///
    /// Returns the failure of the request if the session can no longer be used.
    #[inline]
    pub(crate) fn answered<C: Client>(
        &mut self,
        client: &mut C,
        answer: Answer,
        begun: Begun,
        result: Result<Outcome, Failure>,
        reply: &Reply,
    ) -> Result<After, Failure> {
        self.request(answer, begun, &result, reply);
        let mut retries = 0;
        let (next, written) = {
            let (is_counted, queued) = (begun.at >= self.floor, self.queued);
            let Tallies { kinds, counts, .. } = &mut self.tallies;
            let mut note = |kind: Kind, nanos, result| {
                if is_counted {
                    kinds[usize::from(kind.0)].note(queued, nanos, result);
                }
            };
            let mut extra = Extra::new(&mut note, &mut retries);
            if is_counted {
                extra = extra.counting(counts);
            }
            (client.served(result.as_ref().copied(), reply, &mut extra), extra.written())
        };
        if written > 0 && begun.at >= self.floor {
            self.tallies.kinds[usize::from(answer.kind.0)].rows += written;
        }
        if retries > 0 {
            self.retried(begun, retries);
        }
        let has_failed = result.is_err();
        if let Err(failure) = result
            && failure.harm == Harm::Session
        {
            self.operation(begun, false);
            return Err(failure);
        }
        let succeeded = match next {
            Next::More => return Ok(After::More),
            Next::Wait(nanos) => {
                if has_failed && begun.at >= self.floor {
                    self.tallies.kinds[usize::from(answer.kind.0)].retries += 1;
                }
                return Ok(After::Wait(answer.served.saturating_add(nanos)));
            }
            Next::Done => true,
            Next::DoneAs(kind) => {
                self.whole(kind, begun, answer.served);
                true
            }
            Next::Failed => false,
        };
        Ok(After::End { counts: self.operation(begun, succeeded) })
    }

    /// Counts a request that was sent and served.
    #[inline]
    fn request(&mut self, answer: Answer, begun: Begun, result: &Result<Outcome, Failure>, reply: &Reply) {
        self.pass(answer.served);
        if let Err(failure) = result {
            self.keep_text(failure);
        }
        if begun.at < self.floor {
            return;
        }
        self.last = answer.served;
        let tally = &mut self.tallies.kinds[usize::from(answer.kind.0)];
        let nanos = answer.served.saturating_sub(answer.sent);
        match result {
            Ok(outcome) => {
                tally.count(*outcome);
                // The row of a gathered insert is written later, together with other rows. So the time of the call
                // would only be the time of a copy in memory.
                if *outcome != Outcome::Batched {
                    tally.service.record(nanos);
                    if self.queued {
                        tally.response.record(nanos + answer.delay);
                        tally.waited.record(answer.delay);
                    }
                }
                tally.rows += reply.rows();
                tally.bytes += reply.bytes();
            }
            Err(failure) => tally.count_failure(nanos, failure.kind),
        }
    }

    #[cold]
    fn keep_text(&mut self, failure: &Failure) {
        if self.tallies.texts.iter().all(|(kind, _)| *kind != failure.kind) {
            self.tallies.texts.push((failure.kind, failure.text.clone()));
        }
    }

    /// Counts requests that the client made again.
    #[inline]
    fn retried(&mut self, begun: Begun, retries: u64) {
        if begun.at >= self.floor {
            self.tallies.retries += retries;
        }
    }

    /// Ends an operation. Returns whether it began in the window.
    #[inline]
    fn operation(&mut self, begun: Begun, done: bool) -> bool {
        if begun.at < self.floor {
            self.leave_out();
            return false;
        }
        match done {
            true => self.tallies.operations += 1,
            false => self.tallies.failed += 1,
        }
        // Before the window the floor is 0.
        self.floor > 0
    }

    #[cold]
    fn leave_out(&mut self) {
        match self.over() {
            true => self.tallies.cut += 1,
            false => self.tallies.warmed += 1,
        }
    }

    /// Gives up an operation that will not end.
    pub(crate) fn abandon(&mut self, begun: Begun) {
        if begun.at < self.floor {
            self.leave_out();
        }
    }

    /// Counts the total time of an operation that has succeeded, under `kind`.
    #[inline]
    fn whole(&mut self, kind: Kind, begun: Begun, served: u64) {
        if begun.at < self.floor {
            return;
        }
        let tally = &mut self.tallies.kinds[usize::from(kind.0)];
        let nanos = served.saturating_sub(begun.sent);
        tally.oks += 1;
        tally.service.record(nanos);
        if self.queued {
            tally.response.record(nanos + begun.delay);
            tally.waited.record(begun.delay);
        }
    }

    /// Sleeps until `until`, or if the plan has a slack, until the next multiple of it. Returns the reason if no
    /// operation may begin any more. The processor time of the wait is counted separately, because the store did not
    /// use it.
    pub(crate) fn pause(&mut self, until: u64) -> Option<Why> {
        if self.halted() {
            return Some(Why::Halted);
        }
        let now = self.clock.nanos();
        self.pass(now);
        if self.over() {
            return Some(Why::Over);
        }
        // For an operation that is already late, the processor clock is not read.
        if now >= until {
            return None;
        }
        let until = self.timeline.wake(until);
        // If the plan has a slack, a client may be served some microseconds late.
        let spin_nanos = if self.timeline.is_exact() { SPIN_NANOS } else { 0 };
        let mut before = crate::cost::thread_nanos();
        loop {
            let now = self.clock.nanos();
            let is_edge = now >= self.edge;
            if is_edge || now >= until || self.halted() {
                let after = crate::cost::thread_nanos();
                self.tallies.pausing_nanos += after - before;
                before = after;
            }
            if self.halted() {
                return Some(Why::Halted);
            }
            self.pass(now);
            if self.over() {
                return Some(Why::Over);
            }
            if now >= until {
                return None;
            }
            match until.min(self.edge) - now {
                nanos if nanos <= spin_nanos => std::hint::spin_loop(),
                nanos => std::thread::park_timeout(Duration::from_nanos(nanos - spin_nanos)),
            }
        }
    }

    /// Whether response times are counted too.
    pub(crate) fn queued(&self) -> bool {
        self.queued
    }

    /// Counts an operation that was due at `due`, had not begun at `now`, and will never begin.
    pub(crate) fn unsent(&mut self, due: u64, now: u64) {
        self.unsent += u64::from((self.timeline.start..now.min(self.timeline.end)).contains(&due));
    }

    /// Counts all operations that are left on `schedule`: they had not begun at `now`, and will never begin.
    pub(crate) fn all_unsent(&mut self, schedule: &Schedule, now: u64) {
        self.unsent += schedule.left_between(self.timeline.start, now.min(self.timeline.end));
    }

    /// Hands over the last counts of the thread. Nothing follows.
    pub(crate) fn finish(mut self) -> Finish {
        let interval = std::mem::replace(&mut self.interval, AFTER);
        self.hand_over(interval);
        Finish { last: self.last, unsent: self.unsent }
    }
}

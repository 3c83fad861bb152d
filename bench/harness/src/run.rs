//! Runs a workload on a store and measures it.
//!
//! Operations of an open loop are *unsent* if they were due in the window but were not sent before it ended. A
//! client thread is *pausing* while it waits until an operation is due, or until it makes a new attempt. The
//! processor time of pausing is part of the client's own cost (decision 44).
//!
//! Each thread counts in its own memory. Once an interval, the calling thread gathers the counts that the threads
//! hand over, and shows them. It also ends the run. If sessions block, every client has a thread, and a run has at
//! most [`MOST_THREADS`] threads. If one session can have many requests under way, a few threads drive all clients,
//! and a client takes no more memory than its state.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

mod blocking;
mod flights;
mod gather;
mod recorder;
mod timeline;
mod wheel;

#[cfg(test)]
mod tests;

use crate::client::Workload;
use crate::clock::Clock;
use crate::cost::{CLIENT, Clients, Cost, Snapshot};
use crate::failure::Failure;
use crate::measured::{Change, Interval, Measure, Measured, Noted};
use crate::plan::{Length, MOST_CLIENTS, MOST_THREADS, Pace, Plan};
use crate::store::{Blocking, Counter, Flights, Session, Store};
use flights::Seats;
use gather::{Gathered, Names};
use recorder::{Desk, End, Opened, Recorder, Why};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime};
use timeline::Timeline;

/// Why a run has no result, or only a partial one that must not be taken for a good one.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload cannot be run on this store as the plan says.
    #[error("{0}")]
    Plan(String),
    /// A thread could not be started.
    #[error("cannot start a thread for client {client}: {error}; fewer clients may do")]
    Thread {
        /// The first client of the thread.
        client: usize,
        /// What the system says.
        error: std::io::Error,
    },
    /// The store gave no session.
    #[error("client {client} has no session: {failure}")]
    Session {
        /// The first client of the session.
        client: usize,
        /// What the store says.
        failure: Failure,
    },
    /// The store lost a session in the run.
    #[error("client {client} lost its session: {failure}")]
    Lost {
        /// The client whose request failed, or the first client of the session.
        client: usize,
        /// What the store says.
        failure: Failure,
        /// What was measured before that.
        partial: Box<Measured>,
    },
    /// A client or the store panicked.
    #[error("the thread of client {client} panicked: {text}")]
    Panicked {
        /// The first client of the thread.
        client: usize,
        /// The text of the panic.
        text: String,
        /// What was measured without that thread.
        partial: Box<Measured>,
    },
    /// No operation was done in the window.
    #[error("nothing was measured: {}", nothing(.partial))]
    NothingMeasured {
        /// The other counts.
        partial: Box<Measured>,
    },
}

impl RunError {
    /// What was measured in spite of the error.
    pub fn partial(&self) -> Option<&Measured> {
        match self {
            Self::Plan(_) | Self::Thread { .. } | Self::Session { .. } => None,
            Self::Lost { partial, .. } | Self::Panicked { partial, .. } | Self::NothingMeasured { partial } => {
                Some(partial)
            }
        }
    }
}

fn nothing(partial: &Measured) -> String {
    let mut text = format!(
        "no operation was done in the window of {:.3} s, {} failed, {} began before it and {} ended after it",
        partial.nanos as f64 / 1e9,
        partial.failed,
        partial.warmed,
        partial.cut
    );
    if partial.interrupted {
        text.push_str("; the run was interrupted");
    }
    for (kind, first) in &partial.failures {
        text.push_str(&format!("; first {kind}: {first}"));
    }
    text
}

/// The longest time that the calling thread sleeps before it looks at `stop`.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the clients of `workload` on `store` as `plan` says. `watch` gets every interval soon after it has ended.
/// Once `stop` is set, the run ends almost at once, or as soon as the store has answered the requests under way. The
/// result is then marked as interrupted.
pub fn run<W: Workload>(
    store: &dyn Store,
    workload: &W,
    plan: &Plan,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Interval),
) -> Result<Measured, RunError> {
    run_from(store, workload, plan, stop, &mut || {}, watch)
}

/// Like [`run()`], but calls `begin` when all clients have their sessions, and lets the clients start when it
/// returns. `begin` can wait for the clients of other processes.
pub fn run_from<W: Workload>(
    store: &dyn Store,
    workload: &W,
    plan: &Plan,
    stop: &AtomicBool,
    begin: &mut dyn FnMut(),
    watch: &mut dyn FnMut(&Interval),
) -> Result<Measured, RunError> {
    plan.check()?;
    let desk = Desk::new(workload.kinds().len(), workload.counts().len());
    let crew = Crew { store, workload, plan, desk: &desk, clock: Clock::start() };
    std::thread::scope(|scope| crew.run(scope, stop, begin, watch))
}

impl Plan {
    fn check(&self) -> Result<(), RunError> {
        let bad = |text: &str| Err(RunError::Plan(text.to_owned()));
        if self.clients == 0 || self.workers == 0 {
            return bad("a run needs a client and a thread at least");
        }
        if self.clients > MOST_CLIENTS {
            return bad(&format!("a run has at most {MOST_CLIENTS} clients, and this one asks for {}", self.clients));
        }
        if self.workers > MOST_THREADS {
            return bad(&format!("a run has at most {MOST_THREADS} threads, and this one asks for {}", self.workers));
        }
        if self.interval < Duration::from_millis(1) {
            return bad("an interval is a millisecond at least");
        }
        match self.pace {
            // 10^-6 operations a second are one operation in eleven days. No machine reaches 10^12 operations a
            // second.
            Pace::Open { per_second } if !(1e-6..1e12).contains(&per_second) => {
                bad("the rate of an open loop is a number of operations a second, above 0")
            }
            _ => Ok(()),
        }
    }
}

/// The state that all threads of a run share.
struct Crew<'r, W> {
    store: &'r dyn Store,
    workload: &'r W,
    plan: &'r Plan,
    desk: &'r Desk,
    clock: Clock,
}

impl<W> Clone for Crew<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Crew<'_, W> {}

/// Tells the desk that a thread has ended, even by a panic.
struct Running<'d>(&'d Desk);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
        }
        self.0.state().running -= 1;
        self.0.wake();
    }
}

impl<'r, W: Workload> Crew<'r, W> {
    fn run<'scope>(
        self,
        scope: &'scope Scope<'scope, 'r>,
        stop: &AtomicBool,
        begin: &mut dyn FnMut(),
        watch: &mut dyn FnMut(&Interval),
    ) -> Result<Measured, RunError> {
        let mut threads = Vec::new();
        let started = self.start(scope, &mut threads, stop);
        let result = match started {
            Ok(opened) => {
                begin();
                self.measure(opened, &threads, stop, watch)
            }
            Err(error) => Err(error),
        };
        self.halt(&threads);
        let mut panicked = None;
        for (client, thread) in threads.into_iter().enumerate() {
            if let Err(panic) = thread.join() {
                panicked.get_or_insert((client, said(&*panic)));
            }
        }
        match (result, panicked) {
            (result, None) => result,
            (Err(RunError::NothingMeasured { partial } | RunError::Lost { partial, .. }), Some((client, text))) => {
                Err(RunError::Panicked { client, text, partial })
            }
            (Ok(partial), Some((client, text))) => Err(RunError::Panicked { client, text, partial: Box::new(partial) }),
            (Err(_), Some((client, text))) => Err(RunError::Panicked { client, text, partial: Box::default() }),
        }
    }

    /// Starts the threads and waits until each has its session. The first session shows which kind of session the
    /// store has. This decides the number of threads.
    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, 'r>,
        threads: &mut Vec<ScopedJoinHandle<'scope, ()>>,
        stop: &AtomicBool,
    ) -> Result<Opened, RunError> {
        let clients = self.plan.clients;
        let workers = self.plan.workers.min(clients);
        self.spawn(scope, threads, workers)?;
        let first = self.opened(1, stop)?;
        let count = if first.depth.is_some() { workers } else { clients };
        if count > MOST_THREADS {
            return Err(RunError::Plan(format!(
                "each client of this store is a thread, since its calls wait, and a run has at most {MOST_THREADS} threads: \
                 {clients} clients need a store that has many requests under way on a thread"
            )));
        }
        while threads.len() < count {
            self.spawn(scope, threads, count)?;
        }
        self.opened(count, stop)
    }

    /// Waits until `count` threads have a session.
    fn opened(&self, count: usize, stop: &AtomicBool) -> Result<Opened, RunError> {
        loop {
            let mut state = self
                .desk
                .wait(LOOK, |state| state.opened.len() >= count || state.refused.is_some() || state.running < count);
            if let Some((client, failure)) = state.refused.take() {
                return Err(RunError::Session { client, failure });
            }
            if state.opened.len() >= count {
                let depth = state.opened[0].depth;
                if state.opened.iter().any(|opened| opened.depth != depth) {
                    return Err(RunError::Plan("the store gave sessions of two kinds".to_owned()));
                }
                return Ok(Opened { depth, queued: state.opened.iter().any(|opened| opened.queued) });
            }
            if state.running < count || stop.load(Ordering::Relaxed) {
                let interrupted = stop.load(Ordering::Relaxed);
                return Err(RunError::NothingMeasured {
                    partial: Box::new(Measured { interrupted, ..Measured::default() }),
                });
            }
        }
    }

    fn spawn<'scope>(
        self,
        scope: &'scope Scope<'scope, 'r>,
        threads: &mut Vec<ScopedJoinHandle<'scope, ()>>,
        count: usize,
    ) -> Result<(), RunError> {
        let number = threads.len();
        self.desk.state().running += 1;
        let thread = std::thread::Builder::new().name(format!("{CLIENT}{number}"));
        let spawned = thread.spawn_scoped(scope, move || {
            let _running = Running(self.desk);
            self.work(number, count);
        });
        match spawned {
            Ok(thread) => {
                threads.push(thread);
                Ok(())
            }
            Err(error) => {
                self.desk.state().running -= 1;
                Err(RunError::Thread { client: number, error })
            }
        }
    }

    /// The work of thread `number`. If sessions block, the thread drives client `number`. Otherwise, the thread
    /// drives client `number` and every `threads`th client after it.
    fn work(self, number: usize, threads: usize) {
        crate::cost::wake_on_time();
        let session = match self.plan.loading {
            true => self.store.loader(self.clock),
            false => self.store.session(self.clock),
        };
        let session = match session {
            Ok(session) => session,
            Err(failure) => return self.desk.refuse(number, failure),
        };
        match session {
            Session::Blocking(session) => self.block(number, session),
            Session::Flights(session) => self.fly(number, threads, session),
        }
    }

    fn block(self, number: usize, mut session: Box<dyn Blocking + '_>) {
        let mut client = self.workload.client(number, self.plan.clients);
        let queued = self.queued();
        let Some((timeline, queued)) = self.desk.ready(Opened { depth: None, queued }) else { return };
        let mut recorder = Recorder::new(self.desk, self.clock, timeline, number, queued);
        let driven = match recorder.pause(timeline.ramp(number)) {
            Some(why) => Ok(why),
            None => blocking::drive(&mut *session, &mut client, &mut recorder, number, self.quota(number)),
        };
        let driven = driven.and_then(|why| session.finish().map(|()| why));
        self.end(recorder, driven.map_err(|failure| (number, failure)));
    }

    fn fly(self, number: usize, threads: usize, mut session: Box<dyn Flights + '_>) {
        let numbers = || (number..self.plan.clients).step_by(threads);
        let clients = numbers().map(|number| self.workload.client(number, self.plan.clients));
        let mut seats = Seats::new(number, threads, clients);
        let depth = session.depth();
        let queued = self.queued() || seats.len() > depth;
        let Some((timeline, queued)) = self.desk.ready(Opened { depth: Some(depth), queued }) else { return };
        let mut recorder = Recorder::new(self.desk, self.clock, timeline, number, queued);
        seats.place(&timeline);
        if matches!(self.plan.length, Length::Operations(_)) {
            seats.limit(numbers().map(|number| self.quota(number)).collect());
        }
        let driven = flights::drive(&mut *session, seats, &mut recorder);
        let driven = driven.and_then(|why| session.finish().map(|()| why).map_err(|failure| (number, failure)));
        self.end(recorder, driven);
    }

    /// Whether operations can be late under this plan. If so, response times are recorded too.
    fn queued(&self) -> bool {
        self.plan.pace != Pace::Closed || !self.plan.slack.is_zero()
    }

    fn end(&self, recorder: Recorder<'_>, driven: Result<Why, (usize, Failure)>) {
        let written = self.clock.nanos();
        let mut finish = recorder.finish();
        if self.plan.loading {
            finish.last = finish.last.max(written);
        }
        self.desk.end(match driven {
            Ok(why) => End::Stopped(why, finish),
            Err((client, failure)) => End::Lost(client, failure, finish),
        });
    }

    /// How many operations of the window client `number` does.
    fn quota(&self, number: usize) -> u64 {
        let clients = self.plan.clients as u64;
        match self.plan.length {
            Length::Operations(all) => all / clients + u64::from((number as u64) < all % clients),
            Length::Time(_) | Length::All => u64::MAX,
        }
    }

    fn halt(&self, threads: &[ScopedJoinHandle<'_, ()>]) {
        self.desk.halt();
        self.desk.wake();
        threads.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Starts the clock and gathers until all threads have ended.
    fn measure(
        self,
        opened: Opened,
        threads: &[ScopedJoinHandle<'_, ()>],
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&Interval),
    ) -> Result<Measured, RunError> {
        let kinds = self.workload.kinds();
        let immediate = self.plan.ramp.is_zero() && self.plan.warmup.is_zero();
        let mut before = immediate.then(|| self.look());
        let timeline = Timeline::new(self.plan, self.clock.nanos());
        let names = Names { kinds, counts: self.workload.counts() };
        let mut gathered = Gathered::new(names, timeline, opened.queued, threads.len());
        let mut after = None;
        let mut halted_at = None;
        let mut seen_bytes = 0;
        let mut samples = Samples::default();
        self.desk.go(timeline, opened.queued);
        loop {
            let now = self.clock.nanos();
            let next = [timeline.start, timeline.end].into_iter().find(|edge| *edge > now).unwrap_or(u64::MAX);
            let time = LOOK.min(Duration::from_nanos(next - now));
            let (parcels, running) = {
                let mut state = self.desk.wait(time, |state| !state.parcels.is_empty() || state.running == 0);
                (std::mem::take(&mut state.parcels), state.running)
            };
            let now = self.clock.nanos();
            if now >= timeline.start && before.is_none() {
                before = Some(self.look());
            }
            if before.is_some() && after.is_none() {
                seen_bytes = crate::cost::resident_bytes().max(seen_bytes);
            }
            if (now >= timeline.end || running == 0) && after.is_none() {
                let look = self.look();
                // If the run ends within an interval, the counters at the end of the run are kept as the counters of
                // that interval.
                gathered.count(timeline.interval(now.min(timeline.end) - 1), now, &look.counters);
                after = Some(look);
            }
            if after.is_none()
                && let Some(number) = samples.due(now, &timeline)
            {
                gathered.count(number, now, &self.store.counters());
                samples.taken(number, now, self.clock.nanos());
            }
            for parcel in parcels {
                let tallies = gathered.add(parcel);
                self.desk.give_back(tallies);
            }
            if halted_at.is_none() && (stop.load(Ordering::Relaxed) || self.desk.halted()) {
                halted_at = Some(now);
                self.halt(threads);
            }
            while let Some(interval) = gathered.next(now) {
                watch(&interval);
            }
            if running == 0 {
                break;
            }
        }
        let ended = std::mem::take(&mut self.desk.state().ended);
        let after = after.unwrap_or_default();
        // A run that ended before its window has no counters from the window's beginning, and used nothing in the
        // window.
        let before = before.unwrap_or_else(|| after.clone());
        let mut over = false;
        let mut last = timeline.start;
        let mut lost = None;
        let mut unsent = 0;
        for end in ended {
            let finish = match end {
                End::Stopped(why, finish) => {
                    over |= why == Why::Over;
                    finish
                }
                End::Lost(client, failure, finish) => {
                    lost.get_or_insert((client, failure));
                    finish
                }
            };
            last = last.max(finish.last);
            unsent += finish.unsent;
        }
        if let Some(at) = halted_at {
            last = last.max(at);
        }
        let end = if over { timeline.end } else { last.min(timeline.end) };
        let nanos = end - timeline.start;
        let interrupted = stop.load(Ordering::Relaxed) && halted_at.is_some() && !over;
        let (warmed, cut) = (gathered.warmed, gathered.cut);
        let failures = std::mem::take(&mut gathered.failures);
        let (intervals, unshown) = gathered.finish(nanos);
        intervals.iter().skip(unshown).for_each(&mut *watch);
        let window = || intervals.iter().filter(|interval| !interval.warming);
        let clients = Clients {
            threads: threads.len() as u64,
            depth: opened.depth.map(|depth| depth as u64),
            nanos: window().map(|interval| interval.client_nanos).sum(),
            pausing_nanos: window().map(|interval| interval.pausing_nanos).sum(),
        };
        let cost = Cost::between(&before.snapshot, &after.snapshot, clients, seen_bytes);
        let measured = Measured {
            began_unix_millis: before.unix_millis,
            nanos,
            clients: self.plan.clients as u64,
            warmed,
            cut,
            unsent,
            interrupted,
            cost,
            counters: changes(&before.counters, &after.counters),
            failures,
            ..summed(kinds, intervals)
        };
        match lost {
            Some((client, failure)) => Err(RunError::Lost { client, failure, partial: Box::new(measured) }),
            None if measured.operations == 0 => Err(RunError::NothingMeasured { partial: Box::new(measured) }),
            None => Ok(measured),
        }
    }

    /// Reads the store's counters, and what the processes have used up to now.
    fn look(&self) -> Look {
        let (counters, used) = (self.store.counters(), self.store.used());
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Look { counters, unix_millis: since.as_millis() as u64, snapshot: Snapshot::take(used) }
    }
}

/// Decides when to read the store's counters during a run: after an interval has ended, but not after every one,
/// because these reads may take at most a hundredth of the gathering thread's time.
#[derive(Default)]
struct Samples {
    /// The earliest time of the next sample.
    next: u64,
    /// The first interval that has no sample.
    first: usize,
}

impl Samples {
    /// The interval that ended last, if the store's counters may be read for it now.
    fn due(&self, now: u64, timeline: &Timeline) -> Option<usize> {
        let number = timeline.interval(now).checked_sub(1)?;
        (number >= self.first && now >= self.next).then_some(number)
    }

    /// Notes that the counters were read for interval `number`. Reading them lasted from `before` to `after`.
    fn taken(&mut self, number: usize, before: u64, after: u64) {
        self.first = number + 1;
        self.next = after + 100 * (after - before);
    }
}

/// The store's counters and the resources used so far, at the beginning or at the end of the window.
#[derive(Clone, Default)]
struct Look {
    counters: Vec<Counter>,
    unix_millis: u64,
    snapshot: Snapshot,
}

fn changes(before: &[Counter], after: &[Counter]) -> Vec<Change> {
    let change = |after: &Counter| {
        let before = before.iter().find(|before| before.name == after.name);
        let before = before.map_or(0, |before| before.value);
        Change { name: after.name.to_owned(), before, after: after.value, gauge: after.gauge }
    };
    after.iter().map(change).collect()
}

/// Adds up the intervals of a window.
fn summed(kinds: &[&str], intervals: Vec<Interval>) -> Measured {
    let window: Vec<&Interval> = intervals.iter().filter(|interval| !interval.warming).collect();
    let kind = |(number, name): (usize, &&str)| Measure {
        name: (*name).to_owned(),
        ..Measure::sum(window.iter().map(|interval| &interval.kinds[number]))
    };
    let measured = Measured {
        operations: window.iter().map(|interval| interval.operations).sum(),
        failed: window.iter().map(|interval| interval.failed).sum(),
        retries: window.iter().map(|interval| interval.retries).sum(),
        kinds: kinds.iter().enumerate().map(kind).collect(),
        counts: Noted::sum(window.iter().map(|interval| &interval.counts[..])),
        ..Measured::default()
    };
    Measured { intervals, ..measured }
}

/// The text of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "something that is no text".to_owned())
}

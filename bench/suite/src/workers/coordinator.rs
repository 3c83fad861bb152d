//! The coordinator: divides a run among workers, starts them together, and merges their results.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "processes of the real machine")]

#[cfg(test)]
mod tests;

use super::lines::{Lines, Writer};
use super::protocol::{FIRST_BYTES, Failed, FromCoordinator, FromWorker, Outcome, RESULT_BYTES};
use super::secret::{Secret, Side};
use crate::args::TogetherArgs;
use crate::ending::Ran;
use crate::stop::{INTERRUPTED, Stop};
use crate::targets::is_one_for_all;
use harness::report::{Pair, Run};
use harness::share::MOST_SHARES;
use harness::{Failure, Interval, Share, Target};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long a worker may take to answer. One that is busy with another coordinator does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the coordinator checks for ^C while it waits for messages.
const LOOK: Duration = Duration::from_millis(20);
/// If the first and the last worker begin further apart than this, the result gets a warning.
const APART: Duration = Duration::from_millis(100);

/// The processes that do a run together.
#[derive(Debug)]
pub struct Workers {
    addresses: Vec<String>,
    secret: Secret,
}

impl Workers {
    /// The workers that `args` names, or `None` without `--workers`.
    ///
    /// # Errors
    ///
    /// Fails if an address is malformed or given twice, if there are too many, if there is no secret, or if several
    /// processes cannot use `target` together.
    pub fn of(args: &TogetherArgs, target: &Target) -> Result<Option<Self>, Failure> {
        let usage = |text: String| Failure::session("target", text);
        let addresses = args.addresses()?;
        if args.share.is_some_and(|share| !share.is_whole()) || addresses.len() > 1 {
            check_target(target)?;
        }
        if addresses.is_empty() {
            return Ok(None);
        }
        if addresses.len() > MOST_SHARES {
            return Err(usage(format!("--workers: a run has at most {MOST_SHARES} workers")));
        }
        if let Some(twice) = addresses.iter().enumerate().find(|(at, one)| addresses[..*at].contains(one)) {
            return Err(usage(format!("--workers: {} is there twice, and a worker does one share", twice.1)));
        }
        Ok(Some(Self { addresses, secret: Secret::find(args.secret_file.as_deref())? }))
    }

    /// Has the workers run the command `args` (the arguments of `larch bench`), and merges their results into one
    /// run. `watch` is called with each interval once all workers have reported it. If a worker is lost, the run
    /// has the results of the others and an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Workers::results`], or an error if nothing was measured.
    pub fn run(&self, args: &[String], stop: &Stop, watch: &mut dyn FnMut(&Interval)) -> Result<Ran, Failure> {
        one_run(self.results(args, stop, watch)?)
    }

    /// Has the workers run the command `args`, and returns their results.
    ///
    /// # Errors
    ///
    /// Fails if a worker cannot be reached, does not know the secret, or is lost before all are ready, and on ^C
    /// before then.
    pub fn results<R: DeserializeOwned>(
        &self,
        args: &[String],
        stop: &Stop,
        watch: &mut dyn FnMut(&Interval),
    ) -> Result<Results<R>, Failure> {
        let (send, events) = channel();
        let mut connections = Vec::new();
        for address in &self.addresses {
            let (lines, writer) = self.connect(address).map_err(|why| lost(address, &why))?;
            connections.push((lines, writer));
        }
        std::thread::scope(|scope| {
            let mut writers = Vec::new();
            for (number, (lines, writer)) in connections.into_iter().enumerate() {
                let send = send.clone();
                scope.spawn(move || listen(number, lines, &send));
                writers.push(writer);
            }
            let mut course = Course::new(self, writers, events);
            let ended = course.run(args, stop, watch);
            // Closing the connections ends the listener threads, and makes the workers stop.
            course.writers.iter().for_each(Writer::end);
            ended.and_then(|()| course.results())
        })
    }

    /// Connects to a worker, and authenticates both sides.
    fn connect(&self, address: &str) -> Result<(Lines, Writer), String> {
        let places = address.to_socket_addrs().map_err(|error| format!("this is no address ({error})"))?;
        let mut connected = Err("this name has no address".to_owned());
        for place in places {
            connected = TcpStream::connect_timeout(&place, PATIENCE)
                .map_err(|error| format!("{error}: start it with `larch bench worker --listen {address}`"));
            if connected.is_ok() {
                break;
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let mut lines = Lines::new(connected?).map_err(|error| error.to_string())?;
        let mut writer = lines.writer().map_err(|error| error.to_string())?;
        let busy = |why: String| format!("{why}; it may work for another coordinator, or be no worker");
        let challenge = match lines.read(FIRST_BYTES, Some(deadline)).map_err(busy)? {
            FromWorker::Challenge(challenge) => challenge,
            _ => return Err("it does not begin with a challenge".to_owned()),
        };
        let (answer, nonce) = challenge.answer(&self.secret)?;
        writer.write(&answer)?;
        match lines.read(FIRST_BYTES, Some(deadline))? {
            FromWorker::Welcome { proof } if self.secret.is_proven(Side::Worker, &challenge.nonce, &nonce, &proof) => {
                Ok((lines, writer))
            }
            FromWorker::Welcome { .. } => Err("it does not know the secret".to_owned()),
            FromWorker::Refused { why } => Err(format!("it refuses this coordinator: {why}")),
            _ => Err("it does not say whether it knows the secret".to_owned()),
        }
    }
}

/// Refuses a target that only one process can open.
fn check_target(target: &Target) -> Result<(), Failure> {
    match is_one_for_all(target) {
        true => Ok(()),
        false => {
            let text = format!(
                "target `{}`: one process alone can open it. Several workers or shares need a server, as postgres://…, or noop:",
                target.shown()
            );
            Err(Failure::session("target", text))
        }
    }
}

#[cold]
fn lost(address: &str, why: &str) -> Failure {
    Failure::session("worker", format!("worker {address}: {why}"))
}

/// A message from a worker, or the end of its connection.
enum Event {
    Said(FromWorker),
    Gone(String),
}

/// Forwards the messages of worker `number`, up to its last one.
fn listen(number: usize, mut lines: Lines, send: &Sender<(usize, Event)>) {
    loop {
        let event = match lines.read(RESULT_BYTES, None) {
            Ok(said) => Event::Said(said),
            Err(why) => Event::Gone(why),
        };
        let is_last = matches!(&event, Event::Gone(_) | Event::Said(FromWorker::Result(_) | FromWorker::Failed(_)));
        if send.send((number, event)).is_err() || is_last {
            return;
        }
    }
}

/// The state of a worker.
enum State {
    /// It prepares or runs.
    Working,
    /// It has sent this result.
    Done(Box<Outcome>),
    /// It has no result, for this reason.
    Lost(Failure),
}

/// One run of all workers.
struct Course<'w> {
    workers: &'w Workers,
    writers: Vec<Writer>,
    events: Receiver<(usize, Event)>,
    states: Vec<State>,
    ready: Vec<bool>,
    /// When each worker reported that its clients began, counted from the coordinator's `Go`.
    begun: Vec<Option<Duration>>,
    board: Board,
    is_stopped: bool,
}

impl<'w> Course<'w> {
    fn new(workers: &'w Workers, writers: Vec<Writer>, events: Receiver<(usize, Event)>) -> Self {
        let count = writers.len();
        Self {
            workers,
            writers,
            events,
            states: (0..count).map(|_| State::Working).collect(),
            ready: vec![false; count],
            begun: vec![None; count],
            board: Board::new(count),
            is_stopped: false,
        }
    }

    fn run(&mut self, args: &[String], stop: &Stop, watch: &mut dyn FnMut(&Interval)) -> Result<(), Failure> {
        let count = self.writers.len();
        // Workers prepare one after the other: the first one creates the tables that are missing.
        for number in 0..count {
            let task = FromCoordinator::Task { args: args.to_vec(), share: Share::new(number, count) };
            self.tell(number, &task);
            while !self.ready[number] {
                if stop.is_pressed() {
                    let text = "interrupted before all workers were ready; nothing was measured";
                    return Err(Failure::session(INTERRUPTED, text));
                }
                self.hear(Instant::now());
                if let Some(failure) = self.first_lost() {
                    return Err(failure);
                }
                if self.states.iter().any(|state| matches!(state, State::Done(_))) {
                    let text = format!("worker {}: it ended before it began", self.workers.addresses[number]);
                    return Err(Failure::session("worker", text));
                }
            }
        }
        let go = Instant::now();
        (0..count).for_each(|number| self.tell(number, &FromCoordinator::Go));
        while self.states.iter().any(|state| matches!(state, State::Working)) {
            self.hear(go);
            self.board.show(watch);
            // Without one of its shares the run is incomplete, so stop the others.
            if stop.is_pressed() || self.first_lost().is_some() || self.has_failed() {
                self.stop_all();
            }
        }
        self.board.show_all(watch);
        Ok(())
    }

    /// Sends a message to a worker, or marks it as lost.
    fn tell(&mut self, number: usize, what: &FromCoordinator) {
        if let Err(why) = self.writers[number].write(what) {
            self.lose(number, &why);
        }
    }

    fn lose(&mut self, number: usize, why: &str) {
        if matches!(self.states[number], State::Working) {
            self.states[number] = State::Lost(lost(&self.workers.addresses[number], why));
            self.board.end(number);
        }
    }

    /// Waits up to [`LOOK`] for a message and handles it. `go` is when the workers were told to begin.
    fn hear(&mut self, go: Instant) {
        let (number, event) = match self.events.recv_timeout(LOOK) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        };
        match event {
            Event::Said(FromWorker::Ready) => self.ready[number] = true,
            Event::Said(FromWorker::Begun) => self.begun[number] = Some(go.elapsed()),
            Event::Said(FromWorker::Progress(interval)) => self.board.add(number, *interval),
            Event::Said(FromWorker::Late(interval)) => self.board.late.push(*interval),
            Event::Said(FromWorker::Result(outcome)) => {
                self.board.end(number);
                self.states[number] = State::Done(outcome);
            }
            Event::Said(FromWorker::Failed(failed)) => self.fail(number, &failed),
            Event::Said(FromWorker::Refused { why }) => self.lose(number, &why),
            Event::Said(FromWorker::Challenge(_) | FromWorker::Welcome { .. }) => {
                self.lose(number, "it does not speak the protocol");
            }
            Event::Gone(why) => self.lose(number, &why),
        }
    }

    fn fail(&mut self, number: usize, failed: &Failed) {
        self.board.end(number);
        self.states[number] = State::Lost(failed.failure(&self.workers.addresses[number]));
    }

    fn first_lost(&self) -> Option<Failure> {
        self.states.iter().find_map(|state| match state {
            State::Lost(failure) => Some(failure.clone()),
            State::Working | State::Done(_) => None,
        })
    }

    /// Whether a worker ended before its run was complete.
    fn has_failed(&self) -> bool {
        self.states.iter().any(|state| matches!(state, State::Done(outcome) if outcome.is_early))
    }

    fn stop_all(&mut self) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            for number in 0..self.writers.len() {
                if matches!(self.states[number], State::Working) {
                    self.tell(number, &FromCoordinator::Stop);
                }
            }
        }
    }

    /// Decodes the workers' results.
    fn results<R: DeserializeOwned>(self) -> Result<Results<R>, Failure> {
        let mut lost = self.first_lost();
        let begun = || self.begun.iter().flatten();
        let apart = begun().min().zip(begun().max()).map(|(first, last)| *last - *first);
        let count = self.states.len();
        let mut parts = Vec::new();
        for (number, (address, state)) in self.workers.addresses.iter().zip(self.states).enumerate() {
            if let State::Done(outcome) = state {
                let (share, machine) = (Share::new(number, count), outcome.machine.clone());
                let about = format!("{address}, share {share}, {machine}");
                let is_early = outcome.is_early;
                match outcome.result() {
                    Ok(result) => parts.push(Part { address: address.clone(), about, is_early, result }),
                    // Keep the results of the others.
                    Err(why) => drop(lost.get_or_insert_with(|| self::lost(address, &why))),
                }
            }
        }
        Ok(Results { parts, lost, apart })
    }
}

/// The results of the workers of a run.
pub struct Results<R> {
    /// The results of the workers that have one.
    pub parts: Vec<Part<R>>,
    /// Why the first lost worker has no result; `None` if all have one.
    pub lost: Option<Failure>,
    /// The time between the start of the first worker and of the last.
    apart: Option<Duration>,
}

/// The result of one worker.
pub struct Part<R> {
    /// The address of the worker.
    pub address: String,
    /// The worker's address, its share and its machine.
    about: String,
    /// Whether the worker ended before its run was complete.
    pub is_early: bool,
    /// Its result.
    pub result: R,
}

impl<R> Results<R> {
    /// The workers, as settings of the result.
    pub fn settings(&self) -> Vec<Pair> {
        let worker =
            |(number, part): (usize, &Part<R>)| Pair::new(format!("worker {}", number + 1), part.about.clone());
        let apart = self.apart.map(|apart| Pair::new("workers began within", millis(apart)));
        self.parts.iter().enumerate().map(worker).chain(apart).collect()
    }

    /// A warning about the result, if the workers did not begin together.
    pub fn warning(&self) -> Option<String> {
        let apart = self.apart.filter(|apart| *apart > APART)?;
        Some(format!("the workers began {} apart", millis(apart)))
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Merges the results that arrived into one run.
fn one_run(results: Results<Ran>) -> Result<Ran, Failure> {
    let parts = || results.parts.iter().map(|part| (part.address.as_str(), &part.result));
    let lost = results.lost.as_ref();
    if let Some(failure) = lost.filter(|_| parts().all(|(_, ran)| ran.run.measured.operations == 0)) {
        return Err(failure.clone());
    }
    let merged = Run::merged(&parts().map(|(address, ran)| (address, &ran.run)).collect::<Vec<_>>());
    let differ = |why| Failure::session("worker", format!("the workers' results differ: {why}"));
    let mut run = merged.map_err(|why| lost.cloned().unwrap_or_else(|| differ(why)))?;
    run.settings.extend(results.settings());
    run.warnings.extend(results.warning());
    if let Some(failure) = lost {
        let others = run.error.take().map(|error| format!("; {error}")).unwrap_or_default();
        run.error =
            Some(format!("{}; what follows is what the other workers measured until then{others}", failure.text));
    }
    Ok(Ran { run, is_lost: lost.is_some() || parts().any(|(_, ran)| ran.is_lost) })
}

/// The position of an interval: (in the measured window, start). The warm-up sorts first.
type Key = (bool, u64);

/// Collects intervals until all workers have sent theirs.
struct Board {
    /// The newest interval of each worker.
    reached: Vec<Option<Key>>,
    /// Whether each worker has ended and will send no more.
    ended: Vec<bool>,
    waiting: BTreeMap<Key, Vec<Interval>>,
    late: Vec<Interval>,
}

impl Board {
    fn new(workers: usize) -> Self {
        Self { reached: vec![None; workers], ended: vec![false; workers], waiting: BTreeMap::new(), late: Vec::new() }
    }

    fn add(&mut self, worker: usize, interval: Interval) {
        let key = (!interval.warming, interval.from_nanos);
        self.reached[worker] = self.reached[worker].max(Some(key));
        self.waiting.entry(key).or_default().push(interval);
    }

    fn end(&mut self, worker: usize) {
        self.ended[worker] = true;
    }

    /// Passes on the intervals that every running worker has reached.
    fn show(&mut self, watch: &mut dyn FnMut(&Interval)) {
        let working = self.reached.iter().zip(&self.ended).filter(|(_, ended)| !**ended);
        let reached = working.map(|(reached, _)| *reached).min();
        while let Some(first) = self.waiting.first_entry() {
            if reached.is_some_and(|reached| Some(*first.key()) > reached) {
                return;
            }
            let pieces = first.remove();
            let together = Interval::together(&pieces.iter().collect::<Vec<_>>());
            watch(&Interval { told_late: std::mem::take(&mut self.late), ..together });
        }
    }

    fn show_all(&mut self, watch: &mut dyn FnMut(&Interval)) {
        self.ended.fill(true);
        self.show(watch);
    }
}

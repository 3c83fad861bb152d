//! Writes single times, as `measurementtype=raw` asks for. Each request gets a line such as
//! `READ,1711455503042,137`. The line contains the kind, the time of the answer in milliseconds since 1970, and the
//! duration in microseconds.
//!
//! ```text
//!   harness ──> Stamping: when a request was sent and served ──> Store
//!      │                      │ in a cell of the thread
//!      └────> Noting <────────┘ ──> some KiB of lines ──full, or the client is done──> RawLog: one file
//! ```
//!
//! A wrapper around the measured store takes the times, because only a store knows when a request is sent. In an
//! open loop, a client hands over a request long before the store sends the request. Because of this wrapper, each
//! request costs two more reads of the clock, and these are part of the measured time.
//!
//! The first request shows when the run began, which determines the time of the window. If a request is sent near
//! the edge of the window, it may be in the file but not in the summary, or in the summary but not in the file. If
//! a run has no warm-up and a fixed number of operations, this cannot happen.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "single times are a file of the machine")]

#[cfg(test)]
mod tests;

use crate::kinds;
use crate::settings::{BadProperty, MeasurementInterval, MeasurementType, Output};
use harness::{
    Blocking, Client, Clock, Counter, Extra, Failure, Flights, Kind, Length, Measured, Next, Outcome, Pace, Plan,
    Reply, Request, RunError, Served, Session, Setting, Store, StoreUse, Wait, Workload,
};
use os::sync::atomic::AtomicBool;
use os::sync::{Arc, Mutex, OnceLock};
use std::cell::Cell;
use std::io::{self, Write};
use std::ops::Range;
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// The memory in which all clients together collect lines before they write them. Each client has an equal part of
/// this memory, but at most `MOST_BUFFER_BYTES` and at least `LEAST_BUFFER_BYTES`.
const BUFFERS_BYTES: usize = 64 << 20;
const MOST_BUFFER_BYTES: usize = 64 << 10;
/// Enough for a few lines.
const LEAST_BUFFER_BYTES: usize = 1 << 10;
/// An upper bound on the bytes of a line, which has a label and two numbers of at most 20 digits.
const LINE_BYTES: usize = 128;

thread_local! {
    /// For the request whose outcome the client on this thread gets next: when the request was sent, and when it
    /// was served.
    static STAMP: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The failure to write single times.
#[derive(Debug, Error)]
#[error("cannot write single times to {name}: {error}")]
pub struct RawError {
    /// The name of the file.
    pub name: String,
    /// The error that the system has reported.
    pub error: io::Error,
}

/// The file or other output for the single times of a run.
pub struct RawLog(Arc<Log>);

/// What the clients share.
struct Log {
    name: String,
    /// For each kind, the labels with which its lines begin: first for requests that succeeded, then for failed
    /// requests. A request gets a line for each of its labels.
    labels: Vec<[Vec<String>; 2]>,
    /// The length of the ramp and the warm-up together.
    skip_nanos: u64,
    /// The maximum length of the window.
    length_nanos: u64,
    /// The window. The first request that is sent sets it.
    window: OnceLock<Range<u64>>,
    /// Nanoseconds from 1970 to the moment when the run's clock was 0.
    began_nanos: OnceLock<u64>,
    file: Mutex<File>,
}

struct File {
    out: Box<dyn Write + Send>,
    /// The labels whose header was written, with one bit for each label.
    headed: u64,
    /// The first error of a write. After an error, nothing more is written.
    error: Option<io::Error>,
}

impl RawLog {
    /// Opens the file that `output` names, for a run with the plan `plan`. Lines are appended to it. Returns `None`
    /// if no single times are asked for.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened. Also fails if `output` asks for intended times in an open loop, whose
    /// schedule only the harness knows.
    pub fn open(output: &Output, plan: &Plan) -> Result<Option<RawLog>, BadProperty> {
        if !output.measure.is_raw() {
            return Ok(None);
        }
        let bad = |name: &str, value: &str, allowed: String| BadProperty {
            name: name.to_owned(),
            value: value.to_owned(),
            allowed,
        };
        if plan.pace != Pace::Closed && output.interval != MeasurementInterval::Operation {
            let value = if output.interval == MeasurementInterval::Both { "both" } else { "intended" };
            let allowed = "`op` for single times with a rate: they are from when a request was sent";
            return Err(bad("measurement.interval", value, allowed.to_owned()));
        }
        let Some(path) = &output.raw_file else {
            return Ok(Some(RawLog::new("standard output", Box::new(io::stdout()), output, plan)));
        };
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
            bad("measurement.raw.output_file", path, format!("a file that can be written: {error}"))
        })?;
        Ok(Some(RawLog::new(path, Box::new(file), output, plan)))
    }

    fn new(name: &str, out: Box<dyn Write + Send>, output: &Output, plan: &Plan) -> RawLog {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let length = match plan.length {
            Length::Time(time) => nanos(time),
            Length::Operations(_) | Length::All => u64::MAX,
        };
        RawLog(Arc::new(Log {
            name: name.to_owned(),
            labels: labels(output),
            skip_nanos: nanos(plan.ramp).saturating_add(nanos(plan.warmup)),
            length_nanos: length.min(plan.limit.map_or(u64::MAX, nanos)),
            window: OnceLock::new(),
            began_nanos: OnceLock::new(),
            file: Mutex::new(File { out, headed: 0, error: None }),
        }))
    }

    /// Like [`harness::run()`], but also writes every single time to the file.
    ///
    /// # Errors
    ///
    /// Returns the errors of the run. If the file cannot be written, the run goes on, and [`RawLog::finish`]
    /// returns the error.
    pub fn run<W: Workload>(
        &self,
        store: &dyn Store,
        workload: &W,
        plan: &Plan,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&harness::Interval),
    ) -> Result<Measured, RunError> {
        let stamping = Stamping { store, log: &self.0 };
        harness::run(&stamping, &Noting { workload, log: &self.0 }, plan, stop, watch)
    }

    /// Finishes the file.
    ///
    /// # Errors
    ///
    /// Fails if a part of the file could not be written.
    pub fn finish(self) -> Result<(), RawError> {
        let mut file = self.0.file.lock();
        let ended = file.error.take().map_or_else(|| file.out.flush(), Err);
        ended.map_err(|error| RawError { name: self.0.name.clone(), error })
    }
}

/// The labels of each kind, for [`Log::labels`].
fn labels(output: &Output) -> Vec<[Vec<String>; 2]> {
    let prefix = if output.measure == MeasurementType::HdrAndRaw { "Raw" } else { "" };
    let of = |name: &&str| {
        let mut done = vec![format!("{prefix}{name}")];
        if *name == "VERIFY" {
            // A failed check is counted under the same name as a check that succeeds. A check sends no request, so
            // it has no intended time.
            return [done.clone(), done];
        }
        if output.interval == MeasurementInterval::Both {
            done.push(format!("{prefix}Intended-{name}"));
        }
        [done, vec![format!("{prefix}{name}-FAILED")]]
    };
    kinds::NAMES.iter().map(of).collect()
}

impl Log {
    /// Writes the lines of one client. Before the first line of a label, it writes a header that names the columns.
    fn write(&self, lines: &[u8], labels: u64) {
        let mut file = self.file.lock();
        let new = labels & !file.headed;
        file.headed |= labels;
        if file.error.is_some() {
            return;
        }
        let written = self.write_headers(&mut *file.out, new).and_then(|()| file.out.write_all(lines));
        file.error = written.err();
    }

    fn write_headers(&self, out: &mut dyn Write, labels: u64) -> io::Result<()> {
        for label in self.labels.iter().flatten().enumerate().filter(|(bit, _)| labels >> bit & 1 == 1) {
            for name in label.1 {
                writeln!(out, "{name} latency raw data: op, timestamp(ms), latency(us)")?;
            }
        }
        Ok(())
    }

    /// Notes when the run's clock was 0, unless that is known already.
    fn set_clock(&self, clock: Clock) {
        self.began_nanos.get_or_init(|| {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            (since.as_nanos() as u64).saturating_sub(clock.nanos())
        });
    }

    /// The window. The first call sets the window, from the time `sent` at which its request was sent.
    fn window(&self, sent: u64) -> &Range<u64> {
        self.window.get_or_init(|| {
            // Without a warm-up the window begins at time 0. In this case, the window also contains requests that
            // other threads sent before `sent`.
            let start = if self.skip_nanos == 0 { 0 } else { sent.saturating_add(self.skip_nanos) };
            start..sent.saturating_add(self.skip_nanos).saturating_add(self.length_nanos)
        })
    }
}

/// Lines of one client.
struct ClientLines {
    log: Arc<Log>,
    bytes: Vec<u8>,
    /// The labels that occur in the client's lines, with one bit for each label.
    labels: u64,
    began_nanos: u64,
}

impl ClientLines {
    /// Makes the buffer for the lines of one client in a run with `clients` clients.
    fn new(log: &Arc<Log>, clients: usize) -> ClientLines {
        let began_nanos = log.began_nanos.get().copied().unwrap_or_default();
        let buffer_bytes = (BUFFERS_BYTES / clients.max(1)).clamp(LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES);
        ClientLines { log: log.clone(), bytes: Vec::with_capacity(buffer_bytes), labels: 0, began_nanos }
    }

    fn push(&mut self, kind: Kind, failed: bool, served: u64, nanos: u64) {
        if self.bytes.len() + LINE_BYTES > self.bytes.capacity() {
            self.flush();
        }
        let (kind, failed) = (usize::from(kind.0), usize::from(failed));
        self.labels |= 1 << (2 * kind + failed);
        let millis = (self.began_nanos + served) / 1_000_000;
        for label in &self.log.labels[kind][failed] {
            writeln!(self.bytes, "{label},{millis},{}", nanos / 1000).expect("a Vec takes every line");
        }
    }

    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            self.log.write(&self.bytes, self.labels);
            self.bytes.clear();
            self.labels = 0;
        }
    }
}

impl Drop for ClientLines {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A workload whose clients write a line for each request's result.
struct Noting<'w, W> {
    workload: &'w W,
    log: &'w Arc<Log>,
}

impl<W: Workload> Workload for Noting<'_, W> {
    type Client = NotingClient<W::Client>;

    fn kinds(&self) -> &'static [&'static str] {
        self.workload.kinds()
    }

    fn client(&self, number: usize, clients: usize) -> NotingClient<W::Client> {
        NotingClient {
            client: self.workload.client(number, clients),
            lines: ClientLines::new(self.log, clients),
            kind: kinds::READ,
            began: None,
        }
    }
}

struct NotingClient<C> {
    client: C,
    lines: ClientLines,
    /// The kind of the current request.
    kind: Kind,
    /// When the first request of the current operation was sent.
    began: Option<u64>,
}

impl<C: Client> Client for NotingClient<C> {
    fn begin(&mut self) -> bool {
        self.began = None;
        self.client.begin()
    }

    fn wait(&mut self) -> Wait {
        self.client.wait()
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        let (kind, request) = self.client.request();
        self.kind = kind;
        (kind, request)
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next {
        let (sent, served) = STAMP.get();
        let began = *self.began.get_or_insert(sent);
        let window = self.lines.log.window(began);
        let counts = window.start <= began && served < window.end;
        let lines = &mut self.lines;
        if counts {
            lines.push(self.kind, result.is_err(), served, served.saturating_sub(sent));
        }
        let mut retries = 0;
        let mut note = |kind, nanos, result: Result<Outcome, &'static str>| {
            if counts {
                lines.push(kind, result.is_err(), served, nanos);
            }
            extra.note(kind, nanos, result);
        };
        let next = self.client.served(result, reply, &mut Extra::new(&mut note, &mut retries));
        (0..retries).for_each(|_| extra.retry());
        if let Next::DoneAs(kind) = next
            && counts
        {
            self.lines.push(kind, false, served, served.saturating_sub(began));
        }
        next
    }
}

/// A store that notes when requests are sent and served.
struct Stamping<'s> {
    store: &'s dyn Store,
    log: &'s Log,
}

impl Stamping<'_> {
    fn stamped<'s>(&self, session: Session<'s>, clock: Clock) -> Session<'s> {
        self.log.set_clock(clock);
        match session {
            Session::Blocking(session) => Session::Blocking(Box::new(Stamped { session, clock })),
            Session::Flights(session) => Session::Flights(Box::new(Stamped { session, clock })),
        }
    }
}

impl Store for Stamping<'_> {
    fn settings(&self) -> Vec<Setting> {
        self.store.settings()
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        Ok(self.stamped(self.store.session(clock)?, clock))
    }

    fn loader(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        Ok(self.stamped(self.store.loader(clock)?, clock))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        self.store.is_empty()
    }

    fn counters(&self) -> Vec<Counter> {
        self.store.counters()
    }

    fn used(&self) -> StoreUse {
        self.store.used()
    }

    fn settle(&self) -> Result<(), Failure> {
        self.store.settle()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        // The caller who opened the store also closes it.
        Ok(())
    }
}

/// A session that notes when requests are sent and served.
struct Stamped<S> {
    session: S,
    clock: Clock,
}

impl Blocking for Stamped<Box<dyn Blocking + '_>> {
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure> {
        let sent = self.clock.nanos();
        let result = self.session.call(request, reply);
        STAMP.set((sent, self.clock.nanos()));
        result
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.session.finish()
    }
}

impl Flights for Stamped<Box<dyn Flights + '_>> {
    fn depth(&self) -> usize {
        self.session.depth()
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let started = self.session.start(slot, request);
        if started.is_err() {
            // The client gets the failure at once, so the request is noted as sent and served now.
            let now = self.clock.nanos();
            STAMP.set((now, now));
        }
        started
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        self.session.wait(until, &mut |answer| {
            STAMP.set((answer.sent, answer.served));
            served(answer);
        })
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.session.finish()
    }
}

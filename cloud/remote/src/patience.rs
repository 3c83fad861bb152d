//! How often a request is repeated, and how long its caller waits in all. This module does not know what the
//! request is for.

use crate::counts::Counters;
use crate::failure::{Refused, kind_of};
use crate::last_answer::LastAnswer;
use os::store::is_certain;
use os::sync::atomic::{AtomicBool, Ordering};
use rand::RngExt;
use std::env;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::time::Instant;

/// The lowest expected rate of a connection, in bytes per second. An attempt may take a fixed time plus the time
/// that its bytes take at this rate. With four parts of 8 MiB under way, a line of 64 KiB per second is fast
/// enough.
const SLOWEST_LINE: u64 = 16 << 10;

/// How long a caller waits. The pause between two attempts is a random part of a time that doubles with each
/// attempt, so that many clients whose requests failed together do not repeat them together. An attempt that is
/// under way when the caller's time is up runs to its end, and the caller gets its answer or its error.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time from the first attempt to the start of the last, for a store that has never answered. It is short,
    /// so that a wrong address is reported soon.
    pub first: Duration,
    /// The same time for requests that change nothing, and for removals.
    pub reads: Duration,
    /// The same time for writes. `None` means forever: while the store does not answer, writers wait, and keep as
    /// many bytes in memory as they may.
    pub writes: Option<Duration>,
    /// The time limit of one attempt, without the time for its bytes. It includes the attempts that `object_store`
    /// makes by itself within this one.
    pub attempt: Duration,
    /// The longest time between two pieces of an answer at the first attempt. It doubles with each attempt.
    pub stall: Duration,
    /// The longest pause between the first two attempts.
    pub first_wait: Duration,
    /// The longest pause between any two attempts.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            first: Duration::from_secs(5),
            reads: Duration::from_secs(60),
            writes: None,
            attempt: Duration::from_secs(20),
            stall: Duration::from_secs(3),
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(5),
        }
    }
}

impl Patience {
    /// The default, with the setting of the environment: `LARCH_PATIENCE` is how many seconds a write waits for a
    /// store that does not answer. Without it, a write waits forever.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the variable is not a number of seconds.
    pub fn of_environment() -> io::Result<Patience> {
        let Ok(text) = env::var("LARCH_PATIENCE") else { return Ok(Patience::default()) };
        let seconds = text.parse().map_err(|_| {
            let why = format!("LARCH_PATIENCE={text} is no number of seconds; unset it to wait without end");
            io::Error::new(ErrorKind::InvalidInput, why)
        })?;
        Ok(Patience { writes: Some(Duration::from_secs(seconds)), ..Patience::default() })
    }

    /// How long an attempt that sends or gets `bytes` bytes may take.
    pub fn attempt_with(&self, bytes: u64) -> Duration {
        self.attempt + Duration::from_secs(bytes / SLOWEST_LINE)
    }
}

/// The kind of a request, which decides how long the caller waits, with the most bytes that it sends or gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Changes nothing, or removes what is no longer needed.
    Read(u64),
    /// Writes.
    Write(u64),
}

impl Request {
    fn bytes(self) -> u64 {
        let (Request::Read(bytes) | Request::Write(bytes)) = self;
        bytes
    }
}

/// The patience with one store, and what is known about that store.
#[derive(Debug)]
pub struct Patient {
    pub patience: Patience,
    pub counters: os::sync::Arc<Counters>,
    /// Whether the store has ever fulfilled a request or refused one for good.
    answered: AtomicBool,
}

/// Whether no other attempt can bring another answer. `AlreadyExists` is final for the request, but the caller has
/// to find out who has put the object.
fn is_final(error: &object_store::Error, answer: Option<u16>) -> bool {
    let kind = kind_of(error, answer);
    is_certain(kind) || kind == ErrorKind::AlreadyExists
}

/// The pauses between attempts, each a random part of a time that doubles.
pub struct Pauses {
    wait: Duration,
    longest: Duration,
}

impl Pauses {
    pub fn new(patience: &Patience) -> Pauses {
        Pauses { wait: patience.first_wait, longest: patience.longest_wait }
    }

    /// The pauses after the first `attempts` attempts.
    pub fn of_attempt(patience: &Patience, attempts: usize) -> Pauses {
        let doubled = u32::try_from(attempts.saturating_sub(1)).ok().and_then(|times| 2_u32.checked_pow(times));
        let wait = doubled.and_then(|times| patience.first_wait.checked_mul(times)).unwrap_or(patience.longest_wait);
        Pauses { wait: wait.min(patience.longest_wait), longest: patience.longest_wait }
    }

    /// The next pause.
    pub fn next(&mut self) -> Duration {
        let pause = self.wait.mul_f64(rand::rng().random_range(0.0..1.0));
        self.wait = (2 * self.wait).min(self.longest);
        pause
    }
}

impl Patient {
    pub fn new(patience: Patience, counters: os::sync::Arc<Counters>) -> Patient {
        Patient { patience, counters, answered: AtomicBool::new(false) }
    }

    /// How long after its first attempt a caller may start another one.
    pub fn limit(&self, request: Request) -> Option<Duration> {
        match request {
            // Relaxed: a caller that does not see the new value yet just waits for a different time.
            _ if !self.answered.load(Ordering::Relaxed) => Some(self.patience.first),
            Request::Read(_) => Some(self.patience.reads),
            Request::Write(_) => self.patience.writes,
        }
    }

    fn note_answer(&self) {
        if !self.answered.load(Ordering::Relaxed) {
            self.answered.store(true, Ordering::Relaxed);
        }
    }

    /// Repeats a request until it succeeds, its answer is final, or its time is up. `make` gets the longest allowed
    /// time between two pieces of the answer.
    pub async fn ask<T, F>(&self, request: Request, mut make: impl FnMut(Duration) -> F) -> Result<T, Refused>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let begin = Instant::now();
        let attempt = self.patience.attempt_with(request.bytes());
        let (mut pauses, mut stall) = (Pauses::new(&self.patience), self.patience.stall);
        loop {
            let (outcome, answer) = LastAnswer::of(tokio::time::timeout(attempt, make(stall))).await;
            let error = match outcome {
                Ok(Ok(done)) => {
                    self.note_answer();
                    return Ok(done);
                }
                Ok(Err(error)) if is_final(&error, answer) => {
                    self.note_answer();
                    return Err(Refused { error, answer });
                }
                Ok(Err(error)) => error,
                Err(_) => no_answer(attempt),
            };
            let pause = pauses.next();
            if self.limit(request).is_some_and(|limit| begin.elapsed() + pause >= limit) {
                return Err(Refused { error, answer });
            }
            tokio::time::sleep(pause).await;
            stall = (2 * stall).min(self.patience.attempt);
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The error of a request whose answer, or the next piece of it, did not come within `within`.
pub fn no_answer(within: Duration) -> object_store::Error {
    let why = io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", within.as_secs_f32()));
    object_store::Error::Generic { store: "object store", source: why.into() }
}

//! Clients: state machines that give the next request and receive its result.
//!
//! A client holds what it needs to go on and nothing else (no thread, no stack), so that one thread can drive
//! thousands. It draws everything from its own generator: the same seed and number make the same operations, for any
//! store and any number of threads.

use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::Request;
use crate::store::Outcome;

/// What is measured under a name of its own: an index into [`Workload::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

/// What makes the clients of a run.
pub trait Workload: Sync {
    /// Its clients.
    type Client: Client;

    /// Names of what is measured: `READ`, `UPDATE`, … A [`Kind`] is an index into it.
    fn kinds(&self) -> &'static [&'static str];

    /// Names of what its clients count besides their requests, with [`Extra::count`].
    fn counts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Client `number` of `clients`. Together they do the whole.
    fn client(&self, number: usize, clients: usize) -> Self::Client;
}

/// One simulated user. An operation is one request, or several that follow each other.
pub trait Client: Send {
    /// Goes on to the next operation. `false`: none is left.
    fn begin(&mut self) -> bool;

    /// How long it waits before the first request of the operation that it has just begun: the time that a user thinks
    /// and types. Asked once after each [`Client::begin`] that returned `true`. In an open loop the schedule decides,
    /// and it is not asked.
    fn wait(&mut self) -> Wait {
        Wait::NONE
    }

    /// The request at hand, and what its time counts for. Asked once for each request; what it draws is drawn here or
    /// in [`Client::begin`].
    fn request(&mut self) -> (Kind, Request<'_>);

    /// Takes the result of the request, with what was read.
    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next;
}

/// How long a client waits before an operation, and from which moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// How long, in nanoseconds.
    pub nanos: u64,
    /// From when on.
    pub since: Since,
}

/// A moment that a wait is counted from. For the first operation both are the client's own beginning in the ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// When the client's last request was served.
    Served,
    /// When the client's last request should have been sent: a user who does not wait for the answer thinks on while
    /// the request is carried out. The next operation begins after the answer nevertheless.
    Due,
}

impl Wait {
    /// The operation begins at once.
    pub const NONE: Self = Self { nanos: 0, since: Since::Served };

    /// When the operation is due whose client's last request was due at `due` and served at `served`: never before it
    /// was served.
    pub(crate) fn until(self, due: u64, served: u64) -> u64 {
        let since = match self.since {
            Since::Served => served,
            Since::Due => due,
        };
        since.saturating_add(self.nanos).max(served)
    }
}

/// How a client goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The operation has another request.
    More,
    /// The operation has another request, in this number of nanoseconds: a new attempt.
    Wait(u64),
    /// The operation is over and done.
    Done,
    /// The operation is over and done, and its time as a whole counts for this kind too.
    DoneAs(Kind),
    /// The operation is over and failed.
    Failed,
}

/// Where a client tells what only it can know, besides the times of its requests.
pub struct Extra<'r> {
    note: &'r mut dyn FnMut(Kind, u64, Result<Outcome, &'static str>),
    retries: &'r mut u64,
    /// `None`: what is counted is not kept.
    counts: Option<&'r mut [u64]>,
    written: u64,
}

impl<'r> Extra<'r> {
    /// Notes go to `note`, new attempts are counted in `retries`. What the client counts is not kept.
    pub fn new(note: &'r mut dyn FnMut(Kind, u64, Result<Outcome, &'static str>), retries: &'r mut u64) -> Self {
        Self { note, retries, counts: None, written: 0 }
    }

    /// What the client counts is added to `counts`, which has a place for each name of [`Workload::counts`].
    pub fn counting(self, counts: &'r mut [u64]) -> Self {
        Self { counts: Some(counts), ..self }
    }

    /// Something of `kind` that the client did itself and that took `nanos`: checking a row, say. Failures have a short
    /// name that they are counted by.
    pub fn note(&mut self, kind: Kind, nanos: u64, result: Result<Outcome, &'static str>) {
        (self.note)(kind, nanos, result);
    }

    /// The operation counts `by` of what has this number in [`Workload::counts`]: lines of orders, say.
    pub fn count(&mut self, number: usize, by: u64) {
        if let Some(counts) = &mut self.counts {
            counts[number] += by;
        }
    }

    /// The request has written this number of rows, which count with those that are read.
    pub fn wrote(&mut self, rows: u64) {
        self.written += rows;
    }

    /// The rows of [`Extra::wrote`].
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The client makes the same request again.
    pub fn retry(&mut self) {
        *self.retries += 1;
    }
}

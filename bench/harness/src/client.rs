//! Clients are state machines that give the next request and receive its result.
//!
//! A client holds only the state that it needs to go on. It holds no thread and no stack, so one thread can drive
//! thousands of clients. A client draws everything from its own generator: the same seed and client number make the
//! same operations, for any store and any number of threads.

use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::Request;
use crate::store::Outcome;

/// A kind of request, which is measured under its own name. A kind is an index into [`Workload::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

/// A source of the clients of a run.
pub trait Workload: Sync {
    /// The type of its clients.
    type Client: Client;

    /// Names of what is measured: `READ`, `UPDATE`, … A [`Kind`] is an index into this list.
    fn kinds(&self) -> &'static [&'static str];

    /// The names of what the clients count with [`Extra::count`], in addition to their requests.
    fn counts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Makes client `number` of `clients`. Together the clients do all operations of the workload.
    fn client(&self, number: usize, clients: usize) -> Self::Client;
}

/// One simulated user. An operation is one request, or several that follow each other.
pub trait Client: Send {
    /// Goes on to the next operation. Returns `false` if no operation is left.
    fn begin(&mut self) -> bool;

    /// How long the client waits before the first request of the operation that it has just begun. A wait is the
    /// time that a user thinks and types. This method is called once after each [`Client::begin`] that returned
    /// `true`. In an open loop, this method is not called, because the schedule decides when an operation begins.
    fn wait(&mut self) -> Wait {
        Wait::NONE
    }

    /// The current request, and the kind under which the time of this request is counted. It is asked once for each
    /// request. All random values of the request are drawn here or in [`Client::begin`].
    fn request(&mut self) -> (Kind, Request<'_>);

    /// Takes the result of the request, and the rows that were read.
    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next;
}

/// How long a client waits before an operation, and from which moment the wait is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The length, in nanoseconds.
    pub nanos: u64,
    /// The moment from which the wait is counted.
    pub since: Since,
}

/// The moment from which a wait is counted. Before the client's first operation, no request was served or due. So
/// the wait is then counted from the client's own beginning in the ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// When the client's last request was served.
    Served,
    /// When the client's last request should have been sent. With this choice, a client is like a user who goes on
    /// thinking while the request is carried out. But the next operation never begins before the answer.
    Due,
}

impl Wait {
    /// The operation begins at once.
    pub const NONE: Self = Self { nanos: 0, since: Since::Served };

    /// When the next operation is due, if the client's last request was due at `due` and served at `served`. It is
    /// never due before `served`.
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
    /// The operation has another request, which is a new attempt. The attempt is made after the given number of
    /// nanoseconds.
    Wait(u64),
    /// The operation is over and done.
    Done,
    /// The operation is done, and its time as a whole is counted for this kind, in addition to the times of its
    /// requests.
    DoneAs(Kind),
    /// The operation is over and failed.
    Failed,
}

/// Through this value, a client reports what only the client can know. The times of its requests are measured
/// without the client's help.
pub struct Extra<'r> {
    note: &'r mut dyn FnMut(Kind, u64, Result<Outcome, &'static str>),
    retries: &'r mut u64,
    /// `None` if the client's counts are not kept.
    counts: Option<&'r mut [u64]>,
    written: u64,
}

impl<'r> Extra<'r> {
    /// Passes notes to `note`, and counts new attempts in `retries`. What the client counts is not kept.
    pub fn new(note: &'r mut dyn FnMut(Kind, u64, Result<Outcome, &'static str>), retries: &'r mut u64) -> Self {
        Self { note, retries, counts: None, written: 0 }
    }

    /// The client's counts are added to `counts`, which has a place for each name of [`Workload::counts`].
    pub fn counting(self, counts: &'r mut [u64]) -> Self {
        Self { counts: Some(counts), ..self }
    }

    /// Notes that the client itself did something of `kind`, for example checked a row, and that this took `nanos`.
    /// Failures are counted by a short name.
    pub fn note(&mut self, kind: Kind, nanos: u64, result: Result<Outcome, &'static str>) {
        (self.note)(kind, nanos, result);
    }

    /// Adds `by` to a count, for example to the count of order lines. `number` is the place of its name in
    /// [`Workload::counts`].
    pub fn count(&mut self, number: usize, by: u64) {
        if let Some(counts) = &mut self.counts {
            counts[number] += by;
        }
    }

    /// Reports that the request has written `rows` rows. These rows are added to the rows that were read.
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

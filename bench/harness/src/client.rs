//! Clients are state machines that give the next request and receive its result.
//!
//! A client holds only the state that it needs to go on. It holds no thread and no stack, so one thread can drive
//! thousands of clients. A client draws all random values from its own generator: the same seed and client number
//! make the same operations, for any store and any number of threads.

use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::Request;
use crate::store::Outcome;

/// A kind of request, which is measured under its own name. A kind is an index into [`Workload::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

/// Makes the clients of a run.
pub trait Workload: Sync {
    /// The type of its clients.
    type Client: Client;

    /// Names of what is measured: `READ`, `UPDATE`, … A [`Kind`] is an index into this list.
    fn kinds(&self) -> &'static [&'static str];

    /// The names of the counts that clients keep with [`Extra::count`], besides their requests.
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

    /// How long the client waits before the first request of the operation that it has just begun, like a user who
    /// thinks and types. Called once after each [`Client::begin`] that returned `true`, but not in an open loop,
    /// where the schedule decides when an operation begins.
    fn wait(&mut self) -> Wait {
        Wait::NONE
    }

    /// The current request, and the kind under which its time is counted. Called once for each request. All random
    /// values of the request are drawn here or in [`Client::begin`].
    fn request(&mut self) -> (Kind, Request<'_>);

    /// Takes the result of the request and the rows that were read, and says how the client goes on.
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

/// The moment from which a wait is counted. The wait before a client's first operation is counted from the client's
/// start in the ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// When the client's last request was served.
    Served,
    /// When the client's last request was due, as for a user who goes on thinking while the request is carried out.
    /// The next operation still never begins before the answer.
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
    /// The operation has another request: a retry, which is sent after the given number of nanoseconds.
    Wait(u64),
    /// The operation is over and has succeeded.
    Done,
    /// The operation has succeeded, and its total time is counted for this kind, in addition to the times of its
    /// requests.
    DoneAs(Kind),
    /// The operation is over and has failed.
    Failed,
}

/// Lets a client report what only it can know. The times of its requests are measured without its help.
pub struct Extra<'r> {
    note: &'r mut dyn FnMut(Kind, u64, Result<Outcome, &'static str>),
    retries: &'r mut u64,
    /// `None` if the client's counts are not kept.
    counts: Option<&'r mut [u64]>,
    written: u64,
}

impl<'r> Extra<'r> {
    /// Passes notes to `note`, and counts retries in `retries`. The client's counts are dropped, unless
    /// [`Extra::counting`] says where to keep them.
    pub fn new(note: &'r mut dyn FnMut(Kind, u64, Result<Outcome, &'static str>), retries: &'r mut u64) -> Self {
        Self { note, retries, counts: None, written: 0 }
    }

    /// Adds the client's counts to `counts`, which has an element for each name of [`Workload::counts`].
    pub fn counting(self, counts: &'r mut [u64]) -> Self {
        Self { counts: Some(counts), ..self }
    }

    /// Records under `kind` that the client itself did something that took `nanos`, for example checked a row. A
    /// failure is given as a short name, under which it is counted.
    pub fn note(&mut self, kind: Kind, nanos: u64, result: Result<Outcome, &'static str>) {
        (self.note)(kind, nanos, result);
    }

    /// Adds `by` to a count, for example to the count of order lines. `number` is the index of its name in
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

    /// The number of rows reported to [`Extra::wrote`].
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Reports that the client makes the same request again.
    pub fn retry(&mut self) {
        *self.retries += 1;
    }
}

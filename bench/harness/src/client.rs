//! Clients: state machines that give the next request and receive its result.
//!
//! A client holds what it needs to go on and nothing else (no thread, no stack), so that one thread can drive thousands. It
//! draws everything from its own generator: the same seed and number make the same operations, for any store and any number
//! of threads.

use crate::reply::Reply;
use crate::request::Request;
use crate::store::{Failure, Outcome};

/// What is measured under a name of its own: an index into [`Workload::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

/// What makes the clients of a run.
pub trait Workload: Sync {
    /// Its clients.
    type Client: Client;

    /// Names of what is measured: `READ`, `UPDATE`, … A [`Kind`] is an index into it.
    fn kinds(&self) -> &'static [&'static str];

    /// Client `number` of `clients`. Together they do the whole.
    fn client(&self, number: usize, clients: usize) -> Self::Client;
}

/// One simulated user. An operation is one request, or several that follow each other.
pub trait Client: Send {
    /// Goes on to the next operation. `false`: there is none left.
    fn begin(&mut self) -> bool;

    /// The request at hand, and what its time counts for. Asked once for each request; what it draws is drawn here or in
    /// [`Client::begin`].
    fn request(&mut self) -> (Kind, Request<'_>);

    /// Takes the result of the request, with what was read.
    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next;
}

/// How a client goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The operation has another request.
    More,
    /// The operation has another request, in so many nanoseconds: a new attempt.
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
    written: u64,
}

impl<'r> Extra<'r> {
    /// Notes go to `note`, new attempts are counted in `retries`.
    pub fn new(note: &'r mut dyn FnMut(Kind, u64, Result<Outcome, &'static str>), retries: &'r mut u64) -> Self {
        Self { note, retries, written: 0 }
    }

    /// Something of `kind` that the client did itself and that took `nanos`: checking a row, say. Failures have a short
    /// name that they are counted by.
    pub fn note(&mut self, kind: Kind, nanos: u64, result: Result<Outcome, &'static str>) {
        (self.note)(kind, nanos, result);
    }

    /// The request has written so many rows, which count with those that are read.
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

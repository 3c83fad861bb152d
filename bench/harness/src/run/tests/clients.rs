//! Workloads and stores for tests.

use super::*;

/// Clients that each read keys of their own, so many times.
pub(super) struct Reads {
    /// Operations of each client.
    pub(super) each: u64,
    /// Requests of an operation.
    pub(super) requests: u64,
}

pub(super) struct Reader {
    left: u64,
    requests: u64,
    request: u64,
    state: u64,
    key: [u8; 8],
}

impl Workload for Reads {
    type Client = Reader;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ", "WHOLE"]
    }

    fn client(&self, number: usize, _: usize) -> Reader {
        Reader { left: self.each, requests: self.requests, request: 0, state: number as u64, key: [0; 8] }
    }
}

impl Client for Reader {
    fn begin(&mut self) -> bool {
        self.request = 0;
        self.left = self.left.wrapping_sub(1);
        self.left != u64::MAX
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.key = self.state.to_be_bytes();
        (Kind(0), Request::Read { key: &self.key, fields: Fields::All })
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, _: &Reply, _: &mut Extra<'_>) -> Next {
        self.request += 1;
        match result {
            Err(_) => Next::Failed,
            Ok(_) if self.request < self.requests => Next::More,
            Ok(_) if self.requests > 1 => Next::DoneAs(Kind(1)),
            Ok(_) => Next::Done,
        }
    }
}

/// A store whose sessions do what a function says.
pub(super) struct Answering<F>(pub(super) F);

impl<F: Fn(&Request<'_>) -> Result<Outcome, Failure> + Send + Sync> Store for Answering<F> {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Answers(&self.0))))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

struct Answers<'s, F>(&'s F);

impl<F: Fn(&Request<'_>) -> Result<Outcome, Failure>> Blocking for Answers<'_, F> {
    fn call(&mut self, request: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        (self.0)(request)
    }
}

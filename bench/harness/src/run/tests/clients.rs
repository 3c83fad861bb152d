//! Workloads and stores for tests.

use super::*;

/// Clients that read their own keys. Each client makes a given number of operations.
pub(super) struct Reads {
    /// The number of operations of each client.
    pub(super) each: u64,
    /// The number of requests in an operation.
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

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
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

/// Clients with one operation each. A client repeats its operation until it succeeds. A function of the client's
/// number gives the time between attempts.
pub(super) struct Stubborn {
    pub(super) wait_nanos: fn(usize) -> u64,
}

pub(super) struct Trier {
    wait_nanos: u64,
    key: [u8; 8],
    begun: bool,
}

impl Workload for Stubborn {
    type Client = Trier;

    fn kinds(&self) -> &'static [&'static str] {
        &["TRY"]
    }

    fn client(&self, number: usize, _: usize) -> Trier {
        Trier { wait_nanos: (self.wait_nanos)(number), key: (number as u64).to_be_bytes(), begun: false }
    }
}

impl Client for Trier {
    fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.begun, true)
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(0), Request::Read { key: &self.key, fields: Fields::All })
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, _: &Reply, extra: &mut Extra<'_>) -> Next {
        match result {
            Ok(_) => Next::Done,
            Err(_) => {
                extra.retry();
                Next::Wait(self.wait_nanos)
            }
        }
    }
}

/// A store that opens the given number of sessions, and refuses every session after them.
pub(super) struct Refusing(pub(super) AtomicU64);

impl Store for Refusing {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => Ok(Session::Blocking(Box::new(Answers(&|_: &Request<'_>| Ok(Outcome::Ok))))),
            Err(_) => Err(Failure::session("refused", "there are too many clients already")),
        }
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A store that counts requests.
pub(super) struct Counting(pub(super) AtomicU64);

impl Store for Counting {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Counts(&self.0))))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        vec![Counter::of("page reads", self.0.load(Ordering::SeqCst)), Counter::now("memory", 7)]
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

struct Counts<'s>(&'s AtomicU64);

impl Blocking for Counts<'_> {
    fn call(&mut self, _: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::Ok)
    }
}

/// A store that has many requests under way, and answers them in another order than it takes them.
pub(super) struct Shuffling<F> {
    pub(super) depth: usize,
    pub(super) answer: F,
}

impl<F: Fn(&[u8]) -> Result<Outcome, Failure> + Send + Sync> Store for Shuffling<F> {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let (reply, under_way) = (Reply::new(), Vec::with_capacity(self.depth));
        Ok(Session::Flights(Box::new(Shuffles { store: self, clock, reply, under_way, state: 1 })))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

struct Shuffles<'s, F> {
    store: &'s Shuffling<F>,
    clock: Clock,
    reply: Reply,
    /// The slot and the key of a request, and the time when the request was sent.
    under_way: Vec<(u32, u64, Vec<u8>)>,
    state: u64,
}

impl<F: Fn(&[u8]) -> Result<Outcome, Failure>> Flights for Shuffles<'_, F> {
    fn depth(&self) -> usize {
        self.store.depth
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let Request::Read { key, .. } = request else { panic!("only reads") };
        assert!((slot as usize) < self.store.depth, "slot {slot} of {}", self.store.depth);
        assert!(self.under_way.iter().all(|(taken, ..)| *taken != slot), "slot {slot} is taken");
        self.under_way.push((slot, self.clock.nanos(), key.to_vec()));
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        if self.under_way.is_empty() {
            let left = until.expect("there is something to wait for").saturating_sub(self.clock.nanos());
            std::thread::park_timeout(Duration::from_nanos(left));
        }
        let mut draw = |below: usize| {
            self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.state >> 33) as usize % below
        };
        let count = if self.under_way.is_empty() { 0 } else { 1 + draw(self.under_way.len()) };
        for _ in 0..count {
            let (slot, sent, key) = self.under_way.swap_remove(draw(self.under_way.len()));
            let result = (self.store.answer)(&key);
            served(Served { slot, sent, served: self.clock.nanos(), result, reply: &self.reply });
        }
        Ok(())
    }
}

/// A store whose loaders gather inserts. A loader needs `finish_nanos` to write the gathered rows.
pub(super) struct Gathering {
    pub(super) fails: bool,
    pub(super) finish_nanos: u64,
    pub(super) finished: AtomicU64,
}

impl Store for Gathering {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Err(Failure::session("refused", "there are only loaders"))
    }

    fn loader(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Gathers(self, clock))))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

struct Gathers<'s>(&'s Gathering, Clock);

impl Blocking for Gathers<'_> {
    fn call(&mut self, _: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        Ok(Outcome::Batched)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let done = self.1.nanos() + self.0.finish_nanos;
        while self.1.nanos() < done {
            std::hint::spin_loop();
        }
        self.0.finished.fetch_add(1, Ordering::SeqCst);
        if self.0.fails { Err(Failure::session("io", "the disk is full")) } else { Ok(()) }
    }
}

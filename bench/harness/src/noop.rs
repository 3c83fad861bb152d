//! A store that does nothing, which shows how fast clients can be and what they cost.

use crate::clock::Clock;
use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::{Request, Table};
use crate::store::{Blocking, Counter, Flights, Outcome, Served, Session, Setting, Store, StoreUse};
use crate::target::{Opening, Scheme, Target};
use std::hint::black_box;
use std::time::Duration;

/// The scheme `noop:`: a store that accepts every request and holds nothing.
pub const SCHEME: Scheme = Scheme {
    name: "noop",
    form: "noop:",
    about: "does nothing: what the client costs by itself",
    options: &[(
        "flights",
        "requests under way on each thread, 0: one, and each client is a thread: as many as there are clients",
    )],
    networked: false,
    open,
};

fn open(target: &Target, _: &Table, _: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let depth = options.number("flights", u64::from(u32::MAX))?;
    options.finish()?;
    Ok(Box::new(match depth {
        0 => Noop::waiting(),
        depth => Noop::flying(usize::try_from(depth).unwrap_or(usize::MAX)),
    }))
}

/// A store that is always empty, and answers that every request succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Noop {
    /// The most requests that a session can have under way. `None` if its calls wait, although they have nothing to
    /// wait for.
    depth: Option<usize>,
}

impl Noop {
    /// A store whose calls wait, so that each client needs a thread.
    pub fn waiting() -> Self {
        Self { depth: None }
    }

    /// A store whose sessions have `depth` requests under way, so that a thread can drive any number of clients.
    pub fn flying(depth: usize) -> Self {
        Self { depth: Some(depth) }
    }
}

impl Store for Noop {
    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("engine", "none: requests are made and forgotten")]
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        Ok(match self.depth {
            None => Session::Blocking(Box::new(Forget)),
            Some(depth) => {
                Session::Flights(Box::new(Flying { clock, depth, answered: Vec::new(), reply: Reply::new() }))
            }
        })
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

struct Forget;

impl Blocking for Forget {
    fn call(&mut self, request: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        // Without `black_box`, the compiler would remove the work that made the request, because nothing uses the
        // request.
        black_box(request);
        Ok(Outcome::Ok)
    }
}

/// A session that answers each request when it is started. The next wait returns the answer.
struct Flying {
    clock: Clock,
    depth: usize,
    /// The slot of each answered request, when it was sent, and when it was answered.
    answered: Vec<(u32, u64, u64)>,
    reply: Reply,
}

impl Flights for Flying {
    fn depth(&self) -> usize {
        self.depth
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let sent = self.clock.nanos();
        black_box(request);
        self.answered.push((slot, sent, self.clock.nanos()));
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        if let (true, Some(until)) = (self.answered.is_empty(), until) {
            sleep(Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
        }
        for (slot, sent, at) in self.answered.drain(..) {
            served(Served { slot, sent, served: at, result: Ok(Outcome::Ok), reply: &self.reply });
        }
        Ok(())
    }
}

#[allow(clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]
fn sleep(time: Duration) {
    std::thread::park_timeout(time);
}

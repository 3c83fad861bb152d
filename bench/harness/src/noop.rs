//! The store that does nothing: it shows what a client can do at most, and what it costs.

use crate::clock::Clock;
use crate::reply::Reply;
use crate::request::{Request, Table};
use crate::store::{Blocking, Counter, Failure, Outcome, Session, Setting, Store};
use crate::target::{Opening, Scheme, Target};
use std::hint::black_box;

/// `noop:`, which takes everything and has nothing.
pub const SCHEME: Scheme = Scheme {
    name: "noop",
    form: "noop:",
    about: "does nothing: what the client costs by itself",
    options: &[],
    networked: false,
    open,
};

fn open(target: &Target, _: &Table, _: Opening) -> Result<Box<dyn Store>, Failure> {
    target.options()?.finish()?;
    Ok(Box::new(Noop))
}

/// A store that is always empty, and answers that all is well.
#[derive(Debug)]
pub struct Noop;

impl Store for Noop {
    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("engine", "none: requests are made and forgotten")]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Forget)))
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

struct Forget;

impl Blocking for Forget {
    fn call(&mut self, request: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        // The compiler may not leave out what nobody looks at.
        black_box(request);
        Ok(Outcome::Ok)
    }
}

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the machine's threads are tested")]

mod clients;
mod closed;

use super::*;
use crate::noop::Noop;
use crate::reply::Reply;
use crate::request::{Fields, Request};
use crate::store::{Blocking, Outcome, Setting};
use crate::{Client, Extra, Kind, Next};
use clients::*;
use std::sync::Mutex;

/// Runs `workload` on `store`; nobody watches, nobody stops it.
fn run_quietly<W: Workload>(store: &dyn Store, workload: &W, plan: &Plan) -> Result<Measured, RunError> {
    run(store, workload, plan, &AtomicBool::new(false), &mut |_| {})
}

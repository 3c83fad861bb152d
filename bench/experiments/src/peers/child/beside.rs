//! What a second thread of a peer does during a measurement: scans, a compaction, an index build, or a change of
//! the cache size.

#![allow(clippy::disallowed_methods, reason = "a benchmark's threads and time are the machine's")]

use crate::peers::orders::{Beside, Shrunk, WorkDone};
use harness::{Clock, Failure, Fields, Reply, Request, Session, Store, Strings};
use os::Clock as _;
use os::real::RealClock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval between checks.
const LOOK: Duration = Duration::from_millis(1);

/// How long to watch the process's memory after the cache was shrunk.
const FOLLOWS: Duration = Duration::from_secs(1);

/// A key after those of all rows.
const LAST_KEY: &[u8] = b"zzzz";

/// Puts a row, so that a compaction has something to do.
pub fn disturb(store: &dyn Store) -> Result<(), String> {
    let mut record = Strings::new();
    record.push(b"newer than all others");
    let request = Request::Insert { key: LAST_KEY, record: &record };
    let mut reply = Reply::new();
    let mut session = blocking(store)?;
    session.call(&request, &mut reply).and_then(|_| session.finish()).map_err(|failure| failure.to_string())
}

/// Does `what` on `store`. Scans run until `is_over` is set. The other kinds decide when the window ends, by
/// setting `stop`: `after` the end of a compaction, or at the end of an index build. So does any error.
pub fn run(
    store: &dyn Store,
    what: Beside,
    after: Duration,
    is_over: &AtomicBool,
    stop: &AtomicBool,
) -> Result<WorkDone, String> {
    let done = match what {
        Beside::Scan => scan(store, is_over),
        Beside::Compaction => compact(store, after, is_over),
        Beside::IndexBuild => build_index(store, is_over),
    };
    if done.is_err() || what != Beside::Scan {
        stop.store(true, Ordering::Relaxed);
    }
    done
}

fn scan(store: &dyn Store, is_over: &AtomicBool) -> Result<WorkDone, String> {
    let clock = Clock::start();
    let mut session = blocking(store)?;
    let mut reply = Reply::new();
    let mut rows = 0;
    while !is_over.load(Ordering::Relaxed) {
        reply.clear();
        let request = Request::Scan { start: &[], rows: u64::MAX, fields: Fields::All };
        session.call(&request, &mut reply).map_err(|failure| failure.to_string())?;
        if reply.rows() == 0 {
            return Err("a scan beside it met no row".to_owned());
        }
        rows += reply.rows();
    }
    Ok(WorkDone { rows, nanos: clock.nanos() })
}

fn compact(store: &dyn Store, after: Duration, is_over: &AtomicBool) -> Result<WorkDone, String> {
    let clock = Clock::start();
    store.settle().map_err(|failure: Failure| failure.to_string())?;
    let done = WorkDone { rows: 0, nanos: clock.nanos() };
    if is_over.load(Ordering::Relaxed) {
        return Err("the measurement ended before the compaction".to_owned());
    }
    RealClock::new().sleep(after);
    Ok(done)
}

fn build_index(store: &dyn Store, is_over: &AtomicBool) -> Result<WorkDone, String> {
    let clock = Clock::start();
    let built = store.build_index().map_err(|failure| failure.to_string())?;
    let rows = built.ok_or("the store has no secondary indexes")?;
    let done = WorkDone { rows, nanos: clock.nanos() };
    if is_over.load(Ordering::Relaxed) {
        return Err("the measurement ended before the index was built".to_owned());
    }
    Ok(done)
}

/// After `from_start`, in the middle of a load, sets the size of the cache to `cache_bytes` and watches the effect.
pub fn shrink(store: &dyn Store, cache_bytes: u64, from_start: Duration) -> Result<Shrunk, String> {
    RealClock::new().sleep(from_start);
    let used = || {
        let counters = store.counters();
        let counter = counters.into_iter().find(|counter| counter.name == "cache bytes");
        counter.map(|counter| counter.value).ok_or("the store does not report what its cache uses")
    };
    let resident = || os::process::memory().resident_bytes.ok_or("the system does not report the memory of a process");
    let (used_before, resident_before) = (used()?, resident()?);
    if used_before <= cache_bytes {
        return Err(format!(
            "the cache holds {used_before} bytes, no more than the new budget: there is nothing to see"
        ));
    }
    let clock = Clock::start();
    if !store.set_cache_bytes(cache_bytes).map_err(|failure| failure.to_string())? {
        return Err("the store cannot change its cache while it is in use".to_owned());
    }
    let mut nanos = None;
    while clock.nanos() < FOLLOWS.as_nanos() as u64 {
        if nanos.is_none() && used()? <= cache_bytes {
            nanos = Some(clock.nanos());
        }
        RealClock::new().sleep(LOOK);
    }
    Ok(Shrunk { used_before, nanos, resident_before, resident_after: resident()?, cache_bytes })
}

fn blocking(store: &dyn Store) -> Result<Box<dyn harness::Blocking + '_>, String> {
    match store.session(Clock::start()).map_err(|failure| failure.to_string())? {
        Session::Blocking(session) => Ok(session),
        Session::Flights(_) => Err("this is for stores whose calls wait".to_owned()),
    }
}

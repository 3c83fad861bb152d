//! Tests that a stall of the store is counted for every operation that should have been served during the stall.

use super::*;
use std::time::Instant;

/// The store stalls once for 100 ms. At all other times, a request takes 1 ms, so the store serves a thousand
/// requests per second.
#[test]
fn an_open_loop_reports_a_stall_as_its_users_would() {
    let first = std::sync::OnceLock::new();
    let stalled = AtomicBool::new(false);
    let store = Answering(|_: &Request<'_>| {
        let began = Instant::now();
        let half_way = *first.get_or_init(|| began) + Duration::from_secs(5);
        let stalls = began >= half_way && !stalled.swap(true, Ordering::SeqCst);
        let service = Duration::from_millis(if stalls { 100 } else { 1 });
        // If a thread waits in the kernel, it may wake up too late, and the store would then serve fewer requests
        // than intended. So the thread sleeps for most of the time and spins for the rest.
        std::thread::park_timeout(service.saturating_sub(Duration::from_micros(300)));
        while began.elapsed() < service {
            std::hint::spin_loop();
        }
        Ok(Outcome::Ok)
    });
    let plan = Plan {
        pace: Pace::Open { per_second: 800.0 },
        length: Length::Time(Duration::from_secs(10)),
        ..Plan::default()
    };
    let measured = run_quietly(&store, &Reads { each: u64::MAX, requests: 1 }, &plan).expect("runs");
    let read = measured.kind("READ").expect("reads");
    let response = read.response.as_ref().expect("an open loop has response times");
    // Of 8,000 operations, one was in the store during the stall. 80 more operations should have begun during the
    // stall, because the stall's 100 ms are 1 % of the run's 10 s. An operation that was due t after the stall began
    // is served 100 ms + 0.8 t after the stall began. So each of the 80 operations waits at least 80 ms.
    let (service, response) = (read.service.quantile(0.999), response.quantile(0.999));
    assert!(response >= 80_000_000, "p99.9 of responses is {response} ns, of services {service} ns");
    assert!(service < 80_000_000, "p99.9 of services is {service} ns");
    assert!(read.service.max() >= 100_000_000);
}

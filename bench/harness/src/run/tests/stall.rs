//! A stall of the store is counted for every operation that should have been served meanwhile.

use super::*;
use std::time::Instant;

/// Stalls once for 100 ms, and takes 1 ms otherwise: a thousand a second.
#[test]
fn an_open_loop_reports_a_stall_as_its_users_would() {
    let first = std::sync::OnceLock::new();
    let stalled = AtomicBool::new(false);
    let store = Answering(|_: &Request<'_>| {
        let began = Instant::now();
        let half_way = *first.get_or_init(|| began) + Duration::from_secs(5);
        let stalls = began >= half_way && !stalled.swap(true, Ordering::SeqCst);
        let service = Duration::from_millis(if stalls { 100 } else { 1 });
        // Waiting may last longer than it should, and then the store has less capacity: wait for most, spin the rest.
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
    // One operation in 8,000 was in the store during the stall. 80 more should have been: those of 100 ms, 1 % of 10 s.
    // One that was due t after it began is served after 100 ms + 0.8 t, so that each of the 80 waits 80 ms or more.
    let (service, response) = (read.service.quantile(0.999), response.quantile(0.999));
    assert!(response >= 80_000_000, "p99.9 of responses is {response} ns, of services {service} ns");
    assert!(service < 80_000_000, "p99.9 of services is {service} ns");
    assert!(read.service.max() >= 100_000_000);
}

use super::*;

#[test]
fn memory_is_read_from_the_line_of_its_name() {
    let status = "Name:\tlarch\nVmPeak:\t  999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
    assert_eq!(bytes_in(status, "VmRSS:"), Some(1 << 20));
    assert_eq!(bytes_in(status, "VmHWM:"), Some(2 << 20));
    assert_eq!(bytes_in(status, "VmSwap:"), None);
    assert_eq!(bytes_in("VmRSS: many kB", "VmRSS:"), None);
}

#[test]
fn what_is_neither_clients_nor_ours_is_the_background() {
    let threads = |flush, new: &[(&str, u64)]| {
        let first = ("7".to_owned(), ("flush".to_owned(), flush));
        let more = new.iter().map(|(id, nanos)| ((*id).to_owned(), ("compact".to_owned(), *nanos)));
        std::iter::once(first).chain(more).collect()
    };
    let before = Snapshot { user_nanos: 1000, gathering_nanos: 10, threads: threads(400, &[]), ..Snapshot::default() };
    let after = Snapshot {
        user_nanos: 3000,
        system_nanos: 500,
        gathering_nanos: 30,
        threads: threads(900, &[("8", 50), ("9", 70)]),
        ..Snapshot::default()
    };
    let clients = Clients { threads: 2, nanos: 1600, ..Clients::default() };
    let cost = Cost::between(&before, &after, clients, 0);
    assert_eq!((cost.user_nanos, cost.system_nanos, cost.gathering_nanos), (2000, 500, 20));
    assert_eq!(cost.background_nanos, 2500 - 1600 - 20);
    assert_eq!(cost.background, BTreeMap::from([("flush".to_owned(), 500), ("compact".to_owned(), 120)]));
}

#[test]
fn a_busy_client_is_warned_of() {
    let cost = Cost { client_nanos: 1_500_000_000, client_threads: 8, ..Cost::default() };
    assert!(cost.warning(1_000_000_000, 2).expect("75 % of two processors").contains("75 %"));
    assert_eq!(cost.warning(1_000_000_000, 8), None);
    let one = Cost { client_threads: 1, client_nanos: 600_000_000, ..Cost::default() };
    assert_eq!(one.warning(1_000_000_000, 64), None);
    assert_eq!(one.warning(0, 64), None);
}

#[test]
fn the_clients_own_share_is_what_the_same_costs_without_a_store_and_what_it_paused() {
    let cost = Cost { client_nanos: 1_000_000, ..Cost::default() };
    assert!((cost.own_share(100.0, 2_000) - 0.2).abs() < 1e-9);
    let paused = Cost { pausing_nanos: 500_000, ..cost.clone() };
    assert!((paused.own_share(100.0, 2_000) - 0.7).abs() < 1e-9);
    assert_eq!(paused.own_nanos(100.0, 2_000), 350.0);
    // The machine was slower when the cost on the store that does nothing was measured.
    assert_eq!((cost.own_nanos(900.0, 2_000), cost.own_share(900.0, 2_000)), (500.0, 1.0));
    assert_eq!(Cost::default().own_share(100.0, 1), 0.0);
}

#[test]
fn the_peak_of_a_window_is_exact_if_it_is_new_and_otherwise_what_was_seen() {
    let at = |resident_bytes, peak_bytes| Snapshot { resident_bytes, peak_bytes, ..Snapshot::default() };
    let peak = |before: &Snapshot, after: &Snapshot, seen| {
        let cost = Cost::between(before, after, Clients::default(), seen);
        (cost.peak_bytes, cost.peak_of_window)
    };
    // The process used 200 bytes before the window, and less in the window.
    assert_eq!(peak(&at(50, 200), &at(60, 200), 80), (80, true));
    assert_eq!(peak(&at(90, 200), &at(60, 200), 80), (90, true));
    assert_eq!(peak(&at(50, 200), &at(60, 210), 80), (210, true));
    // The system reports nothing.
    assert_eq!(peak(&at(0, 0), &at(0, 0), 0), (0, false));
}

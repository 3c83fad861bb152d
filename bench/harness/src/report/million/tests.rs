use super::*;
use crate::store::ServerUse;

fn used(store: StoreUse) -> Used<'static> {
    Used {
        operations: 2_000_000,
        process_nanos: 10_000_000_000,
        own_nanos: Some(4e9),
        store,
        counters: &[],
        disk: (Some(2 << 20), Some(4 << 20)),
        device: (None, Some(8 << 20)),
    }
}

#[test]
fn what_an_embedded_store_costs_is_the_process_without_the_client() {
    let million = Million::used(used(StoreUse::InProcess), Some(7200.0));
    assert_eq!((million.client_cpu_seconds, million.store_cpu_seconds), (Some(2.0), Some(3.0)));
    assert_eq!((million.cpu_seconds, million.money), (Some(5.0), Some(10.0)));
    assert_eq!(million.read_bytes, Some(f64::from(1 << 20)));
    let text = million.text().expect("there were operations");
    assert_eq!(
        text,
        "processors: client 2.00 s, store 3.00 s; disk: read 1.00 MiB, written 2.00 MiB as the system counts for the processes; \
         money for processors: 10.0"
    );
}

#[test]
fn what_a_server_costs_is_counted_beside_the_client() {
    let server = ServerUse { nanos: 6_000_000_000, read_bytes: None, written_bytes: Some(0) };
    let million = Million::used(used(StoreUse::Server(server)), None);
    assert_eq!((million.client_cpu_seconds, million.store_cpu_seconds), (Some(5.0), Some(3.0)));
    assert_eq!((million.cpu_seconds, million.money), (Some(8.0), None));
    assert_eq!((million.read_bytes, million.written_bytes), (None, Some(0.0)));
}

#[test]
fn what_is_not_known_is_not_called_nothing() {
    let million = Million::used(used(StoreUse::Unknown), Some(1.0));
    assert_eq!((million.store_cpu_seconds, million.cpu_seconds, million.money), (None, None, None));
    let text = million.text().expect("there were operations");
    assert_eq!(text, "processors: client 5.00 s, store not known; disk: read not known, written not known");
    let together = Million::used(Used { own_nanos: None, ..used(StoreUse::InProcess) }, None);
    assert!(
        together.text().expect("there were operations").starts_with("5.00 s of processors, client and store together")
    );
    assert_eq!(Million::used(Used { operations: 0, ..used(StoreUse::InProcess) }, Some(1.0)).text(), None);
}

#[test]
fn bytes_are_those_that_the_store_counts_where_it_does() {
    let change = |name: &str, after| Change { name: name.to_owned(), before: 0, after, gauge: false };
    let counters = [change("bytes read", 2 << 30), change("bytes written", 1 << 30), change("log bytes", 1 << 30)];
    let million = Million::used(Used { counters: &counters, ..used(StoreUse::InProcess) }, None);
    assert_eq!((million.read_bytes, million.written_bytes), (Some(f64::from(1 << 30)), Some(f64::from(1 << 30))));
    assert_eq!((million.read_by, million.written_by), (Some(Counts::Store), Some(Counts::Store)));
    assert_eq!(million.device_written_bytes, Some(f64::from(4 << 20)), "the device stands beside it");
    // A server counts its own files, too. Its processes' count is what a store without such a counter has.
    let server = StoreUse::Server(ServerUse { nanos: 0, read_bytes: None, written_bytes: Some(77) });
    let million = Million::used(Used { counters: &counters, ..used(server) }, None);
    assert_eq!((million.written_bytes, million.written_by), (Some(f64::from(1 << 30)), Some(Counts::Store)));
    let of_log = Million::used(Used { counters: &counters[2..], ..used(server) }, None);
    assert_eq!((of_log.written_bytes, of_log.written_by), (Some(38.5), Some(Counts::Processes)), "the log is not all");
}

#[test]
fn a_meter_counts_from_its_start() {
    let meter = Meter::start(StoreUse::InProcess);
    let mut sum = 0_u64;
    // Works until the meter shows more than zero processor time. The system counts processor time in small steps.
    let million = loop {
        sum = (0..100_000).fold(sum, |sum, number| std::hint::black_box(sum.wrapping_mul(31) + number));
        let million = meter.million(1_000_000, StoreUse::InProcess, Some(3600.0));
        if million.cpu_seconds > Some(0.0) {
            break million;
        }
    };
    assert_eq!((million.client_cpu_seconds, million.store_cpu_seconds), (None, None), "they are one process");
    let (money, seconds) = (million.money.expect("there is a price"), million.cpu_seconds.expect("it was seen"));
    assert!((money / seconds - 1.0).abs() < 1e-12, "an hour costs 3600, so a second costs 1: {money} for {seconds}");
}

#[test]
fn money_has_three_digits_that_count() {
    assert_eq!([0.0, 1234.5, 12.345, 0.000_012_345].map(money), ["0", "1234", "12.3", "0.0000123"].map(str::to_owned));
}

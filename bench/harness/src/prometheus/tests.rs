use super::*;
use crate::measured::Counted;
use crate::times::{Tally, Times};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn times(nanos: &[u64]) -> Times {
    let mut tally = Tally::<u64>::new();
    nanos.iter().for_each(|nanos| tally.record(*nanos));
    tally.times()
}

fn interval(nanos: &[u64]) -> Interval {
    let kind = Measure {
        name: "READ".to_owned(),
        service: times(nanos),
        oks: nanos.len() as u64,
        failures: BTreeMap::from([("io".to_owned(), 1)]),
        ..Measure::default()
    };
    Interval {
        operations: nanos.len() as u64,
        client_nanos: 500_000_000,
        kinds: vec![kind],
        counted: Some(Counted { at_nanos: 0, counters: BTreeMap::from([("page reads".to_owned(), 7)]) }),
        ..Interval::default()
    }
}

/// The status line and the body of the answer to a request.
fn asked(prometheus: &Prometheus, request: &str) -> (String, String) {
    let mut connection = TcpStream::connect(prometheus.address()).expect("it listens");
    connection.write_all(format!("{request}\r\nHost: here\r\n\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("it answers and hangs up");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    (head.lines().next().expect("a head has a line").to_owned(), body.to_owned())
}

#[test]
fn what_was_counted_is_shown_as_prometheus_reads_it() {
    let prometheus = Prometheus::serve("0").expect("a port is free");
    let counters = [Counter::of("page reads", 3), Counter::now("cache bytes", 9)];
    prometheus.begin("workload \"a\"", "postgres://me:secret@h/d", &counters);
    prometheus.add(&Interval { told_late: vec![interval(&[3_000])], ..interval(&[900, 1_500, 20_000_000_000]) });
    let (status, body) = asked(&prometheus, "GET /metrics HTTP/1.1");
    assert_eq!(status, "HTTP/1.1 200 OK");
    for line in [
        "larch_bench_run_info{run=\"workload \\\"a\\\"\",target=\"postgres://me:***@h/d\"} 1",
        "larch_bench_operations_total 4",
        "larch_bench_client_cpu_seconds_total 1",
        "larch_bench_requests_done_total{kind=\"READ\"} 4",
        "larch_bench_requests_failed_total{kind=\"READ\",failure=\"io\"} 2",
        "larch_bench_request_seconds_bucket{kind=\"READ\",le=\"0.000001\"} 1",
        "larch_bench_request_seconds_bucket{kind=\"READ\",le=\"0.000002\"} 2",
        "larch_bench_request_seconds_bucket{kind=\"READ\",le=\"0.000005\"} 3",
        "larch_bench_request_seconds_bucket{kind=\"READ\",le=\"10\"} 3",
        "larch_bench_request_seconds_bucket{kind=\"READ\",le=\"+Inf\"} 4",
        "larch_bench_request_seconds_count{kind=\"READ\"} 4",
        "# TYPE larch_bench_store_page_reads_total counter",
        "larch_bench_store_page_reads_total 7",
    ] {
        assert!(body.lines().any(|shown| shown == line), "{line} is not in\n{body}");
    }
    assert!(!body.contains("secret"));
    for family in body.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = family.split(' ').next().expect("it has a name");
        assert_eq!(body.matches(&format!("# TYPE {name} ")).count(), 1, "{name} is declared once");
    }
}

#[test]
fn it_has_one_page() {
    let prometheus = Prometheus::serve("127.0.0.1:0").expect("a port is free");
    assert_eq!(asked(&prometheus, "GET /other HTTP/1.1").0, "HTTP/1.1 404 Not Found");
    assert_eq!(asked(&prometheus, "POST /metrics HTTP/1.1").0, "HTTP/1.1 405 Method Not Allowed");
    let (status, body) = asked(&prometheus, "HEAD /metrics HTTP/1.1");
    assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", ""));
}

#[test]
fn an_address_that_is_taken_is_refused_and_free_after_the_end() {
    let first = Prometheus::serve("127.0.0.1:0").expect("a port is free");
    let address = first.address().to_string();
    let text = Prometheus::serve(&address).err().expect("it is taken").text;
    assert!(text.contains(&address) && text.contains("another program has this address"), "{text}");
    drop(first);
    drop(Prometheus::serve(&address).expect("it is free again"));
    for (bad, why) in [("nowhere", "HOST:PORT"), ("192.0.2.1:9464", "does not have"), ("127.0.0.1:x", "HOST:PORT")] {
        let text = Prometheus::serve(bad).err().expect("it is refused").text;
        assert!(text.contains(bad) && text.contains(why), "{text}");
    }
}

#[test]
fn bounds_are_1_2_and_5_of_each_power() {
    assert_eq!(BOUNDS_NANOS[..4], [1_000, 2_000, 5_000, 10_000]);
    assert_eq!(BOUNDS_NANOS[21], 10_000_000_000);
}

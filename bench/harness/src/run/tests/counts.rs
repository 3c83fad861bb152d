//! The clients' other counts.

use super::edges::wait_for;
use super::*;

/// Clients that read. Each read counts three lines of an order, and every second read counts an error.
struct Orders;

struct Order {
    reads: u64,
}

impl Workload for Orders {
    type Client = Order;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ"]
    }

    fn counts(&self) -> &'static [&'static str] {
        &["lines", "errors", "nothing"]
    }

    fn client(&self, _: usize, _: usize) -> Order {
        Order { reads: 0 }
    }
}

impl Client for Order {
    fn begin(&mut self) -> bool {
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(0), Request::Read { key: b"key", fields: Fields::All })
    }

    fn served(&mut self, _: Result<Outcome, &Failure>, _: &Reply, extra: &mut Extra<'_>) -> Next {
        extra.count(0, 2);
        extra.count(0, 1);
        extra.count(1, self.reads % 2);
        self.reads += 1;
        Next::Done
    }
}

fn noted(names_and_values: [(&str, u64); 3]) -> Vec<Noted> {
    names_and_values.map(|(name, value)| Noted { name: name.to_owned(), value }).to_vec()
}

#[test]
fn counts_are_those_of_operations_of_the_window() {
    let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let calls = AtomicU64::new(0);
    // The first call lasts until the window has begun, and the twelfth call lasts until the window has ended. So
    // ten calls lie inside the window.
    let store = Answering(|_: &Request<'_>| {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => wait_for(&begun),
            11 => wait_for(&ended),
            _ => {}
        }
        Ok(Outcome::Ok)
    });
    let plan = Plan {
        warmup: Duration::from_millis(300),
        length: Length::Time(Duration::from_millis(300)),
        interval: Duration::from_millis(300),
        ..Plan::default()
    };
    let mut watch = |interval: &Interval| {
        let flag = if interval.warming { &begun } else { &ended };
        flag.store(true, Ordering::SeqCst);
    };
    let measured = run(&store, &Orders, &plan, &AtomicBool::new(false), &mut watch).expect("runs");
    check_sums(&measured);
    assert_eq!((measured.operations, measured.warmed, measured.cut), (10, 1, 1));
    assert_eq!(measured.counts, noted([("lines", 30), ("errors", 5), ("nothing", 0)]));
}

#[test]
fn counts_of_all_threads_and_intervals_are_added_up() {
    for store in [Noop::waiting(), Noop::flying(2)] {
        let plan = Plan {
            clients: 6,
            workers: 2,
            warmup: Duration::from_millis(10),
            length: Length::Operations(60_000),
            interval: Duration::from_millis(2),
            ..Plan::default()
        };
        let measured = run_quietly(&store, &Orders, &plan).expect("runs");
        assert_eq!((measured.operations, measured.counts[0].value), (60_000, 180_000), "{store:?}");
        for interval in &measured.intervals {
            assert_eq!(interval.counts[0].value, 3 * interval.operations, "{store:?}: also before the window");
        }
    }
}

#[test]
fn a_workload_that_counts_nothing_has_no_counts() {
    let measured = run_quietly(&Noop::waiting(), &Reads { each: 10, requests: 1 }, &Plan::default()).expect("runs");
    assert_eq!((measured.counts.len(), measured.intervals[0].counts.len()), (0, 0));
}

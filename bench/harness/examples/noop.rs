//! Prints what the request loop itself costs: one client runs operations that are nearly free, on the store that
//! does nothing.
//!
//! ```console
//! $ cargo run --release -p larch-bench-harness --example noop
//! ```

use harness::noop::Noop;
use harness::{
    Client, Extra, Failure, Fields, Kind, Length, Next, Outcome, Pace, Plan, Reply, Request, Times, Workload,
};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

struct Reads;

struct Reader {
    key: [u8; 8],
    state: u64,
}

impl Workload for Reads {
    type Client = Reader;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ"]
    }

    fn client(&self, number: usize, _: usize) -> Reader {
        Reader { key: [0; 8], state: number as u64 }
    }
}

impl Client for Reader {
    fn begin(&mut self) -> bool {
        self.state += 1;
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        self.key = self.state.to_be_bytes();
        (Kind(0), Request::Read { key: &self.key, fields: Fields::All })
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, _: &Reply, _: &mut Extra<'_>) -> Next {
        if result.is_ok() { Next::Done } else { Next::Failed }
    }
}

fn main() {
    let closed = Plan { length: Length::Time(Duration::from_secs(2)), ..Plan::default() };
    for (name, pace, clients) in [
        ("closed loop", Pace::Closed, 1),
        ("open loop, 1 million a second", Pace::Open { per_second: 1e6 }, 1),
        ("open loop, 10,000 a second", Pace::Open { per_second: 1e4 }, 1),
        ("open loop, 10,000 a second, 16 clients", Pace::Open { per_second: 1e4 }, 16),
    ] {
        let plan = Plan { pace, clients, ..closed.clone() };
        let measured = match harness::run(&Noop::waiting(), &Reads, &plan, &AtomicBool::new(false), &mut |_| {}) {
            Ok(measured) => measured,
            Err(error) => {
                eprintln!("{name}: {error}");
                std::process::exit(1);
            }
        };
        let read = measured.kind("READ").expect("there are only reads");
        let waited = read.waited.clone().unwrap_or_default();
        let known =
            |times: &Times, quantile| times.known_quantile(quantile).map_or("-".to_owned(), |it| format!("{it} ns"));
        println!(
            "{name}: {} operations, {:.1} ns of processor time each, service p50 {}; late p50 {}, p99 {}",
            measured.operations,
            measured.cost.client_nanos as f64 / measured.operations as f64,
            known(&read.service, 0.5),
            known(&waited, 0.5),
            known(&waited, 0.99),
        );
    }
}

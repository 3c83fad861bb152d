//! Prints for each built-in workload how many operations its clients can do at most. First the clients run by
//! themselves, and then the harness drives them on a store that does nothing: `cargo run --release -p
//! larch-bench-ycsb --example ceiling`.

use harness::Workload;
use harness::noop_nanos;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use ycsb::{Ceiling, Load, Run, Settings, built_in};

const TIME: Duration = Duration::from_secs(2);
const OPERATIONS: u64 = 5_000_000;

fn main() {
    let settings = |name: &str, more: &[(&str, &str)]| {
        let mut properties = built_in(name).expect("it is built in");
        properties.set("recordcount", "1000000");
        more.iter().for_each(|(name, value)| properties.set(*name, *value));
        Settings::new(&properties, &|_| Err("no files".to_owned())).expect("good values")
    };
    for name in ["a", "b", "c", "d", "e", "f"] {
        let run = Run::new(&settings(name, &[("operationcount", "1000000")]), 1);
        let alone = Ceiling::of(&mut run.client(0, 1), TIME);
        let driven = noop_nanos(&run, 1, None, OPERATIONS, &AtomicBool::new(false)).expect("it is measured");
        println!(
            "workload {name}: {:.2} M operations per CPU-second, driven {:.2} M",
            alone.operations_per_second() / 1e6,
            1e3 / driven
        );
    }
    // With a billion records, both runs end before all records are loaded.
    let load = Load::new(&settings("a", &[("recordcount", "1000000000"), ("requestdistribution", "uniform")]), 1);
    let alone = Ceiling::of(&mut load.client(0, 1), TIME);
    let driven = noop_nanos(&load, 1, None, OPERATIONS, &AtomicBool::new(false)).expect("it is measured");
    let bytes = alone.value_bytes as f64 / alone.operations as f64;
    println!(
        "load: {:.2} GB of values per CPU-second, driven {:.2} GB",
        alone.value_bytes_per_second() / 1e9,
        bytes / driven
    );
}

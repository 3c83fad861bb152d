//! Prints what the clients of each built-in workload can do at most: `cargo run --release --example ceiling`.

use harness::Workload;
use std::time::Duration;
use ycsb::{Ceiling, Load, Run, Settings, built_in};

fn main() {
    let time = Duration::from_secs(1);
    for name in ["a", "b", "c", "d", "e", "f"] {
        let mut properties = built_in(name).expect("it is built in");
        properties.set("recordcount", "1000000");
        properties.set("operationcount", "100000000");
        let settings = Settings::new(&properties, &|_| Err("no files".to_owned())).expect("good values");
        let run = Ceiling::of(&mut Run::new(&settings, 1).client(0, 1), time);
        println!("workload {name}: {:.2} M operations per CPU-second", run.operations_per_second() / 1e6);
        if name == "a" {
            properties.set("recordcount", "1000000000");
            properties.set("requestdistribution", "uniform");
            let settings = Settings::new(&properties, &|_| Err("no files".to_owned())).expect("good values");
            let load = Ceiling::of(&mut Load::new(&settings, 1).client(0, 1), time);
            println!("load: {:.2} GB of values per CPU-second", load.value_bytes_per_second() / 1e9);
        }
    }
}

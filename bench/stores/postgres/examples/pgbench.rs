//! Point reads beside pgbench: `cargo run --release -p larch-store-postgres --example pgbench [-- SECONDS REPEATS]`.

use std::time::Duration;
use store_postgres::comparison::{self, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let mut options = Options::default();
    if let Some(seconds) = numbers.next() {
        options.run = Duration::from_secs(seconds?.into());
    }
    if let Some(repeats) = numbers.next() {
        options.repeats = repeats?;
    }
    let comparison = comparison::run(&options, |line| eprintln!("{line}"))?;
    print!("{comparison}");
    Ok(())
}

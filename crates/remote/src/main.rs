//! The `larch` binary with support for databases at URLs: `s3://bucket/prefix`, `gs://…`, `az://…` or
//! `file:///directory`.
//!
//! Settings come from environment variables. `LARCH_LOGS` is a directory for logs. `LARCH_TIER` is a directory for
//! blocks, which take at most `LARCH_TIER_BYTES`. `LARCH_SCRATCH` is a directory for the data that an import sorts.
//! `LARCH_PATIENCE` is how many seconds a write waits for a store that does not answer. `LARCH_PRICE` has the
//! prices of a thousand puts, of a thousand gets and of a gigabyte read, separated by commas; with it, the command
//! finally prints how many requests it made and what they cost.

use larch_cli::{BranchFound, Branched, Branching, Stored};
use larch_remote::{Connection, Counts, Near, Place, Price, RemoteStore, is_url};
use os::sync::{Arc, Mutex, OnceLock};
use std::env;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

/// The stores that the command uses: two, if it copies from one store to another.
static STORES: OnceLock<Mutex<Vec<Arc<RemoteStore>>>> = OnceLock::new();

/// The prices in the environment.
static PRICE: OnceLock<Price> = OnceLock::new();

fn main() -> ExitCode {
    let price = match price() {
        Ok(price) => price,
        Err(error) => {
            eprintln!("larch: {error}");
            return ExitCode::from(2);
        }
    };
    if let Some(price) = price {
        PRICE.get_or_init(|| price);
    }
    let machine_of: larch_cli::MachineOf = |dir: &Path, what: Stored| {
        let url = dir.to_str().filter(|text| is_url(text))?;
        let near = match what {
            Stored::Database => Near::of_environment(),
            // A backup is verified against what is really in the store, without copies of blocks on this machine.
            Stored::Backups => Ok(Near::default()),
        };
        Some(near.and_then(|near| connect(url, &near)).map(|connection| connection.machine))
    };
    let branching = Branching { branch, branches, drop_database };
    let additions = larch_cli::Additions {
        machine_of: Some(machine_of),
        branching: Some(branching),
        ..larch_cli::Additions::default()
    };
    let ended = larch_cli::main_with(larch_cli::STORES, additions);
    if let (Some(price), Some(stores)) = (price, STORES.get()) {
        let counts: Counts = stores.lock().iter().map(|store| store.counts()).sum();
        eprintln!("larch: {counts}; cost {:.6}", counts.cost(&price).total());
    }
    ended
}

/// Connects to a store, and remembers it, so that the command can print its requests at the end.
fn connect(url: &str, near: &Near) -> io::Result<Connection> {
    let connection = Connection::of_url(url, near)?;
    STORES.get_or_init(Mutex::default).lock().push(connection.store.clone());
    if let Some(price) = PRICE.get() {
        connection.store.set_price(*price);
    }
    Ok(connection)
}

fn branch(from: &str, to: &str) -> io::Result<Branched> {
    let report = connect(from, &Near::default())?.branch(&Place::of_url(to)?)?;
    Ok(Branched { files: report.files, bytes: report.bytes, copied_bytes: report.copied_bytes })
}

fn branches(url: &str) -> io::Result<Vec<BranchFound>> {
    let connection = connect(url, &Near::default())?;
    let bucket = &connection.store.place().bucket;
    let found = connection.branches()?.into_iter();
    Ok(found
        .map(|info| BranchFound { place: format!("{bucket}/{}", info.prefix), since: info.since, files: info.files })
        .collect())
}

fn drop_database(url: &str) -> io::Result<(u64, u64)> {
    let report = connect(url, &Near::default())?.drop_database()?;
    Ok((report.files, report.bytes))
}

fn wrong(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

/// The prices in the environment, if any.
fn price() -> io::Result<Option<Price>> {
    let Ok(text) = env::var("LARCH_PRICE") else { return Ok(None) };
    let prices: Option<Vec<f64>> = text.split(',').map(|price| price.trim().parse().ok()).collect();
    let Some(&[thousand_puts, thousand_gets, gigabyte_read]) = prices.as_deref() else {
        return Err(wrong(format!("LARCH_PRICE={text} is not three prices, as in 0.005,0.0004,0.09")));
    };
    Ok(Some(Price { thousand_puts, thousand_gets, gigabyte_read }))
}

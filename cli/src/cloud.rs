//! Databases in stores: `s3://bucket/prefix`, `gs://…`, `az://…` or `file:///directory`.
//!
//! Environment variables set the directories on this machine and other things: `LARCH_LOGS` is a directory for
//! logs. `LARCH_TIER` is a directory for blocks, which take at most `LARCH_TIER_BYTES`. `LARCH_SCRATCH` is a
//! directory for the data that an import sorts. `LARCH_PATIENCE` is how many seconds a write waits for a store
//! that does not answer. `LARCH_PRICE` has the prices of a thousand puts, of a thousand gets and of a gigabyte
//! read, separated by commas. If `LARCH_PRICE` is set, the command prints at its end how many requests it made and
//! what they cost.

use crate::failure::{CommandFailure, Result};
use crate::stored::{BranchFound, Branched, Stored};
use larch::machine::Machine;
use larch_remote::{Connection, Counts, Near, Place, Price, RemoteStore};
use os::sync::{Arc, Mutex, OnceLock};
use std::env;
use std::io::{self, ErrorKind};

/// The stores that the command uses. A command that copies from one store to another uses two stores.
static STORES: OnceLock<Mutex<Vec<Arc<RemoteStore>>>> = OnceLock::new();

/// The prices that the environment names.
static PRICE: OnceLock<Price> = OnceLock::new();

/// Reads the prices in the environment. Call this function before anything is opened.
pub fn read_prices() -> Result<()> {
    if let Some(price) = price()? {
        PRICE.get_or_init(|| price);
    }
    Ok(())
}

/// Prints how many requests the command made and what they cost, if the environment has prices and a store was used.
pub fn print_cost() {
    if let (Some(price), Some(stores)) = (PRICE.get(), STORES.get()) {
        let counts: Counts = stores.lock().iter().map(|store| store.counts()).sum();
        eprintln!("larch: {counts}; cost {:.6}", counts.cost(price).total());
    }
}

/// The machine on whose disk is what the URL names.
pub fn machine(url: &str, what: Stored) -> Result<Machine> {
    let near = match what {
        Stored::Database => Near::of_environment(),
        // A backup is verified by what is really in the store, so the copies of blocks on this machine are not
        // used.
        Stored::Backups => Ok(Near::default()),
    };
    let connection = near.and_then(|near| connect(url, &near));
    Ok(connection.map_err(|error| CommandFailure::Input(error.to_string()))?.machine)
}

/// Connects to a store, and remembers the store, so that the command can print the store's requests at the end.
fn connect(url: &str, near: &Near) -> io::Result<Connection> {
    let connection = Connection::of_url(url, near)?;
    STORES.get_or_init(Mutex::default).lock().push(connection.store.clone());
    if let Some(price) = PRICE.get() {
        connection.store.set_price(*price);
    }
    Ok(connection)
}

/// Makes the second database as a branch of the first.
pub fn branch(from: &str, to: &str) -> Result<Branched> {
    let report = connect(from, &Near::default()).and_then(|from| from.branch(&Place::of_url(to)?)).map_err(failed)?;
    Ok(Branched { files: report.files, bytes: report.bytes, copied_bytes: report.copied_bytes })
}

/// The branches of a database that may need its files.
pub fn branches(url: &str) -> Result<Vec<BranchFound>> {
    let connection = connect(url, &Near::default()).map_err(failed)?;
    let bucket = &connection.store.place().bucket;
    let found = connection.branches().map_err(failed)?.into_iter();
    Ok(found
        .map(|info| BranchFound { place: format!("{bucket}/{}", info.prefix), since: info.since, files: info.files })
        .collect())
}

/// Removes a database. Returns the number and the total size of the SSTs that only this database had.
pub fn drop_database(url: &str) -> Result<(u64, u64)> {
    let report = connect(url, &Near::default()).and_then(|store| store.drop_database()).map_err(failed)?;
    Ok((report.files, report.bytes))
}

fn failed(error: io::Error) -> CommandFailure {
    match error.kind() {
        ErrorKind::NotFound => CommandFailure::NotFound(error.to_string()),
        ErrorKind::InvalidInput => CommandFailure::Usage(error.to_string()),
        _ => CommandFailure::Input(error.to_string()),
    }
}

/// The prices that the environment names, if it names any.
fn price() -> Result<Option<Price>> {
    let Ok(text) = env::var("LARCH_PRICE") else { return Ok(None) };
    let prices: Option<Vec<f64>> = text.split(',').map(|price| price.trim().parse().ok()).collect();
    let Some(&[thousand_puts, thousand_gets, gigabyte_read]) = prices.as_deref() else {
        return Err(CommandFailure::Usage(format!("LARCH_PRICE={text} is not three prices, as in 0.005,0.0004,0.09")));
    };
    Ok(Some(Price { thousand_puts, thousand_gets, gigabyte_read }))
}

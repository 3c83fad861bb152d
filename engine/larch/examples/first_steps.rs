//! Opens a database, writes rows alone and in a batch, reads them back, and finds them again after a restart.
//!
//! ```text
//! cargo run -p larch-db --example first_steps
//! ```

use larch::Database;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path())?;

    // A table is created when it is first asked for. Keys and values are bytes, and a table keeps its rows in the
    // order of their keys.
    let births = db.table("births")?;
    births.insert("lovelace", "1815")?;
    assert_eq!(births.get("lovelace")?.as_deref(), Some(&b"1815"[..]));
    assert!(births.get("hopper")?.is_none());

    // The writes of a batch, which may be to several tables, become visible together or not at all.
    let deaths = db.table("deaths")?;
    let mut batch = db.batch();
    batch.insert(&births, "hopper", "1906");
    batch.insert(&births, "turing", "1912");
    batch.insert(&deaths, "lovelace", "1852");
    batch.commit()?;

    // Iterating over a range gives its rows in key order.
    for row in births.range("a".."m") {
        let (key, value) = row?;
        println!("{} was born in {}", key.escape_ascii(), value.escape_ascii());
    }
    let last = births.last_key_value()?.map(|(key, _)| key.to_vec());
    assert_eq!(last.as_deref(), Some(&b"turing"[..]));

    // Closing writes all rows to files, so that the next open has no log to read. Tables keep the database open, too.
    db.close()?;
    drop((births, deaths));

    let db = Database::open(directory.path())?;
    let births = db.table("births")?;
    births.remove("turing")?;
    assert_eq!(births.iter().count(), 2);
    println!("{} rows are left after a restart and a removal", births.iter().count());
    Ok(())
}

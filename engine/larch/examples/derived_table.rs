//! Keeps a derived table: for each customer, the sum of their orders. It follows the feed of changes, and stores how far it
//! has come in the same commits as the sums. So each order counts once, although the program ends and begins again.
//!
//! ```text
//! cargo run -p larch-db --example derived_table
//! ```

use larch::past::{ChangeKind, Retention};
use larch::{Database, Readable, Table, Version};
use std::error::Error;

/// The row of the derived table that says up to which version it has all orders.
const POSITION: &str = "position";

fn number(bytes: &[u8]) -> Result<i64, Box<dyn Error>> {
    Ok(std::str::from_utf8(bytes)?.parse()?)
}

/// The customer and the amount of an order: `ada 30`.
fn order(value: &[u8]) -> Result<(String, i64), Box<dyn Error>> {
    let (customer, amount) = std::str::from_utf8(value)?.split_once(' ').ok_or("an order has two words")?;
    Ok((customer.to_owned(), amount.parse()?))
}

/// Takes all commits that the sums lack. Returns how many there were.
fn catch_up(db: &Database, orders: &Table, sums: &Table) -> Result<usize, Box<dyn Error>> {
    let position = sums.get(POSITION)?.map(|bytes| number(&bytes)).transpose()?.unwrap_or_default();
    let mut feed = db.changes(Version(position as u64))?.of(orders)?;
    let mut commits = 0;
    loop {
        let commit = feed.next_commit()?;
        if commit.is_empty() {
            return Ok(commits);
        }
        // What the orders were before this commit: the past is kept, so each version can be read.
        let before = db.at(Version(commit[0].version().0 - 1))?;
        db.transact(|tx| {
            let mut add = |value: &[u8], sign: i64| -> Result<(), Box<dyn Error>> {
                let (customer, amount) = order(value)?;
                let sum = tx.get(sums, &customer)?.map(|sum| number(&sum)).transpose()?.unwrap_or_default();
                Ok(tx.insert(sums, &customer, (sum + sign * amount).to_string())?)
            };
            for change in &commit {
                match change.kind() {
                    ChangeKind::Put { key, value, .. } => {
                        if let Some(old) = before.get(orders, key)? {
                            add(&old, -1)?;
                        }
                        add(value.whole(), 1)?;
                    }
                    ChangeKind::Erase { key } => {
                        if let Some(old) = before.get(orders, key)? {
                            add(&old, -1)?;
                        }
                    }
                    other => return Err(format!("nobody erases ranges of orders: {other:?}").into()),
                }
            }
            Ok::<_, Box<dyn Error>>(tx.insert(sums, POSITION, feed.position().0.to_string())?)
        })?;
        commits += 1;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let open = || Database::open(directory.path());
    {
        let db = open()?;
        let (orders, sums) = (db.table("orders")?, db.table("sums")?);
        // Commits stay in reach for a day, also when their logs are gone.
        db.retain(Retention::Time(std::time::Duration::from_secs(86_400)))?;
        sums.insert(POSITION, db.version().0.to_string())?;
        orders.insert("1", "ada 30")?;
        orders.insert("2", "alan 5")?;
        println!("took {} commits", catch_up(&db, &orders, &sums)?);
        orders.insert("1", "ada 40")?;
        orders.remove("2")?;
        db.flush()?;
    }
    // The program begins again. Two commits are new to the sums, and their log is gone.
    let db = open()?;
    let (orders, sums) = (db.table("orders")?, db.table("sums")?);
    let mut batch = db.batch();
    batch.insert(&orders, "3", "alan 7");
    batch.insert(&orders, "4", "ada 1");
    batch.commit()?;
    println!("took {} commits", catch_up(&db, &orders, &sums)?);
    for row in sums.iter() {
        let (customer, sum) = row?;
        println!("{}: {}", customer.escape_ascii(), sum.escape_ascii());
    }
    assert_eq!(sums.get("ada")?.as_deref(), Some(&b"41"[..]));
    assert_eq!(sums.get("alan")?.as_deref(), Some(&b"7"[..]));
    Ok(())
}

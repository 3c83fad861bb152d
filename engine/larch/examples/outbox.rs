//! An outbox: an order and the message about it are one commit, and a courier delivers each message once, in the order of the
//! commits, also if a program ends in between. The courier follows the feed of changes. It polls no table and removes no message:
//! the receiver stores how far it has come.
//!
//! ```text
//! cargo run -p larch-db --example outbox
//! ```

use larch::past::{ChangeKind, Retention};
use larch::{Database, Table, Version};
use std::error::Error;
use std::time::Duration;

/// Who gets the messages: another service with a store of its own. It stores the position together with what it has received,
/// as a database would in one transaction.
#[derive(Default)]
struct Receiver {
    position: Option<Version>,
    received: Vec<String>,
}

/// Takes an order, and leaves the message about it in the outbox.
fn take_order(db: &Database, number: u32, text: &str) -> Result<(), Box<dyn Error>> {
    let (orders, outbox) = (db.table("orders")?, db.table("outbox")?);
    let mut batch = db.batch();
    batch.insert(&orders, number.to_be_bytes(), text);
    batch.insert(&outbox, number.to_be_bytes(), format!("order {number}: {text}"));
    batch.commit()?;
    Ok(())
}

/// Delivers messages until there is none at the moment, or until `most` were delivered.
fn deliver(db: &Database, outbox: &Table, receiver: &mut Receiver, most: usize) -> Result<usize, Box<dyn Error>> {
    let mut feed = db.changes(receiver.position.unwrap_or(Version(0)))?.of(outbox)?;
    let mut delivered = 0;
    while delivered < most {
        let commit = feed.next_commit()?;
        if commit.is_empty() {
            break;
        }
        for change in &commit {
            if let ChangeKind::Put { value, .. } = change.kind() {
                receiver.received.push(String::from_utf8(value.whole().to_vec())?);
                delivered += 1;
            }
        }
        receiver.position = Some(feed.position());
    }
    Ok(delivered)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mut receiver = Receiver::default();
    {
        let db = Database::open(directory.path())?;
        // A courier may be away for a week.
        db.retain(Retention::Time(Duration::from_secs(7 * 86_400)))?;
        let outbox = db.table("outbox")?;
        receiver.position = Some(db.version());
        for (number, text) in [(1, "a pencil"), (2, "an eraser"), (3, "a notebook")] {
            take_order(&db, number, text)?;
        }
        println!("{} delivered before the program ends", deliver(&db, &outbox, &mut receiver, 2)?);
    }
    let db = Database::open(directory.path())?;
    let outbox = db.table("outbox")?;
    take_order(&db, 4, "a ruler")?;
    db.flush()?;
    println!("{} delivered after it began again", deliver(&db, &outbox, &mut receiver, usize::MAX)?);
    for message in &receiver.received {
        println!("  {message}");
    }
    assert_eq!(receiver.received.len(), 4);
    assert!(receiver.received.is_sorted(), "in the order of the commits");

    // A courier that has nothing to do waits, and is woken by the next commit.
    let feed = db.changes(receiver.position.unwrap_or(Version(0)))?.of(&outbox)?;
    assert!(!feed.wait(Duration::from_millis(1))?);
    take_order(&db, 5, "a lamp")?;
    assert!(feed.wait(Duration::from_secs(60))?);
    assert_eq!(deliver(&db, &outbox, &mut receiver, usize::MAX)?, 1);
    Ok(())
}

//! Reads one moment of a database while it changes: snapshots, ranges from both ends, and how much lies in a range.
//!
//! ```text
//! cargo run -p larch-db --example snapshots_and_ranges
//! ```

use larch::{Database, Durability, Readable};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    // These rows may be lost in a power failure: their commits do not wait for the disk.
    let db = Database::builder(directory.path()).durability(Durability::Buffered).open()?;
    let orders = db.table("orders")?;

    let mut batch = db.batch();
    for day in 1..=31 {
        for number in 0..500 {
            batch.insert(&orders, format!("2026-10-{day:02}/{number:03}"), format!("order {number} of day {day}"));
        }
    }
    batch.commit()?;

    // A snapshot is cheap: it keeps the rows that it shows from being compacted away, and copies none.
    let october = db.snapshot();

    // One removal for a whole range, however many rows are in it.
    orders.remove_range("2026-10-01".."2026-10-15")?;
    orders.insert("2026-11-01/000", "the first one of November")?;
    assert_eq!(orders.iter().count(), 8501);
    assert_eq!(october.iter(&orders).count(), 15_500);
    assert!(orders.get("2026-10-07/050")?.is_none());
    assert!(october.get(&orders, "2026-10-07/050")?.is_some());

    // A range is read from either end, or from both.
    let mut day = october.range(&orders, "2026-10-07".."2026-10-08");
    let first = day.next().expect("the day has rows")?;
    let last = day.next_back().expect("the day has more than one row")?;
    println!("day 7 begins with {} and ends with {}", first.0.escape_ascii(), last.0.escape_ascii());
    assert_eq!((&*first.0, &*last.0), (&b"2026-10-07/000"[..], &b"2026-10-07/499"[..]));

    // With a limit, the pages of these rows and no others are asked for, all at once.
    let newest: Vec<_> = orders.range(..).limit(3).rev().collect::<larch::Result<_>>()?;
    for (key, value) in &newest {
        println!("{}: {}", key.escape_ascii(), value.escape_ascii());
    }
    assert_eq!(newest.len(), 3);

    // Nothing reads the removed rows any more, so a compaction drops them. The number of rows in a range comes from the
    // index alone, as an interval that holds the truth.
    drop((day, october));
    db.compact()?;
    let about = orders.count("2026-10-20".."2026-10-27")?;
    let exact = orders.count_exact("2026-10-20".."2026-10-27")?;
    println!("the week has between {} and {} rows: {exact}", about.low, about.high);
    assert!(about.low <= exact && exact <= about.high);
    assert_eq!(exact, 3500);
    Ok(())
}

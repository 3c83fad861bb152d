//! Reads a database as it was at one moment, while it changes. Shows snapshots, ranges that are read from both ends,
//! and counts of rows in a range.
//!
//! ```text
//! cargo run -p larch-db --example snapshots_and_ranges
//! ```

use larch::{Database, Durability, Readable};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    // Commits do not wait for the disk here, so a power failure may lose rows.
    let db = Database::builder(directory.path()).durability(Durability::Buffered).open()?;
    let orders = db.table("orders")?;

    let mut batch = db.batch();
    for day in 1..=31 {
        for number in 0..500 {
            batch.insert(&orders, format!("2026-10-{day:02}/{number:03}"), format!("order {number} of day {day}"));
        }
    }
    batch.commit()?;

    // A snapshot is cheap: it copies no rows, and only keeps compactions from dropping the rows that it shows.
    let october = db.snapshot();

    // One call removes a whole range, however many rows are in it.
    orders.remove_range("2026-10-01".."2026-10-15")?;
    orders.insert("2026-11-01/000", "the first one of November")?;
    assert_eq!(orders.iter().count(), 8501);
    assert_eq!(october.iter(&orders).count(), 15_500);
    assert!(orders.get("2026-10-07/050")?.is_none());
    assert!(october.get(&orders, "2026-10-07/050")?.is_some());

    // A range can be read from its start, from its end, or from both.
    let mut day = october.range(&orders, "2026-10-07".."2026-10-08");
    let first = day.next().expect("the day has rows")?;
    let last = day.next_back().expect("the day has more than one row")?;
    println!("day 7 begins with {} and ends with {}", first.0.escape_ascii(), last.0.escape_ascii());
    assert_eq!((&*first.0, &*last.0), (&b"2026-10-07/000"[..], &b"2026-10-07/499"[..]));

    // With a limit of three rows, the range asks only for the pages of these rows, and for all of them at once.
    let newest: Vec<_> = orders.range(..).limit(3).rev().collect::<larch::Result<_>>()?;
    for (key, value) in &newest {
        println!("{}: {}", key.escape_ascii(), value.escape_ascii());
    }
    assert_eq!(newest.len(), 3);

    // No snapshot shows the removed rows any more, so a compaction drops them. The index alone tells how many rows
    // are in a range: it gives a lower and an upper bound.
    drop((day, october));
    db.compact()?;
    let about = orders.count("2026-10-20".."2026-10-27")?;
    let exact = orders.count_exact("2026-10-20".."2026-10-27")?;
    println!("the week has between {} and {} rows: {exact}", about.low, about.high);
    assert!(about.low <= exact && exact <= about.high);
    assert_eq!(exact, 3500);
    Ok(())
}

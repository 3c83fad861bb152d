//! Keeps hundreds of reads under way on one thread, on data that is not in memory. Any executor works; this example
//! uses that of smol.
//!
//! ```text
//! cargo run -p larch-db --example many_reads_one_thread
//! ```

use larch::rows::Tried;
use larch::{Database, Table};
use std::error::Error;

const ROWS: u32 = 200_000;
const READS: u32 = 500;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let db = Database::builder(directory.path()).cache_bytes(4 << 20).open()?;
    let rows = db.table("rows")?;
    let mut import = rows.import()?;
    for number in 0..ROWS {
        import.add(&key(number), &[number as u8; 100])?;
    }
    import.finish(|_| {})?;

    // A function whose name begins with `try` never waits: it returns the row, or says that it would have to read
    // from the disk.
    let wanted = key(ROWS / 2);
    assert!(rows.try_get(wanted)?.would_fault());
    assert!(rows.get(wanted)?.is_some());
    assert!(matches!(rows.try_get(wanted)?, Tried::Ready(Some(_))));

    // An async read goes to the disk by itself. All these reads are under way together on this one thread.
    let before = db.metrics().page_reads;
    let found = smol::block_on(read_many(&rows))?;
    println!("{found} reads on one thread took {} page reads", db.metrics().page_reads - before);
    assert_eq!(found, READS);

    // If all keys are known in advance, one call asks for all their pages together.
    let keys: Vec<_> = (0..READS).map(|number| key(number * 7)).collect();
    let values = smol::block_on(rows.multi_get_async(&keys))?;
    assert!(values.iter().zip(0..).all(|(value, number)| value.as_deref() == Some(&[(number * 7) as u8; 100][..])));
    Ok(())
}

/// Reads rows from all over the table, each in a task of its own. Returns how many rows it found.
async fn read_many(rows: &Table) -> larch::Result<u32> {
    let executor = smol::LocalExecutor::new();
    let tasks: Vec<_> =
        (0..READS).map(|i| executor.spawn(async move { rows.get_async(key(i * (ROWS / READS))).await })).collect();
    executor
        .run(async {
            let mut found = 0;
            for task in tasks {
                found += u32::from(task.await?.is_some());
            }
            Ok(found)
        })
        .await
}

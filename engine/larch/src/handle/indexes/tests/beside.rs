//! Tests that large writes to tables with indexes come out right while other commits and changes of tables happen
//! between their steps.

use super::*;
use crate::Conflict;

const BUFFER_BYTES: u64 = 64 << 10;

/// A table `t` with an index `i` whose extractor is `hook`. The write buffer is so small that transactions soon
/// spill to files.
fn with_small_buffer() -> (Database, Table) {
    let (_, disk) = Machine::simulated(1);
    let db = on(&disk, 1).write_buffer_bytes(BUFFER_BYTES).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    create(&table, "i", "hook", false).expect("it is built");
    (db, table)
}

fn large_batch(db: &Database, table: &Table, rows: u32, salt: u8) -> crate::Batch {
    let mut batch = db.batch();
    for row in 0..rows {
        batch.insert(table, row.to_be_bytes(), [&row.to_be_bytes()[..], &[salt; 100]].concat());
    }
    batch
}

/// Writes some rows to the table `other` whenever `hook` makes keys.
fn write_each_time(other: Table, round: u32) {
    for row in 0..8_u32 {
        other.insert([round.to_be_bytes(), row.to_be_bytes()].concat(), [7; 100]).expect("the disk works");
    }
    HOOK.set(Some(Box::new(move || write_each_time(other, round + 1))));
}

#[test]
fn a_large_write_to_an_indexed_table_ends_beside_a_busy_writer_of_another_table() {
    let (db, table) = with_small_buffer();
    large_batch(&db, &table, 800, 1).commit().expect("it is alone");
    let index = table.index("i").expect("it is there");
    let other = db.table("other").expect("the disk works");
    let commits = |work: &dyn Fn() -> Result<()>| {
        let busy = other.clone();
        HOOK.set(Some(Box::new(move || write_each_time(busy, 0))));
        let outcome = work();
        HOOK.take();
        outcome.expect("nothing that it depends on has changed");
    };
    commits(&|| large_batch(&db, &table, 800, 2).commit().map(drop));
    assert_eq!((table.iter().count(), index.entries(..).count()), (800, 800));
    commits(&|| table.remove_range(10_u32.to_be_bytes()..));
    assert_eq!((table.iter().count(), index.entries(..).count()), (10, 10));
    is_clean(&index);
}

#[test]
fn a_large_write_ends_beside_imports_and_large_batches_of_another_table() {
    let (db, table) = with_small_buffer();
    let other = db.table("other").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", "1").expect("it is taken");
    let mut import = other.import().expect("the database takes writes");
    import.add(b"a", b"1").expect("it is taken");
    import.finish(|_| {}).expect("the disk works");
    large_batch(&db, &other, 2000, 1).commit().expect("the disk works");
    tx.commit().expect("the disk works").expect("what it depends on has not changed");
}

/// Drops the index when `hook` next makes keys.
fn drop_when_keys_are_made(table: &Table) {
    let table = table.clone();
    HOOK.set(Some(Box::new(move || assert!(table.drop_index("i").expect("the disk works")))));
}

#[test]
fn a_batch_ends_though_an_index_is_dropped_while_its_writes_move_into_files() {
    let (db, table) = with_small_buffer();
    drop_when_keys_are_made(&table);
    large_batch(&db, &table, 3000, 1).commit().expect("the table is there");
    assert_eq!(table.iter().count(), 3000);
    assert!(table.indexes().expect("the table is there").is_empty());
    assert_eq!(db.core().env.opener.leftovers.held(), 0);
}

#[test]
fn a_range_is_erased_though_an_index_is_dropped_while_the_erases_move_into_files() {
    let (db, table) = with_small_buffer();
    large_batch(&db, &table, 3000, 1).commit().expect("it is alone");
    drop_when_keys_are_made(&table);
    table.remove_range(..).expect("the table is there");
    assert_eq!(table.iter().count(), 0);
}

#[test]
fn work_is_done_again_if_an_index_is_dropped_while_its_writes_move_into_files() {
    let (db, table) = with_small_buffer();
    let mut attempts = 0;
    let done: Result<()> = db.transact(|tx| {
        attempts += 1;
        for row in 0..3000_u32 {
            tx.insert(&table, row.to_be_bytes(), [1; 100])?;
            if row == 50 && attempts == 1 {
                table.drop_index("i")?;
            }
        }
        Ok(())
    });
    done.expect("the table is there");
    assert_eq!((attempts, table.iter().count()), (2, 3000));
}

#[test]
fn a_transaction_conflicts_if_an_index_is_dropped_before_its_writes_move_into_files() {
    let (db, table) = with_small_buffer();
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", [1; 100]).expect("it is taken");
    let before = tx.savepoint();
    for row in 0..100_u32 {
        tx.insert(&table, row.to_be_bytes(), [1; 100]).expect("it is taken");
    }
    table.drop_index("i").expect("the disk works");
    for row in 100..3000_u32 {
        tx.insert(&table, row.to_be_bytes(), [1; 100]).expect("the table is there");
    }
    tx.rollback_to(&before).expect("the disk works");
    assert_eq!(tx.len(), 2, "the row and its entry");
    for row in 0..3000_u32 {
        tx.insert(&table, row.to_be_bytes(), [1; 100]).expect("the table is there");
    }
    let conflict = tx.commit().expect("the disk works").expect_err("its entries may not be right");
    assert!(matches!(conflict, Conflict::Indexes { .. } | Conflict::TooOld { .. }), "{conflict}");
    // The table was dropped during the transaction, but the error still names it.
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", "1").expect("it is taken");
    db.drop_table("t").expect("the disk works");
    let refused = (0..3000_u32).find_map(|row| tx.insert(&table, row.to_be_bytes(), [1; 100]).err());
    assert!(matches!(refused, Some(Error::TableDropped(ref name)) if name == "t"), "{refused:?}");
}

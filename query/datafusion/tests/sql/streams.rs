//! Tests streams of rows that end early, and the memory that streams take.

use crate::session::{Session, config};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use futures::StreamExt;
use kit::Scratch;
use larch::{Database, Table};
use rows::Tuple;
use std::sync::Arc;

const ROWS: u32 = 20_000;

/// Fills a table with rows of a thousand bytes, sixteen to a page. The last row has a large value outside its page.
fn fill(scratch: &Scratch) -> (Database, Table) {
    let database = Database::open(scratch.path()).expect("a database");
    let table = database.table("t").expect("a table");
    for id in 0..ROWS {
        let bytes = if id == ROWS - 1 { 3 << 20 } else { 1000 };
        table.insert((id,).to_key(), vec![id as u8; bytes]).expect("it is written");
    }
    database.flush().expect("it is flushed");
    (database, table)
}

/// A session that takes its memory from `pool` and has the table as `t`.
fn session(pool: &Arc<dyn MemoryPool>, database: &Database, table: &Table) -> Session {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool.clone()).build_arc().expect("an environment");
    let session = Session::of(SessionStateBuilder::new().with_config(config(1, 100)).with_runtime_env(runtime));
    session.add("t", database, table, "key.tuple(id u32), value v bytes");
    session
}

#[test]
fn a_stream_that_is_dropped_ends_its_reader_and_gives_its_memory_back() {
    let scratch = Scratch::new("sql-dropped");
    let (database, table) = fill(&scratch);
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(64 << 20));
    let session = session(&pool, &database, &table);
    let reads = session.runtime.block_on(async {
        let mut rows =
            session.context.sql("SELECT * FROM t").await.expect("a plan").execute_stream().await.expect("a stream");
        let first = rows.next().await.expect("there are rows").expect("they can be read");
        assert_eq!(first.num_rows(), 100);
        drop(rows);
        database.metrics().page_reads
    });
    // Dropping the session waits for the thread that reads.
    drop(session);
    assert_eq!(pool.reserved(), 0);
    let (later, all) = (database.metrics().page_reads - reads, u64::from(ROWS / 16));
    assert!(reads + later < all / 2, "{reads} pages were read, and {later} after nobody wanted them, of {all}");
}

#[test]
fn batches_count_in_the_pool_and_are_bounded_in_bytes() {
    let scratch = Scratch::new("sql-memory");
    let (database, table) = fill(&scratch);
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(64 << 20));
    let large = session(&pool, &database, &table);
    let batches = large.batches("SELECT id, v FROM t").expect("the memory is enough");
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), ROWS as usize);
    assert_eq!(pool.reserved(), 0);
    drop(large);
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
    let small = session(&pool, &database, &table);
    // The pool is too small for the last row.
    let error = small.error("SELECT id, v FROM t");
    assert!(error.contains("LarchScan[0]"), "{error}");
    assert_eq!(pool.reserved(), 0);
    assert_eq!(small.rows("SELECT count(v) FROM t WHERE id < 1000"), ["1000"]);
}

#[test]
fn rows_of_any_length_end_a_batch_in_time() {
    let scratch = Scratch::new("sql-long");
    let database = Database::open(scratch.path()).expect("a database");
    let table = database.table("t").expect("a table");
    for id in 0..40_u32 {
        table.insert((id,).to_key(), vec![id as u8; 300 << 10]).expect("it is written");
    }
    let session = Session::new(1, 8192);
    session.add("t", &database, &table, "key.tuple(id u32), value v bytes");
    let rows: Vec<usize> =
        session.batches("SELECT id, v FROM t").expect("rows").iter().map(|batch| batch.num_rows()).collect();
    // A batch ends with the row that brings it to a mebibyte.
    assert_eq!(rows, [4; 10]);
}

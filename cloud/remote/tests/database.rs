//! A database on a store: what is written can be read elsewhere, and costs the expected requests.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real time, outside of the engine")]

mod commands;
mod figures;
#[expect(dead_code, reason = "other tests use all of it")]
mod processes;

use commands::{Expected, expect};
use futures_util::StreamExt;
use larch::{Database, Follow};
use larch_remote::{Connection, Near, Patience, Place, Price};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

fn connect(store: &Arc<dyn ObjectStore>) -> Connection {
    let place = Place::within(Arc::clone(store), "db");
    Connection::of_place(place, Patience::default(), &Near::default()).expect("the system has threads")
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

/// Incompressible bytes.
fn value(number: u32, bytes: usize) -> Vec<u8> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(u64::from(number));
    (0..bytes).map(|_| rng.random()).collect()
}

fn fill(db: &Database, rows: u32, value_bytes: usize) {
    let table = db.table("t").expect("a table");
    for start in (0..rows).step_by(1000) {
        let mut batch = db.batch().durability(larch::Durability::Buffered);
        for number in start..rows.min(start + 1000) {
            batch.insert(&table, key(number), value(number, value_bytes));
        }
        batch.commit().expect("a commit");
    }
    db.sync().expect("a sync");
}

#[test]
fn a_database_at_a_url_is_read_by_another_process_beside_its_writer_and_taken_over() {
    let directory = tempfile::tempdir().expect("there is room");
    let url = format!("file://{}/db", directory.path().display());
    let connect = || Connection::of_url(&url, &Near::default()).expect("it is a URL of a store");
    let writer = connect().builder().write_buffer_bytes(1 << 20).open().expect("it is made");
    fill(&writer, 10_000, 200);
    writer.flush().expect("the store works");
    let reader = connect().builder().read_only(true).open().expect("it is there");
    let table = reader.existing_table("t").expect("the store works").expect("the table is there");
    assert_eq!(table.get(key(17)).expect("the store works").as_deref(), Some(&value(17, 200)[..]));
    writer.table("t").expect("a table").insert("late", "row").expect("the store works");
    let second = connect().builder().open().expect("it takes over");
    let table = second.table("t").expect("a table");
    assert_eq!(table.get("late").expect("the store works").as_deref(), Some(&b"row"[..]), "it was acknowledged");
    let error = writer.table("t").expect("it is there").insert("k", "v").expect_err("it was fenced").to_string();
    assert!(error.contains("process") && error.contains("has taken over"), "it says who: {error}");
    assert!(table.get("k").expect("the store works").is_none());
    table.insert("k", "w").expect("the second writes");
    drop(writer);
    assert_eq!(table.get("k").expect("the store works").as_deref(), Some(&b"w"[..]));
    second.check(|_| {}).expect("nothing is damaged");
}

#[test]
fn a_command_that_reads_sees_every_commit_and_takes_nothing_from_the_writer() {
    let directory = tempfile::tempdir().expect("there is room");
    let (url, logs) = (format!("file://{}/db", directory.path().display()), directory.path().join("logs"));
    for near in [Near::default(), Near { logs: Some(logs.clone()), ..Near::default() }] {
        let writer =
            Connection::of_url(&url, &near).expect("it is a URL of a store").builder().open().expect("it is there");
        let table = writer.table("t").expect("a table");
        table.insert("old", "1").and_then(|()| writer.flush()).expect("the store works");
        table.insert("late", "2").expect("the store works");
        // With logs on this machine, a commit reaches the store a little later.
        let reader = Connection::of_url(&url, &Near::default()).expect("it is a URL of a store");
        let follower = reader.builder().follow(Follow::Commits).open().expect("it is there");
        let followed = follower.existing_table("t").expect("the store works").expect("the table is there");
        while followed.get("late").expect("the store works").is_none() {
            std::thread::yield_now();
        }
        let variables: Vec<(&str, String)> =
            near.logs.iter().map(|logs| ("LARCH_LOGS", logs.display().to_string())).collect();
        let read: [Expected<'_>; 6] = [
            (&["get", &url, "t", "late"], Ok("2")),
            (&["scan", &url, "t"], Ok("old\t1")),
            (&["scan", &url, "t", "--read-only"], Ok("old\t1")),
            (&["tables", &url], Ok("t")),
            (&["check", &url], Ok("")),
            (&["metrics", &url], Ok("store_requests")),
        ];
        expect(&variables, &read);
        table.insert("later", "3").expect("nobody has taken over");
        drop((followed, follower, table, writer));
    }
    let writer = Connection::of_url(&url, &Near::default()).expect("it is a URL of a store").builder().open();
    let writer = writer.expect("it is there");
    expect(&[], &[(&["put", &url, "t", "own", "4"], Ok(""))]);
    writer.table("t").and_then(|table| table.insert("lost", "5")).expect_err("a command that writes takes over");
}

#[test]
fn logs_and_blocks_on_this_machine() {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let directory = tempfile::tempdir().expect("there is room");
    let near = Near {
        logs: Some(directory.path().join("logs")),
        tier: Some((directory.path().join("tier"), 64 << 20)),
        scratch: Some(directory.path().join("scratch")),
    };
    let connect = || {
        let place = Place::within(Arc::clone(&memory), "db");
        Connection::of_place(place, Patience::default(), &near).expect("the directories can be used")
    };
    let db = connect().builder().open().expect("it is made");
    fill(&db, 20_000, 200);
    db.flush().expect("the store works");
    db.table("t").expect("a table").insert("late", "row").expect("the disk works");
    let second = connect().builder().open().expect_err("another writer of this machine has its logs there");
    assert!(matches!(second, larch::Error::Locked(_)), "{second}");
    drop(db);
    let connection = connect();
    let db = connection.builder().cache_bytes(1 << 20).open().expect("it takes over");
    let table = db.table("t").expect("a table");
    assert_eq!(table.get("late").expect("the store works").as_deref(), Some(&b"row"[..]));
    let read_all = || {
        let rows: Vec<_> = table.range(..).collect::<Result<_, _>>().expect("the store works");
        assert_eq!(rows.len(), 20_001);
    };
    read_all();
    let tier = || connection.tier.as_ref().expect("it was asked for").counts();
    // Blocks are written in the background.
    while tier().blocks < 100 {
        std::thread::yield_now();
    }
    let before = tier().hits;
    read_all();
    assert!(tier().hits > before, "{:?}", tier());
}

#[test]
fn a_read_says_what_it_asked_of_the_store_and_what_that_costs() {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let writer = connect(&memory).builder().open().expect("it is made");
    fill(&writer, 50_000, 200);
    writer.flush().and_then(|()| writer.compact()).expect("the store works");
    drop(writer);
    let connection = connect(&memory);
    connection.store.set_price(Price { thousand_puts: 0.0, thousand_gets: 0.0004, gigabyte_read: 0.09 });
    let db = connection.builder().read_only(true).open().expect("it is there");
    let table = db.existing_table("t").expect("the store works").expect("the table is there");
    let explain = || {
        let before = connection.store.counts();
        let explained = table.explain_get(key(17)).expect("the store works");
        let store = explained.store.expect("the database is in a store");
        assert_eq!(store.counts, connection.store.counts().since(&before));
        let cost = store.counts.requests.gets as f64 * 400.0 + store.counts.read_bytes as f64 * 0.09;
        assert_eq!(store.billionths, Some(cost.round() as u64));
        (explained.rounds, store.counts.requests.gets, store.counts.read_bytes, explained.to_string())
    };
    let (rounds, gets, bytes, text) = explain();
    assert!(rounds > 0 && gets >= rounds && bytes > 10_000, "{text}");
    let line = format!("store    {gets} requests, {bytes} bytes read, in {rounds} round trips; cost 0.0000");
    assert!(text.contains(&line), "{text}");
    let (rounds, gets, bytes, text) = explain();
    assert_eq!((rounds, gets, bytes), (0, 0, 0), "it is in memory: {text}");
    let metrics = db.metrics();
    let bill = metrics.store.expect("the database is in a store");
    assert_eq!(bill.counts, connection.store.counts());
    let lines = [
        format!("larch_store_requests_total{{kind=\"get\"}} {}", bill.counts.requests.gets),
        format!("larch_store_read_bytes_total {}", bill.counts.read_bytes),
        format!("larch_store_cost_billionths_total {}", bill.billionths().expect("there are prices")),
    ];
    let text = metrics.to_prometheus();
    assert!(lines.iter().all(|line| text.contains(line)), "{lines:?} in {text}");
}

/// The mean number of requests for a `get` when one thread has `under_way` gets in flight.
fn requests_per_get(under_way: usize, gets: u32) -> f64 {
    const ROWS: u32 = 200_000;
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let writer = connect(&memory).builder().open().expect("it is made");
    fill(&writer, ROWS, 400);
    writer.flush().and_then(|()| writer.compact()).expect("the store works");
    drop(writer);
    let connection = connect(&memory);
    let db = connection.builder().read_only(true).cache_bytes(8 << 20).open().expect("it is there");
    let table = db.existing_table("t").expect("the store works").expect("the table is there");
    let all = |gets: u32, first: u32| {
        let one = |number: u32| {
            let table = table.clone();
            async move {
                let number = (first + number).wrapping_mul(7919) % ROWS;
                let found = table.get_async(key(number)).await.expect("the store works");
                assert_eq!(found.map(|found| found.len()), Some(400));
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the system has room");
        runtime
            .block_on(futures_util::stream::iter(0..gets).map(one).buffer_unordered(under_way).for_each(|()| async {}));
    };
    // Brings the inner nodes into memory.
    all(20_000, 0);
    let before = connection.store.counts();
    all(gets, 20_000);
    let requests = connection.store.counts().since(&before).requests;
    requests.gets as f64 / f64::from(gets)
}

/// Run `cargo test --release --test database -- --ignored --nocapture figures`. With `LARCH_MINIO=/path/of/minio` in
/// the environment, MinIO is measured, too.
#[test]
#[ignore = "it measures: cargo test --release --test database -- --ignored --nocapture figures"]
fn figures_of_reads_from_far_away() {
    figures::reads();
}

/// Run as the test above, with `lag` in place of `figures`.
#[test]
#[ignore = "it measures: cargo test --release --test database -- --ignored --nocapture lag"]
fn lag_of_followers_on_a_store() {
    figures::lag();
}

#[test]
fn a_get_is_one_request_at_most_with_inner_nodes_in_memory() {
    let requests = requests_per_get(64, 5000);
    assert!(requests <= 1.05, "{requests} requests a get");
}

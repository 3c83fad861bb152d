//! Tests reads and transactions as futures, while rows are written, flushed and merged, under executors that do not
//! know Larch: tokio with one thread, tokio with several threads, smol, an executor that is written here, and
//! handlers of the web server axum.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an executor has threads and locks of its own, and its database lies on the machine's disk"
)]

use larch::{Database, Durability, Readable, Scan, Snapshot, Table};
use pages::cache::CacheUsage;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use tempfile::TempDir;

const ROWS: u32 = 4000;
const TASKS: u32 = 50;

fn key(i: u32) -> Vec<u8> {
    format!("key {i:06}").into_bytes()
}

fn value(i: u32, round: u32) -> Vec<u8> {
    // Some values are so long that they are stored outside the pages of rows.
    format!("{i} in {round} ").repeat(if i.is_multiple_of(100) { 2000 } else { 5 }).into_bytes()
}

/// Waits until no page is in use, and returns the use of the cache. Pages of the readahead may arrive after the last
/// read, and the thread that receives such a page pins it for a moment.
fn at_rest(db: &Database) -> CacheUsage {
    let mut usage = db.cache().usage();
    let mut patience = 1_000_000;
    while usage.in_flight_bytes + usage.pinned_bytes > 0 && patience > 0 {
        patience -= 1;
        std::thread::yield_now();
        usage = db.cache().usage();
    }
    usage
}

struct Fixture {
    directory: TempDir,
    db: Database,
    table: Table,
    snapshot: Snapshot,
}

impl Fixture {
    /// A database on the disk of this machine, with more rows than its cache can hold.
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("the system has room");
        let builder = Database::builder(&directory).durability(Durability::Buffered);
        let db = builder.cache_bytes(256 << 10).write_buffer_bytes(1 << 20).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        for i in 0..ROWS {
            table.insert(key(i), value(i, 0)).expect("the disk works");
        }
        db.flush().expect("the disk works");
        let snapshot = db.snapshot();
        Self { directory, db, table, snapshot }
    }

    /// The work of task `number`.
    async fn task(db: Database, table: Table, snapshot: Snapshot, number: u32) {
        for i in (number..ROWS).step_by(TASKS as usize * 4) {
            let old = snapshot.get_async(&table, key(i)).await.expect("the disk works");
            assert_eq!(old.as_deref(), Some(&value(i, 0)[..]));
            assert!(table.contains_key_async(key(i)).await.expect("the disk works"));
            assert!(table.get_async(key(i + ROWS)).await.expect("the disk works").is_none());
            if i.is_multiple_of(3) {
                table.insert_async(key(i), value(i, 1)).await.expect("the disk works");
            }
        }
        if number.is_multiple_of(10) {
            db.flush().expect("the disk works");
        }
        let keys: Vec<Vec<u8>> = (0..20).map(|i| key(i * 199 % ROWS)).collect();
        let values = snapshot.multi_get_async(&table, &keys).await.expect("the disk works");
        for (i, found) in values.iter().enumerate() {
            assert_eq!(found.as_deref(), Some(&value(i as u32 * 199 % ROWS, 0)[..]));
        }
        let first = number * 50;
        let mut scan = snapshot.scan_async(&table, key(first)..).limit(60);
        for i in first..first + 30 {
            let (found, is) = scan.next().await.expect("a row").expect("the disk works");
            assert_eq!((&found[..], &is[..]), (&key(i)[..], &value(i, 0)[..]));
        }
        for i in (ROWS - 30..ROWS).rev() {
            let (found, is) = scan.next_back().await.expect("a row").expect("the disk works");
            assert_eq!((&found[..], &is[..]), (&key(i)[..], &value(i, 0)[..]));
        }
        assert!(scan.next().await.is_none());
    }

    fn tasks(&self) -> impl Iterator<Item = impl Future<Output = ()> + Send + 'static> {
        (0..TASKS).map(|number| Self::task(self.db.clone(), self.table.clone(), self.snapshot.clone(), number))
    }

    fn finish(self) {
        // Compactions pin pages, too, so they are finished first.
        self.db.compact_due().expect("the disk works");
        let usage = at_rest(&self.db);
        assert_eq!((usage.pinned_bytes, usage.held_bytes, usage.in_flight_bytes, usage.queued), (0, 0, 0, 0));
        let rows: BTreeMap<Vec<u8>, Vec<u8>> = self
            .table
            .iter()
            .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).expect("the disk works"))
            .collect();
        assert_eq!(rows.len(), ROWS as usize);
        let Self { directory, db, table, snapshot } = self;
        drop((table, snapshot));
        db.close().expect("the disk works");
        directory.close().expect("it is ours");
    }
}

#[test]
fn under_tokio_with_one_thread() {
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the system has threads");
    runtime.block_on(async {
        let tasks: Vec<_> = fixture.tasks().map(tokio::spawn).collect();
        for task in tasks {
            task.await.expect("it does not panic");
        }
    });
    fixture.finish();
}

#[test]
fn under_tokio_with_several_threads() {
    let fixture = Fixture::new();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().expect("the system has threads");
    runtime.block_on(async {
        let tasks: Vec<_> = fixture.tasks().map(tokio::spawn).collect();
        for task in tasks {
            task.await.expect("it does not panic");
        }
    });
    drop(runtime);
    fixture.finish();
}

#[test]
fn under_smol() {
    let fixture = Fixture::new();
    smol::block_on(async {
        let tasks: Vec<_> = fixture.tasks().map(smol::spawn).collect();
        for task in tasks {
            task.await;
        }
    });
    fixture.finish();
}

/// A task of this file's executor. When it is woken, it puts itself into the queue.
struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    queue: Mutex<Sender<Arc<Task>>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.lock().expect("nobody panics").clone();
        // The error is ignored: when all tasks are done, nobody receives from the queue any more.
        queue.send(self).ok();
    }
}

fn run(queue: &Receiver<Arc<Task>>, mut left: usize) {
    while left > 0 {
        let task = queue.recv().expect("a task that is not done holds the other end");
        let mut future = task.future.lock().expect("nobody panics");
        let waker = Waker::from(task.clone());
        if let Some(running) = &mut *future
            && running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            *future = None;
            left -= 1;
        }
    }
}

#[test]
fn under_one_made_by_hand() {
    let fixture = Fixture::new();
    let (sender, queue) = channel();
    let mut count = 0;
    for future in fixture.tasks() {
        let task = Task { future: Mutex::new(Some(Box::pin(future))), queue: Mutex::new(sender.clone()) };
        Arc::new(task).wake();
        count += 1;
    }
    run(&queue, count);
    fixture.finish();
}

/// The same future is polled by a different thread each time.
#[test]
fn a_future_may_go_from_thread_to_thread() {
    let fixture = Fixture::new();
    let mut tasks: VecDeque<Pin<Box<dyn Future<Output = ()> + Send>>> =
        fixture.tasks().take(8).map(|task| Box::pin(task) as _).collect();
    while let Some(mut task) = tasks.pop_front() {
        let (task, done) = std::thread::scope(|scope| {
            let polled = scope.spawn(move || {
                let done = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                (task, done)
            });
            polled.join().expect("it does not panic")
        });
        if done.is_pending() {
            tasks.push_back(task);
        }
    }
    fixture.finish();
}

/// Begins `gets` reads of single rows, and polls them until one of them waits for memory. Then awaits four other
/// reads, during which the first ones are not polled, as in a program that reads in the body of a loop over
/// `buffer_unordered`.
fn one_more_ends(cache_bytes: u64, gets: u32, rows: u32) {
    let directory = tempfile::tempdir().expect("the system has room");
    let db = Database::builder(&directory).cache_bytes(cache_bytes).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut import = table.import().expect("the disk works");
    (0..rows).for_each(|i| import.add(&key(i), &[i as u8; 1000]).expect("the disk works"));
    import.finish(|_| {}).expect("the disk works");
    smol::block_on(async {
        let (sender, woken) = channel();
        let keys = (0..gets).map(|get| get * (rows / gets));
        let mut begun: BTreeMap<u32, _> = keys.map(|i| (i, Box::pin(table.get_async(key(i))))).collect();
        loop {
            begun.retain(|&i, get| {
                let waker = Waker::from(Arc::new(Numbered { number: i, woken: Mutex::new(sender.clone()) }));
                match get.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Pending => true,
                    Poll::Ready(found) => {
                        assert_eq!(found.expect("the disk works").as_deref(), Some(&[i as u8; 1000][..]));
                        false
                    }
                }
            });
            assert!(!begun.is_empty(), "the test wants a cache that is too small for all");
            if db.cache().usage().queued > 0 {
                break;
            }
            // Waits until all these reads were woken, so that the pages of all arrive before any of them goes on.
            let mut waiting: BTreeSet<u32> = begun.keys().copied().collect();
            while !waiting.is_empty() {
                waiting.remove(&woken.recv().expect("this end has a sender, too"));
            }
        }
        for i in [rows - 1, rows / 2, 0, rows - 1] {
            let found = table.get_async(key(i)).await.expect("the disk works");
            assert_eq!(found.as_deref(), Some(&[i as u8; 1000][..]));
            assert_eq!(table.get(key(i)).expect("the disk works").as_deref(), Some(&[i as u8; 1000][..]), "a thread");
        }
        for (i, get) in begun {
            assert_eq!(get.await.expect("the disk works").as_deref(), Some(&[i as u8; 1000][..]));
        }
    });
    let usage = at_rest(&db);
    assert!(usage.used_bytes <= usage.budget_bytes, "{usage:?}");
    assert_eq!((usage.pinned_bytes, usage.queued), (0, 0), "{usage:?}");
    drop(table);
    db.close().expect("the disk works");
    directory.close().expect("it is ours");
}

/// A waker that sends the number of its read.
struct Numbered {
    number: u32,
    woken: Mutex<Sender<u32>>,
}

impl Wake for Numbered {
    fn wake(self: Arc<Self>) {
        // The error is ignored: at the end, nobody receives these numbers any more.
        self.woken.lock().expect("nobody panics").send(self.number).ok();
    }
}

#[test]
fn a_read_ends_though_200_others_are_not_polled_in_a_cache_of_1_mib() {
    one_more_ends(1 << 20, 200, 20_000);
}

#[test]
fn a_read_ends_though_10000_others_are_not_polled_in_a_cache_of_64_mib() {
    one_more_ends(64 << 20, 10_000, 200_000);
}

/// Adds 1 to a counter in a transaction, as a program would do it.
async fn visit(db: &Database, table: &Table) -> larch::Result<u64> {
    db.transact_async(async |mut tx| {
        let before = tx.get_async(table, "visits").await?;
        let before = before.map_or(0, |value| u64::from_be_bytes(value[..].try_into().expect("a number has 8 bytes")));
        tx.insert(table, "visits", (before + 1).to_be_bytes())?;
        Ok(before + 1)
    })
    .await
}

#[test]
fn a_transaction_is_spawned_under_tokio_with_several_threads() {
    let Fixture { directory: _directory, db, table, .. } = Fixture::new();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("the system has threads");
    let spawned = |_| {
        let (db, table) = (db.clone(), table.clone());
        tokio::spawn(async move {
            db.transact_async(async |mut tx| {
                if tx.get_async(&table, "once").await?.is_none() {
                    tx.insert(&table, "once", "done")?;
                }
                Ok::<_, larch::Error>(())
            })
            .await?;
            visit(&db, &table).await
        })
    };
    let mut numbers = runtime.block_on(async {
        let tasks: Vec<_> = (0..20).map(spawned).collect();
        let mut numbers = Vec::new();
        for task in tasks {
            numbers.push(task.await.expect("it does not panic").expect("the disk works"));
        }
        numbers
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<u64>>());
}

#[test]
fn a_transaction_is_spawned_under_smol() {
    let Fixture { directory: _directory, db, table, .. } = Fixture::new();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (db, table) = (db.clone(), table.clone());
            smol::spawn(async move { visit(&db, &table).await })
        })
        .collect();
    let mut numbers: Vec<u64> = tasks.into_iter().map(|task| smol::block_on(task).expect("the disk works")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

#[test]
fn a_transaction_runs_in_a_handler_of_axum() {
    use axum::extract::{Request, State};
    use axum::handler::Handler;

    /// A handler that uses the same closure as the documentation.
    async fn buy(State((db, table)): State<(Database, Table)>) -> String {
        let done = db
            .transact_async(async |mut tx| {
                let before = tx.get_async(&table, "apple").await?.map_or(0, |bought| bought.len());
                tx.insert(&table, "apple", vec![b'x'; before + 1])?;
                Ok::<_, larch::Error>(before + 1)
            })
            .await;
        done.map_or_else(|error| error.to_string(), |bought| bought.to_string())
    }

    let Fixture { directory: _directory, db, table, .. } = Fixture::new();
    let app = (db.clone(), table.clone());
    let service: axum::Router = axum::Router::new().route("/buy", axum::routing::post(buy)).with_state(app.clone());
    drop(service);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("the system has threads");
    for bought in 1..=3 {
        let response = runtime.block_on(buy.call(Request::default(), app.clone()));
        let body = runtime.block_on(axum::body::to_bytes(response.into_body(), 100)).expect("it is text");
        assert_eq!(body, bought.to_string());
    }
}

#[test]
fn a_scan_is_a_stream() {
    let fixture = Fixture::new();
    let scan: Scan = fixture.snapshot.scan_async(&fixture.table, key(10)..key(20));
    let rows = smol::block_on(smol::stream::StreamExt::collect::<Vec<_>>(scan));
    let keys: Vec<Vec<u8>> = rows.into_iter().map(|row| row.expect("the disk works").0.to_vec()).collect();
    assert_eq!(keys, (10..20).map(key).collect::<Vec<_>>());
    fixture.finish();
}

#[test]
fn futures_are_sent_between_threads() {
    fn sent<T: Send>(_: &T) {}
    fn stays<T: Send + 'static>(_: &T) {}
    let fixture = Fixture::new();
    let Fixture { db, table, snapshot, .. } = &fixture;
    let all = table.select(None::<&str>).expect("none of them");
    sent(&table.get_async(b"k"));
    sent(&table.contains_key_async(b"k".to_vec()));
    sent(&table.multi_get_async([b"k"]));
    sent(&all.get_async("k"));
    sent(&all.contains_key_async("k"));
    sent(&all.multi_get_async(["k"]));
    sent(&snapshot.get_async(table, "k"));
    sent(&db.multi_get_async(table, ["k"]));
    sent(&table.insert_async("k", "1"));
    sent(&table.remove_async("k"));
    sent(&table.remove_range_async(.."k"));
    sent(&table.replace_async("k", "1"));
    stays(&db.batch().submit_async());
    stays(&db.batch().commit_async());
    let mut scan = table.scan_async(..);
    stays(&scan);
    sent(&scan.next());
    sent(&scan.next_back());
    let owned = table.clone();
    stays(&async move { owned.get_async(b"k").await.is_ok() });
    drop((scan, all));
    match std::pin::pin!(table.get_async(key(1))).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => assert!(found.expect("the disk works").is_some()),
        Poll::Pending => {}
    }
    fixture.finish();
}

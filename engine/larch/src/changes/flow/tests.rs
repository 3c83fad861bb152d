//! Tests of feeds that tasks read, with wakers that count, on machines with and without threads.

#![allow(clippy::disallowed_methods, reason = "a thread that reads while another one writes is what is tested")]

use crate::base::error::Error;
use crate::past::{Changes, Retention};
use crate::{Builder, Database, Durability, Follow};
use futures_core::Stream;
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use os::sync::atomic::{AtomicUsize, Ordering};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Counts how often its task was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn on(disk: &Arc<SimDisk>, seed: u64) -> Builder {
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), seed)).write_buffer_bytes(64 << 10)
}

fn new_disk() -> Arc<SimDisk> {
    Machine::simulated(1).1
}

/// What the stream gives now: the value of a put, or nothing.
fn polled(changes: &mut Changes, waker: &Waker) -> Option<String> {
    match Pin::new(changes).poll_next(&mut Context::from_waker(waker)) {
        Poll::Ready(Some(change)) => Some(value(&change.expect("the disk works"))),
        Poll::Ready(None) => panic!("a feed never ends"),
        Poll::Pending => None,
    }
}

fn value(change: &crate::past::Change) -> String {
    match change.kind() {
        crate::past::ChangeKind::Put { value, .. } => String::from_utf8_lossy(value.whole()).into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_feed_that_waits_is_woken_by_a_commit_and_by_nothing_else() {
    for durability in [Durability::Synced, Durability::Buffered] {
        let disk = new_disk();
        let db = on(&disk, 1).durability(durability).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let mut changes = db.changes(db.version()).expect("there is such a version");
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let woken = || count.0.swap(0, Ordering::Relaxed);
        assert_eq!(polled(&mut changes, &waker), None);
        for number in 0..50 {
            assert_eq!((polled(&mut changes, &waker), woken()), (None, 0), "nobody has committed {number}");
            table.insert("a", number.to_string()).expect("it is taken");
            // On this machine, jobs are polled when something is written.
            db.core().background.drive();
            assert_eq!(woken(), 1, "{durability:?} {number}");
            assert_eq!(polled(&mut changes, &waker), Some(number.to_string()));
            assert_eq!(changes.position(), db.version());
            assert_eq!(db.durable_version(), db.version(), "only what is durable is given");
            woken();
        }
    }
}

#[test]
fn a_future_that_is_dropped_loses_no_change_and_gives_none_twice() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    db.retain(Retention::Everything).expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut changes = db.changes(db.version()).expect("there is such a version");
    let waker = Waker::from(std::sync::Arc::new(Count::default()));
    let mut context = Context::from_waker(&waker);
    let mut expected = 0;
    for round in 0..200_u64 {
        let before = expected;
        match round % 5 {
            0 => assert!(pin!(changes.next_change_async()).poll(&mut context).is_pending(), "dropped while it waits"),
            1 => assert!(pin!(changes.next_commit_async()).poll(&mut context).is_pending(), "dropped while it waits"),
            _ => {}
        }
        table.insert("a", expected.to_string()).expect("it is taken");
        let mut batch = db.batch();
        batch.insert(&table, "a", (expected + 1).to_string());
        batch.insert(&table, "b", (expected + 2).to_string());
        batch.commit().expect("the disk works");
        match round % 7 {
            0 => db.flush().expect("the disk works"),
            1 => db.compact().expect("the disk works"),
            _ => {}
        }
        let given = |change: &crate::past::Change| value(change).parse::<u64>().expect("it is a number");
        while expected < before + 3 {
            // All forms go on where another one stopped.
            match (round + expected) % 3 {
                0 => {
                    let change = changes.next_change().expect("the disk works").expect("it is durable");
                    assert_eq!(given(&change), expected);
                    expected += 1;
                }
                1 => {
                    let Poll::Ready(change) = pin!(changes.next_change_async()).poll(&mut context) else {
                        panic!("the change {expected} is there");
                    };
                    assert_eq!(given(&change.expect("the disk works")), expected);
                    expected += 1;
                }
                _ => {
                    let Poll::Ready(commit) = pin!(changes.next_commit_async()).poll(&mut context) else {
                        panic!("the commit of {expected} is there");
                    };
                    for change in commit.expect("the disk works") {
                        assert_eq!(given(&change), expected);
                        expected += 1;
                    }
                }
            }
        }
    }
    assert_eq!(changes.position(), db.version());
}

#[test]
fn a_filter_lets_a_task_sleep_through_other_commits() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let [a, b] = ["a", "b"].map(|name| db.table(name).expect("the disk works"));
    let changes = db.changes(db.version()).expect("there is such a version");
    let mut changes = changes.of(&a).expect("it is of the database").within("m"..);
    let count = std::sync::Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert_eq!(polled(&mut changes, &waker), None);
    for number in 0..20 {
        b.insert("z", number.to_string()).expect("it is taken");
        a.insert("a", number.to_string()).expect("it is taken");
        db.core().background.drive();
    }
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    let passed = changes.position();
    assert_eq!(passed, db.version(), "whoever begins there misses nothing");
    a.insert("n", "wanted").expect("it is taken");
    db.core().background.drive();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(changes.position(), passed, "it was found and not given yet");
    assert_eq!(polled(&mut changes, &waker).as_deref(), Some("wanted"));
    assert_eq!(changes.position(), db.version());
}

#[test]
fn a_job_that_finds_the_feed_in_use_looks_again_after_that() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut changes = db.changes(db.version()).expect("there is such a version");
    let count = std::sync::Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert_eq!(polled(&mut changes, &waker), None);
    let feed = changes.feed.clone();
    let held = feed.lock();
    table.insert("a", "1").expect("it is taken");
    db.core().background.drive();
    assert_eq!(count.0.load(Ordering::Relaxed), 0, "the job has not waited");
    drop(held);
    assert!(changes.wait(Duration::ZERO).expect("it is open"), "there is a commit");
    db.core().background.drive();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(polled(&mut changes, &waker).as_deref(), Some("1"));
}

#[test]
fn after_a_panic_a_task_gets_an_error_and_a_new_feed_goes_on() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut changes = db.changes(db.version()).expect("there is such a version");
    let begin = changes.position();
    table.insert("a", "1").expect("it is taken");
    let look = || changes.feed.lock().look(db.core(), |_| std::panic::resume_unwind(Box::new("a panic")));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(look)).is_err());
    let waker = Waker::from(std::sync::Arc::new(Count::default()));
    for _ in 0..2 {
        let Poll::Ready(outcome) = pin!(changes.next_change_async()).poll(&mut Context::from_waker(&waker)) else {
            panic!("it is known at once");
        };
        assert!(outcome.expect_err("it lasts").to_string().contains("panicked"));
    }
    assert!(changes.next_change().is_err());
    assert_eq!(changes.position(), begin);
    let mut changes = db.changes(begin).expect("there is such a version");
    assert_eq!(polled(&mut changes, &waker).as_deref(), Some("1"));
}

#[test]
fn a_task_reads_what_a_follower_shows() {
    for follow in [Follow::Commits, Follow::Files] {
        let disk = new_disk();
        let db = on(&disk, 1).open().expect("the disk works");
        db.retain(Retention::Everything).expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let follower = on(&disk, 2).read_only(true).follow(follow).open().expect("the disk works");
        let mut changes = follower.changes(follower.version()).expect("there is such a version");
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        for number in 0..30 {
            assert_eq!(polled(&mut changes, &waker), None, "{follow:?}");
            count.0.store(0, Ordering::Relaxed);
            table.insert("a", number.to_string()).expect("it is taken");
            if follow == Follow::Files || number % 3 == 0 {
                db.flush().expect("the disk works");
            }
            follower.catch_up().expect("the disk works");
            follower.core().background.drive();
            assert_eq!(count.0.load(Ordering::Relaxed), 1, "{follow:?} {number}");
            assert_eq!(polled(&mut changes, &waker), Some(number.to_string()), "{follow:?}");
        }
    }
}

#[test]
fn changes_that_are_gone_are_an_error_of_the_task() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let begin = db.version();
    table.insert("a", "1").expect("it is taken");
    db.flush().expect("the disk works");
    let mut changes = db.changes(begin).expect("there is such a version");
    let waker = Waker::from(std::sync::Arc::new(Count::default()));
    for _ in 0..2 {
        let Poll::Ready(outcome) = pin!(changes.next_change_async()).poll(&mut Context::from_waker(&waker)) else {
            panic!("it is known at once");
        };
        assert!(matches!(outcome, Err(Error::ChangesGone { after, .. }) if after == begin), "it lasts");
    }
}

#[test]
fn a_feed_that_is_dropped_keeps_nothing_of_its_database() {
    let disk = new_disk();
    for number in 0..20 {
        let db = on(&disk, number).open().expect("the last database was closed");
        let table = db.table("t").expect("the disk works");
        let mut feeds: Vec<Changes> =
            (0..3).map(|_| db.changes(db.version()).expect("there is such a version")).collect();
        let waker = Waker::from(std::sync::Arc::new(Count::default()));
        feeds.iter_mut().for_each(|feed| assert_eq!(polled(feed, &waker), None));
        feeds.pop();
        table.insert("a", number.to_string()).expect("it is taken");
        drop(db);
        feeds.iter_mut().for_each(|feed| assert_eq!(polled(feed, &waker), Some(number.to_string())));
    }
}

#[test]
fn tasks_on_a_machine_with_threads_get_every_commit_in_order() {
    const COMMITS: u64 = 2_000;
    let db = Database::in_memory().expect("there is memory");
    let table = db.table("t").expect("there is memory");
    let begin = db.version();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut changes = db.changes(begin).expect("there is such a version");
                smol::block_on(async {
                    for number in 0..COMMITS {
                        let change = changes.next_change_async().await.expect("there is memory");
                        assert_eq!(value(&change), number.to_string());
                    }
                });
            });
        }
        for number in 0..COMMITS {
            table.insert((number % 10).to_string(), number.to_string()).expect("it is taken");
        }
    });
}

//! Counts what a client's thread allocates for a get and a put of a cached row, with and without a transaction.

#![allow(clippy::disallowed_types, reason = "the database is a real one")]

use harness::{Checked, Ended, Opening, Table, Target};
use kit::Scratch;
use kit::allocations::{Counting, Thread};

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

/// The fewest allocations of `work` in a hundred runs. Some runs allocate more because they grow a map or a buffer
/// that later runs reuse.
fn least(mut work: impl FnMut()) -> u64 {
    (0..100).map(|_| Thread::count(&mut work)).min().expect("there are some")
}

#[test]
fn a_transaction_allocates_little_more_than_its_calls_without_it() {
    let scratch = Scratch::new("larch-allocations");
    let target = format!("larch:{}?durability=buffered", scratch.path().join("database").display());
    let target = Target::parse(&target).expect("a good target");
    let table = Table::numbered("t", "f", 1);
    let store = (stores::larch::SCHEME.open)(&target, &table, Opening::Recreate).expect("opened");
    let (key, value) = ([b'k'; 20], [b'v'; 100]);
    let counts = [Checked::ReadsAndWrites, Checked::Writes].map(|checked| {
        let mut session = store.transactions(checked).expect("it has transactions");
        session.increment(&key).expect("the row is there now");
        let apart = least(|| session.apart(&key, &value).expect("it is there"));
        let together = least(|| {
            assert_eq!(session.together(&key, &value).expect("it is there"), Ended::Committed);
        });
        session.apart(&key, &0_u64.to_le_bytes()).expect("a counter again");
        (apart, together)
    });
    println!(
        "a get and a put allocate (apart, together) {:?}, without checks of reads {:?} times",
        counts[0], counts[1]
    );
    // A put alone is no batch, and allocates nothing. The commit of a transaction is a batch.
    for (apart, together) in counts {
        assert!(together <= apart + 5, "{together} in a transaction, {apart} without");
    }
    store.close().expect("closed");
}

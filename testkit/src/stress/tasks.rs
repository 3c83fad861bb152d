//! Readers that run as futures: on an executor of one thread, on one of several threads, or polled once and then
//! left alone.

use super::{Round, readers};
use larch::rows::AtMost;
use larch::{Readable, Result, Scan, Snapshot};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Tasks of an executor.
const TASKS: usize = 60;

/// Futures that are polled once and kept.
const PARKED: usize = 40;

/// A boxed future of a read.
type TaskRead<'r> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'r>>;

/// Runs many tasks on this thread.
pub fn on_one_thread(round: &Round, mut rng: Xoshiro256PlusPlus) {
    while round.goes_on() {
        let executor = smol::LocalExecutor::new();
        smol::block_on(executor.run(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|_| {
                    let rng = Xoshiro256PlusPlus::seed_from_u64(rng.random());
                    executor.spawn(async move { task(round, rng).await })
                })
                .collect();
            for (i, task) in tasks.into_iter().enumerate() {
                // One task in five is cancelled wherever it is, and waited for. Otherwise the executor might be
                // dropped while another thread wakes the cancelled task. The task's future would then never be
                // dropped, and its snapshot would keep the database open.
                if i % 5 == 4 {
                    task.cancel().await;
                } else {
                    task.await;
                }
            }
        }));
    }
}

/// Runs the same number of tasks on an executor with several threads, which take tasks from each other.
pub fn on_many_threads(round: &Round, mut rng: Xoshiro256PlusPlus) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("the system has room for two threads");
    while round.goes_on() {
        let (db, left, right) = (round.db.clone(), round.left.clone(), round.right.clone());
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let (db, left, right) = (db.clone(), left.clone(), right.clone());
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(rng.random());
                runtime.spawn(async move {
                    let snapshot = db.snapshot();
                    let key = readers::some_key(&mut rng);
                    let a = snapshot.get_async(&left, &key).await?;
                    let b = snapshot.get_async(&right, &key).await?;
                    assert!(a.as_deref() == b.as_deref(), "values of {key} at {:?}", snapshot.version());
                    Ok(())
                })
            })
            .collect();
        for (i, task) in tasks.into_iter().enumerate() {
            if i % 7 == 6 {
                task.abort();
            } else {
                round.expect("task", runtime.block_on(task).expect("the task was not aborted"));
            }
        }
    }
}

async fn task(round: &Round, mut rng: Xoshiro256PlusPlus) {
    let snapshot = round.db.snapshot();
    let from = readers::some_key(&mut rng);
    match rng.random_range(0..3) {
        0 => {
            round.expect("get async", get(round, &snapshot, &from).await);
        }
        1 => {
            let keys: Vec<String> = (0..10).map(|_| readers::some_key(&mut rng)).collect();
            round.expect("multi get async", multi_get(round, &snapshot, &keys).await);
        }
        _ => {
            round.expect("scan async", scan(round, &snapshot, &from, rng.random_range(1..60)).await);
        }
    }
}

async fn get(round: &Round, snapshot: &Snapshot, key: &str) -> Result<()> {
    let a = snapshot.get_async(&round.left, key).await?;
    let b = snapshot.get_async(&round.right, key).await?;
    assert!(a.as_deref() == b.as_deref(), "values of {key} at {:?}", snapshot.version());
    Ok(())
}

async fn multi_get(round: &Round, snapshot: &Snapshot, keys: &[String]) -> Result<()> {
    let a = snapshot.multi_get_async(&round.left, keys).await?;
    let b = snapshot.multi_get_async(&round.right, keys).await?;
    for ((key, a), b) in keys.iter().zip(a).zip(b) {
        assert!(a.as_deref() == b.as_deref(), "values of {key} at {:?}", snapshot.version());
    }
    Ok(())
}

async fn scan(round: &Round, snapshot: &Snapshot, from: &str, rows: usize) -> Result<()> {
    let mut left = Scan::from(snapshot.range(&round.left, from..));
    let mut right = Scan::from(snapshot.range(&round.right, from..));
    for _ in 0..rows {
        let (a, b) = (left.next().await.transpose()?, right.next().await.transpose()?);
        let key =
            |row: &Option<(larch::Key, larch::Value)>| row.as_ref().map(|(key, _)| key.escape_ascii().to_string());
        assert_eq!(key(&a), key(&b), "rows of the pair at {:?}", snapshot.version());
        let Some(((key, a), (_, b))) = a.zip(b) else { break };
        assert!(a[..] == b[..], "values of {} at {:?}", key.escape_ascii(), snapshot.version());
    }
    Ok(())
}

/// Polls some futures once and leaves them alone. All other futures must still end.
pub fn parked(round: &Round, mut rng: Xoshiro256PlusPlus) {
    while round.goes_on() {
        let snapshot = &round.db.snapshot();
        let keys: Vec<String> = (0..=PARKED).map(|_| readers::some_key(&mut rng)).collect();
        let mut parked: Vec<TaskRead<'_>> = Vec::new();
        for key in &keys[..PARKED] {
            let mut read: TaskRead<'_> = Box::pin(get(round, snapshot, key));
            match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => parked.push(read),
                Poll::Ready(outcome) => {
                    round.expect("get async", outcome);
                }
            }
        }
        round.expect("get beside parked", smol::block_on(get(round, snapshot, &keys[PARKED])));
        round.expect("prefetch beside parked", round.left.prefetch(keys[0].as_str().., AtMost::rows(20)).map(drop));
        // Half of the parked futures now run to their end, and the others are dropped.
        let dropped = parked.split_off(parked.len() / 2);
        for read in parked {
            round.expect("parked", smol::block_on(read));
        }
        drop(dropped);
    }
}

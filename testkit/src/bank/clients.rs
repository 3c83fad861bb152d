//! The clients that make transfers: threads, or async tasks on a few threads.

use super::ledger::{Ledger, Number, Transfer};
use larch::{Durability, Error, Result};
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

/// Threads that run async tasks.
const EXECUTORS: u64 = 4;

/// Who transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// This number of threads.
    Threads(u64),
    /// This number of async tasks.
    Tasks(u64),
}

impl Clients {
    /// The kinds and numbers of clients that a bank must bear.
    pub const ALL: [Self; 2] = [Self::Threads(16), Self::Tasks(1000)];
}

/// What the clients learned about their transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Those that took place.
    pub acknowledged: BTreeSet<Number>,
    /// Those that did not.
    pub failed: BTreeSet<Number>,
    /// Those that may have.
    pub unknown: BTreeSet<Number>,
}

/// An open bank with its clients.
pub struct Office {
    ledger: Ledger,
    /// The durability of all transfers, or `None` if each transfer draws its own.
    durability: Option<Durability>,
    is_closed: AtomicBool,
    /// Number of the next transfer.
    next: AtomicU64,
    acknowledged: AtomicU64,
    failed: AtomicU64,
    heard: Mutex<Heard>,
    /// Called with the number of each acknowledged transfer.
    acknowledge: Box<dyn Fn(Number) + Send + Sync>,
}

impl Office {
    /// A bank over the tables of `ledger`. Transfers are numbered from `first` on. `acknowledge` is called with the
    /// number of each acknowledged transfer.
    pub fn new(
        ledger: Ledger,
        durability: Option<Durability>,
        first: Number,
        acknowledge: impl Fn(Number) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            ledger,
            durability,
            is_closed: AtomicBool::new(false),
            next: AtomicU64::new(first),
            acknowledged: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            heard: Mutex::default(),
            acknowledge: Box::new(acknowledge),
        })
    }

    /// The bank.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Tells the clients to end.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Whether the clients were told to end, or a client panicked.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// How many transfers were acknowledged and how many failed, in this order.
    pub fn counts(&self) -> (u64, u64) {
        (self.acknowledged.load(Ordering::Acquire), self.failed.load(Ordering::Acquire))
    }

    /// What clients have heard.
    pub fn heard(&self) -> Heard {
        self.heard.lock().expect("no client panics with the lock").clone()
    }

    /// Makes transfers until the bank is closed or refuses writes.
    pub fn serve(self: &Arc<Self>, clients: Clients, rng: &mut Xoshiro256PlusPlus) {
        let (threads, tasks) = match clients {
            Clients::Threads(threads) => (threads, 0),
            Clients::Tasks(tasks) => (EXECUTORS, tasks / EXECUTORS),
        };
        let running: Vec<_> = (0..threads)
            .map(|_| {
                let (office, rng) = (self.clone(), Xoshiro256PlusPlus::seed_from_u64(rng.random()));
                thread::spawn(move || {
                    let _guard = CloseOnPanic(&office);
                    if tasks == 0 { office.work(rng) } else { office.work_by_tasks(tasks, rng) }
                })
            })
            .collect();
        for thread in running {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }

    fn work(&self, mut rng: Xoshiro256PlusPlus) {
        while !self.is_closed() {
            let transfer = self.transfer(&mut rng);
            let outcome = self.ledger.transfer(&transfer);
            if !self.hear(transfer.number, outcome) {
                break;
            }
            if rng.random_range(0..200) == 0 {
                self.ledger.expect_total().expect("reads go on");
            }
        }
    }

    fn work_by_tasks(&self, tasks: u64, mut rng: Xoshiro256PlusPlus) {
        let executor = smol::LocalExecutor::new();
        smol::block_on(executor.run(async {
            let work = async |mut rng: Xoshiro256PlusPlus| {
                while !self.is_closed() {
                    let transfer = self.transfer(&mut rng);
                    let outcome = self.ledger.transfer_async(&transfer).await;
                    if !self.hear(transfer.number, outcome) {
                        break;
                    }
                    if rng.random_range(0..200) == 0 {
                        self.ledger.expect_total().expect("reads go on");
                    }
                }
            };
            let running: Vec<_> =
                (0..tasks).map(|_| executor.spawn(work(Xoshiro256PlusPlus::seed_from_u64(rng.random())))).collect();
            for task in running {
                task.await;
            }
        }));
    }

    fn transfer(&self, rng: &mut Xoshiro256PlusPlus) -> Transfer {
        let drawn = if rng.random() { Durability::Synced } else { Durability::Buffered };
        Transfer::of(self.next.fetch_add(1, Ordering::Relaxed), self.durability.unwrap_or(drawn), rng)
    }

    /// Notes the outcome of a transfer. Returns whether the clients may go on.
    fn hear(&self, number: Number, outcome: Result<()>) -> bool {
        let mut heard = self.heard.lock().expect("no client panics with the lock");
        match outcome {
            Ok(()) => {
                heard.acknowledged.insert(number);
                drop(heard);
                (self.acknowledge)(number);
                self.acknowledged.fetch_add(1, Ordering::Release);
                true
            }
            Err(Error::OutcomeUnknown { .. }) => {
                heard.unknown.insert(number);
                false
            }
            Err(error) => {
                assert!(!error.is_corruption(), "a fault is not corruption: {error}");
                heard.failed.insert(number);
                self.failed.fetch_add(1, Ordering::Release);
                !matches!(error, Error::WritesStopped(_))
            }
        }
    }
}

/// Ends all other clients when one client panics.
struct CloseOnPanic<'o>(&'o Office);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}

/// Compares the accounts and records of the bank with the outcomes that its clients were told.
///
/// # Panics
///
/// Panics if an acknowledged transfer is missing, or if a transfer took place that failed or that no client knows.
pub fn audit(ledger: &Ledger, heard: &Heard) {
    let found: BTreeSet<Number> = ledger.audit().expect("the disk works").into_iter().collect();
    let Heard { acknowledged, failed, unknown } = heard;
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged transfers are lost: {lost:?}", lost.len(), acknowledged.len());
    let undone: Vec<_> = failed.intersection(&found).collect();
    assert!(undone.is_empty(), "transfers that failed took place: {undone:?}");
    let others: Vec<_> = found.iter().filter(|one| !acknowledged.contains(one) && !unknown.contains(one)).collect();
    assert!(others.is_empty(), "transfers took place of which nobody heard: {others:?}");
}

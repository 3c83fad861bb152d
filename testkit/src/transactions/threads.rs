//! Random transactions on threads and the disk of the real machine, without faults. How the threads interleave does
//! not follow from the seed.

#![allow(clippy::disallowed_methods, reason = "threads of the real machine are what is tested")]

use super::beside::Beside;
use super::{Summary, expect_clean, found, has_indexes, levels, reader, skews, tiny_options};
use crate::isolation::engine::EngineStore;
use crate::isolation::indexes;
use crate::isolation::plan::{Levels, Plan};
use crate::isolation::player::{Player, Tally};
use crate::isolation::transaction::{Isolation, Transaction};
use crate::rerun::Rerun;
use kit::Scratch;
use larch::{Durability, Version};
use os::sync::atomic::{AtomicUsize, Ordering};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::thread;

/// Phases of a run.
const PHASES: usize = 4;

/// Transactions of a phase.
const TRANSACTIONS: usize = 1500;

/// Runs `seed` on `threads` threads.
///
/// # Panics
///
/// Panics if the history has an anomaly, or if a commit is missing after the database was opened again.
pub fn on_threads(seed: u64, threads: usize) -> Summary {
    let _rerun = Rerun::of_threads(seed, threads);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (scratch, tally) = (Scratch::new("transactions"), Tally::new());
    let mut options = tiny_options(seed);
    // Commits that do not sync are faster, so the transactions of different threads conflict more often.
    options.durability = if rng.random_range(0..4) == 0 { Durability::Synced } else { Durability::Buffered };
    let levels = levels(seed);
    let mut summary = Summary::default();
    let (mut history, mut base) = (Vec::new(), Version(0));
    for phase in 0..=PHASES {
        let db = options.builder(scratch.join("db")).extractors(indexes::extractor).open().expect("the disk works");
        let store = EngineStore::new(db, &options, None, rng.random()).expect("the disk works");
        if phase == 0 && has_indexes(seed) {
            store.create_indexes().expect("the disk works");
        }
        indexes::expect_clean(store.database(), store.table(0));
        let there = store.database().version();
        if phase > 0 {
            // A reader of the reopened database, which still belongs to the history of the previous phase.
            history.extend(Player::play(&store, &reader(), &tally));
            expect_clean(&history, base, there);
            summary.skews += if levels == Levels::All(Isolation::Snapshot) { skews(&history) } else { 0 };
            summary.reopened += 1;
        }
        if phase == PHASES {
            break;
        }
        (history, base) = (vec![found(&store, &tally).expect("the disk works")], there);
        let plan = Plan::of(rng.random(), TRANSACTIONS, levels);
        history.extend(Player::play(&store, &plan.first, &tally));
        summary.beside += play(&store, &plan, &tally, threads, &mut history, &mut rng);
        summary.ends += store.ends();
    }
    summary
}

/// Plays the transactions of a plan on threads, each of which takes the next transaction that no thread has begun.
/// Returns how many other things happened meanwhile.
fn play(
    store: &EngineStore,
    plan: &Plan,
    tally: &Tally,
    threads: usize,
    history: &mut Vec<Transaction>,
    rng: &mut Xoshiro256PlusPlus,
) -> u64 {
    let next = &AtomicUsize::new(0);
    let work = |seed: u64| {
        move || {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut beside = Beside::among_threads(store, tally, rng.random());
            let (mut seen, mut count) = (Vec::new(), 0);
            while let Some(planned) = plan.transactions.get(next.fetch_add(1, Ordering::Relaxed)) {
                seen.extend(Player::play(store, planned, tally));
                if rng.random_range(0..16) == 0 {
                    beside.happen(&mut seen);
                    count += 1;
                }
            }
            (seen, count)
        }
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work(rng.random()))).collect();
        let mut happened = 0;
        for thread in running {
            let (seen, count) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            history.extend(seen);
            happened += count;
        }
        happened
    })
}

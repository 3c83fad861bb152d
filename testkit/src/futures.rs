//! Many futures read at the same time, while their reads of the disk are held back and complete in random order.
//! Some futures are polled whenever they are woken, some are left unpolled for ever, and some are dropped. Threads
//! read beside them, and some reads fail. Every result is compared with the model. Once no read fails any more,
//! every polled future and every waiting thread must end, whatever the other futures do.
//!
//! Wakers are called and futures are polled on several threads, but only one thread runs at a time, so everything
//! follows from the seed.

#![allow(clippy::disallowed_methods, reason = "a thread is waited for at once, so that a run can be repeated")]

use crate::history::moves::{Move, Moved};
use crate::history::reader::{Reader, Scanned, Seen, Wanted};
use crate::history::{DIRECTORY, History};
use larch::{Database, Result, Snapshot, Version};
use os::Machine;
use os::sim::SimReads;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

/// Futures that live at a time.
const MOST_FUTURES: usize = 30;

/// A polled future that has not ended after this many polls of all futures counts as stuck.
const MOST_POLLS: u64 = 1_000_000;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Futures that ended.
    pub ended: u64,
    /// The futures that ended with an error.
    pub failed: u64,
    /// Futures that were dropped before their end.
    pub dropped: u64,
    /// How often a future had to wait for memory while another future was left unpolled.
    pub queued: u64,
}

/// Reads what `history`, which must be open, has written. Each of `steps` steps begins, polls, abandons or drops one
/// future.
pub fn read_by_futures(seed: u64, steps: usize, mut history: History) -> Met {
    history.close().expect("the disk does not fail");
    if history.model().tables().is_empty() {
        return Met::default();
    }
    let reads = SimReads::new(seed);
    let machine = Machine { reads: reads.clone(), ..Machine::simulated_on(history.disk().clone(), seed) };
    let db = history.options().builder(DIRECTORY).machine(machine).open().expect("the disk does not fail");
    assert_eq!(db.version(), history.model().newest(), "everything is in files");
    let snapshot = db.snapshot();
    let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut crowd =
        Crowd { rng, history, db, snapshot, reads, tasks: Vec::new(), may_fail: false, met: Met::default() };
    (0..steps).for_each(|_| crowd.step());
    crowd.history.disk().clear_faults();
    crowd.finish_polled();
    crowd.tasks.iter_mut().for_each(|task| task.is_left = false);
    crowd.finish_polled();
    crowd.rest()
}

struct Crowd {
    rng: Xoshiro256PlusPlus,
    history: History,
    db: Database,
    snapshot: Snapshot,
    reads: Arc<SimReads>,
    tasks: Vec<Task>,
    /// Whether a read was made to fail.
    may_fail: bool,
    met: Met,
}

type Read = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

struct Task {
    future: Read,
    woken: Arc<Woken>,
    /// Whether the future is left unpolled from now on, even if it is woken.
    is_left: bool,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Crowd {
    fn step(&mut self) {
        let left = self.tasks.iter().filter(|task| task.is_left).count();
        self.met.queued += u64::from(left > 0 && self.db.cache().usage().queued > 0);
        match self.rng.random_range(0..20) {
            0..5 if self.tasks.len() < MOST_FUTURES => {
                let future = self.begin();
                let woken = Arc::new(Woken(AtomicBool::new(true)));
                self.tasks.push(Task { future, woken, is_left: false });
            }
            0..11 => self.poll_one(),
            11..15 => drop(self.end_read()),
            15 | 16 => {
                if let Some(i) = self.any() {
                    self.tasks[i].is_left ^= true;
                }
            }
            17 => {
                if let Some(i) = self.any() {
                    drop(self.tasks.swap_remove(i));
                    self.met.dropped += 1;
                }
            }
            18 => self.read_on_a_thread(),
            _ => {
                let disk = self.history.disk();
                if self.rng.random() {
                    self.may_fail = true;
                    disk.fail_operation(self.rng.random_range(1..5), ErrorKind::Other);
                } else {
                    disk.clear_faults();
                }
            }
        }
    }

    fn any(&mut self) -> Option<usize> {
        self.tasks.len().checked_sub(1).map(|last| self.rng.random_range(0..=last))
    }

    /// Begins a read of one key, of some keys, of a range, or by a cursor. The table and the parts of rows are
    /// random.
    fn begin(&mut self) -> Read {
        let (reader, name) = self.reader();
        let newest = self.history.model().newest();
        match self.rng.random_range(0..5) {
            0 | 1 => {
                let key = self.history.key();
                let expected = seen(&reader, self.history.model().get(&name, &key, newest));
                Box::pin(async move {
                    let row = reader.get_async(&key).await?;
                    assert_eq!(owned(row), expected, "{} of {name:?} read by {reader:?}", key.escape_ascii());
                    Ok(())
                })
            }
            2 => {
                let keys: Vec<Vec<u8>> = (0..self.rng.random_range(2..12)).map(|_| self.history.key()).collect();
                let expect = |key: &Vec<u8>| seen(&reader, self.history.model().get(&name, key, newest));
                let expected: Vec<_> = keys.iter().map(expect).collect();
                Box::pin(async move {
                    let rows: Vec<_> = reader.multi_get_async(&keys).await?.into_iter().map(owned).collect();
                    assert_eq!(rows, expected, "many keys of {name:?} read by {reader:?}");
                    Ok(())
                })
            }
            3 => self.begin_moves(&reader, &name, newest),
            _ => self.begin_scan(reader, name, newest),
        }
    }

    /// Begins some moves of a cursor.
    fn begin_moves(&mut self, reader: &Reader, name: &str, newest: Version) -> Read {
        let range = self.history.range();
        let mut moved =
            Moved::new(reader, name, range.clone(), self.history.model().range(name, range.clone(), newest));
        let count = self.rng.random_range(1..20);
        let moves: Vec<Move> = (0..count).map(|_| Move::any(&mut self.rng, self.history.key())).collect();
        Box::pin(async move {
            for to in &moves {
                moved.go_async(to).await?;
            }
            Ok(())
        })
    }

    /// Begins to read a range from both ends. It may stop before the end.
    fn begin_scan(&mut self, reader: Reader, name: String, newest: Version) -> Read {
        let (range, rows, back) = (self.history.range(), self.rng.random_range(1..60), self.rng.random_range(2..6));
        let row = |(key, value): (&[u8], &[u8])| (key.to_vec(), seen(&reader, Some(value)));
        let mut expected: VecDeque<_> = self.history.model().range(&name, range.clone(), newest).map(row).collect();
        Box::pin(async move {
            let mut scanned = Scanned::from(reader.range(range.clone()));
            for i in 0..rows {
                let (row, expected) = match i % back {
                    0 => (scanned.next_back().await, expected.pop_back()),
                    _ => (scanned.next().await, expected.pop_front()),
                };
                let row = row.transpose()?.map(|(key, seen)| (key.to_vec(), owned(Some(seen))));
                assert_eq!(row, expected, "{range:?} of {name:?} read by {reader:?}");
                if row.is_none() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn reader(&mut self) -> (Reader, String) {
        let name = self.history.model().tables().choose(&mut self.rng).expect("there is a table").clone();
        let table = self.db.existing_table(&name).expect("the table can be looked up").expect("it is in the model");
        let wanted = Wanted::any(&mut self.rng, table.options().groups.len());
        (Reader::new(&table, Some(&self.snapshot), wanted), name)
    }

    /// Polls one of the woken futures that are not left unpolled.
    fn poll_one(&mut self) {
        let is_woken = |task: &Task| !task.is_left && task.woken.0.load(Ordering::Relaxed);
        let woken: Vec<usize> = (0..self.tasks.len()).filter(|&i| is_woken(&self.tasks[i])).collect();
        let Some(&i) = woken.choose(&mut self.rng) else { return };
        let elsewhere = self.rng.random_range(0..4) == 0;
        let task = &mut self.tasks[i];
        task.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(task.woken.clone());
        let Poll::Ready(outcome) =
            on_a_thread(elsewhere, || task.future.as_mut().poll(&mut Context::from_waker(&waker)))
        else {
            return;
        };
        drop(self.tasks.swap_remove(i));
        self.met.ended += 1;
        self.met.failed += u64::from(outcome.is_err());
        self.expect_only_faults(outcome);
    }

    /// Completes one held-back read. Returns false if no read is held back.
    fn end_read(&mut self) -> bool {
        let elsewhere = self.rng.random_range(0..4) == 0;
        on_a_thread(elsewhere, || self.reads.step())
    }

    fn read_on_a_thread(&mut self) {
        let (reader, name) = self.reader();
        let key = self.history.key();
        let expected = seen(&reader, self.history.model().get(&name, &key, self.history.model().newest()));
        let row = on_a_thread(true, || reader.get(&key));
        let outcome = row.map(|row| assert_eq!(owned(row), expected, "{} of {name:?}", key.escape_ascii()));
        self.expect_only_faults(outcome);
    }

    fn expect_only_faults(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            assert!(self.may_fail && !error.is_corruption(), "a read failed: {error}");
        }
    }

    /// Polls all futures that are not left unpolled, each time they are woken, until they have ended.
    fn finish_polled(&mut self) {
        let mut polls = 0;
        while self.tasks.iter().any(|task| !task.is_left) {
            let is_woken = |task: &Task| !task.is_left && task.woken.0.load(Ordering::Relaxed);
            if self.tasks.iter().any(is_woken) && self.rng.random() {
                self.poll_one();
                polls += 1;
                assert!(polls < MOST_POLLS, "futures do not end: {}", self.told());
            } else {
                let has_ended = self.end_read();
                assert!(has_ended || self.tasks.iter().any(is_woken), "no future is woken: {}", self.told());
            }
        }
    }

    fn told(&self) -> String {
        let left = self.tasks.iter().filter(|task| task.is_left).count();
        format!("{} futures, {left} left unpolled, {:?}", self.tasks.len(), self.db.cache().usage())
    }

    /// Drops all futures, and checks that they leave nothing behind.
    fn rest(self) -> Met {
        self.reads.finish();
        let usage = self.db.cache().usage();
        assert_eq!((usage.pinned_bytes, usage.held_bytes, usage.in_flight_bytes, usage.queued), (0, 0, 0, 0));
        assert!(usage.used_bytes <= usage.budget_bytes, "{usage:?}");
        drop(self.snapshot);
        self.db.close().expect("no operation fails any more");
        self.met
    }
}

/// What `reader` should return for a row.
fn seen(reader: &Reader, value: Option<&[u8]>) -> Option<Vec<Vec<u8>>> {
    value.map(|value| reader.of(value).into_iter().map(<[u8]>::to_vec).collect())
}

fn owned(seen: Option<Seen>) -> Option<Vec<Vec<u8>>> {
    seen.map(|seen| seen.iter().map(|part| part.to_vec()).collect())
}

/// Calls `act` on this thread, or on another thread while this thread waits for it.
fn on_a_thread<T: Send>(elsewhere: bool, act: impl FnOnce() -> T + Send) -> T {
    if !elsewhere {
        return act();
    }
    thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

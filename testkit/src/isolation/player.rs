//! Plays planned transactions on a store, and records what they did and what they saw.
//!
//! [`play`] takes the steps of a plan in the order of the plan, on one thread. On real threads, each thread plays
//! one [`Player`] after the other. All players share the same [`Tally`].

use super::plan::{Plan, PlannedTransaction, Step};
use super::store::{Commit, OpenTransaction, Store};
use super::transaction::{Mark, Operation, Outcome, Place, Transaction};
use os::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Gives numbers to transactions, values and events. All threads share it.
#[derive(Debug, Default)]
pub struct Tally {
    transactions: AtomicU64,
    marks: AtomicU64,
    events: AtomicU64,
}

impl Tally {
    /// All numbers start at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the next transaction.
    pub fn transaction(&self) -> u64 {
        self.transactions.fetch_add(1, Ordering::Relaxed)
    }

    /// A mark that nobody has written yet.
    pub fn mark(&self) -> Mark {
        Mark(self.marks.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of the next event. All threads share one order of events, which agrees with what one
    /// thread can know that another one did before.
    pub fn event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::SeqCst)
    }
}

/// Plays a plan step by step. The first transaction of the plan runs before all others. If a transaction meets an
/// error, it is dropped, and the others go on.
pub fn play<S: Store>(store: &S, plan: &Plan, tally: &Tally) -> Vec<Transaction> {
    play_beside(store, plan, tally, &mut |_| ControlFlow::Continue(()))
}

/// The same as [`play`], but calls `beside` before each step. It may do something else with the store and add that
/// to the history. It may also end the play: then the transactions under way are dropped.
pub fn play_beside<S: Store>(
    store: &S,
    plan: &Plan,
    tally: &Tally,
    beside: &mut dyn FnMut(&mut Vec<Transaction>) -> ControlFlow<()>,
) -> Vec<Transaction> {
    let mut history: Vec<Transaction> = Player::play(store, &plan.first, tally).into_iter().collect();
    let mut players: Vec<Option<Player<'_, S::Open<'_>>>> = plan.transactions.iter().map(|_| None).collect();
    for &next in &plan.order {
        if beside(&mut history).is_break() {
            break;
        }
        match &mut players[next] {
            Some(player) => player.step(),
            place => *place = Player::begin(store, &plan.transactions[next], tally).ok(),
        }
        if let Some(ended) = players[next].take_if(|player| player.has_ended()) {
            history.push(ended.record);
        }
    }
    // The play was ended early, or these transactions began later than planned, so they have not taken their last
    // step.
    history.extend(players.into_iter().flatten().map(|player| player.record));
    history
}

/// One transaction under way.
#[derive(Debug)]
pub struct Player<'p, T: OpenTransaction> {
    plan: &'p PlannedTransaction,
    tally: &'p Tally,
    next: usize,
    /// `None` once the transaction has ended.
    open: Option<T>,
    savepoints: Vec<T::Savepoint>,
    /// For each key, the value that the transaction last saw or wrote there.
    last: BTreeMap<Place, Option<Mark>>,
    record: Transaction,
}

impl<'p, T: OpenTransaction> Player<'p, T> {
    /// Begins a transaction.
    ///
    /// # Errors
    ///
    /// The store cannot begin one.
    pub fn begin<'s, S: Store<Open<'s> = T, Error = T::Error>>(
        store: &'s S,
        plan: &'p PlannedTransaction,
        tally: &'p Tally,
    ) -> Result<Self, T::Error> {
        let began = tally.event();
        let open = store.begin(plan.isolation)?;
        let record = Transaction {
            id: tally.transaction(),
            isolation: plan.isolation,
            snapshot: open.snapshot(),
            operations: Vec::new(),
            outcome: Outcome::Aborted,
            began: Some(began),
            acknowledged: None,
        };
        let (open, last) = (Some(open), BTreeMap::new());
        Ok(Self { plan, tally, next: 0, open, savepoints: Vec::new(), last, record })
    }

    /// Plays a whole transaction; `None` if the transaction cannot begin.
    pub fn play<'s, S: Store<Open<'s> = T, Error = T::Error>>(
        store: &'s S,
        plan: &'p PlannedTransaction,
        tally: &'p Tally,
    ) -> Option<Transaction> {
        let mut player = Self::begin(store, plan, tally).ok()?;
        while !player.has_ended() {
            player.step();
        }
        Some(player.record)
    }

    /// Whether no step is left.
    pub fn has_ended(&self) -> bool {
        self.open.is_none()
    }

    /// What the transaction did so far.
    pub fn into_record(self) -> Transaction {
        self.record
    }

    /// Takes the next step, unless the transaction has ended.
    pub fn step(&mut self) {
        let Some(step) = self.plan.steps.get(self.next) else { return };
        self.next += 1;
        match step {
            Step::Commit => self.commit(),
            Step::Drop => self.open = None,
            step => {
                let Some(mut open) = self.open.take() else { return };
                // After an error, the transaction is not used again.
                let outcome = self.read_or_write(&mut open, step);
                self.record.snapshot = open.snapshot();
                self.open = outcome.is_ok().then_some(open);
            }
        }
    }

    fn commit(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.record.outcome = match open.commit() {
            Ok(Commit::Done(version)) => {
                self.record.acknowledged = Some(self.tally.event());
                Outcome::Committed(version)
            }
            Ok(Commit::Conflict | Commit::Failed) => Outcome::Aborted,
            Err(_) => Outcome::Unknown,
        };
    }

    fn read_or_write(&mut self, open: &mut T, step: &Step) -> Result<(), T::Error> {
        match step {
            Step::Get(place) => {
                let saw = open.get(place)?;
                self.saw(place, saw);
            }
            Step::MultiGet(table, keys) => {
                let rows = open.multi_get(*table, keys)?;
                assert_eq!(rows.len(), keys.len(), "rows of keys read together");
                for (key, saw) in keys.iter().zip(rows) {
                    self.saw(&Place { table: *table, key: key.clone() }, saw);
                }
            }
            Step::Range { table, range, direction, limit } => {
                let saw = open.range(*table, range, *direction, limit.unwrap_or(usize::MAX))?;
                let stopped = limit.is_some_and(|limit| saw.len() >= limit);
                for (key, mark) in &saw {
                    self.last.insert(Place { table: *table, key: key.clone() }, Some(*mark));
                }
                let (table, range, direction) = (*table, range.clone(), *direction);
                self.record.operations.push(Operation::ReadRange { table, range, direction, saw, stopped });
            }
            Step::Put(place) => {
                let mark = self.tally.mark();
                open.put(place, mark)?;
                self.wrote(place, mark);
            }
            Step::Erase(place) => {
                open.erase(place)?;
                self.last.insert(place.clone(), None);
                self.record.operations.push(Operation::Erase { place: place.clone() });
            }
            Step::EraseRange(table, range) => {
                open.erase_range(*table, range)?;
                self.record.operations.push(Operation::EraseRange { table: *table, range: range.clone() });
            }
            Step::InsertNew(place) => {
                let mark = self.tally.mark();
                let before = open.insert_new(place, mark)?;
                self.swapped(place, None, before, mark);
            }
            Step::CompareAndSwap(place) => {
                let mark = self.tally.mark();
                let expected = self.last.get(place).copied().flatten();
                let before = open.compare_and_swap(place, expected, mark)?;
                self.swapped(place, expected, before, mark);
            }
            Step::Savepoint => {
                self.savepoints.push(open.savepoint()?);
                self.record.operations.push(Operation::Savepoint);
            }
            Step::RollBackTo(savepoint) => {
                open.roll_back_to(&self.savepoints[*savepoint])?;
                self.record.operations.push(Operation::RollBackTo(*savepoint));
            }
            Step::Commit | Step::Drop => unreachable!("the caller ends the transaction"),
        }
        Ok(())
    }

    fn saw(&mut self, place: &Place, saw: Option<Mark>) {
        self.last.insert(place.clone(), saw);
        self.record.operations.push(Operation::Read { place: place.clone(), saw });
    }

    fn wrote(&mut self, place: &Place, mark: Mark) {
        self.last.insert(place.clone(), Some(mark));
        self.record.operations.push(Operation::Put { place: place.clone(), mark });
    }

    fn swapped(&mut self, place: &Place, expected: Option<Mark>, before: Option<Mark>, mark: Mark) {
        self.saw(place, before);
        if before == expected {
            self.wrote(place, mark);
        }
    }
}

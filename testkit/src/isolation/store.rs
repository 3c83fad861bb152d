//! What a player needs from a transactional store. An adapter for the engine turns marks into values and back.

use super::transaction::{Direction, Isolation, Mark, Place};
use crate::model::KeyRange;
use larch::Version;
use std::fmt::Debug;

/// A store with transactions.
pub trait Store {
    /// Why a call failed. A conflict does not count as a failure.
    type Error: Debug;
    /// A transaction under way. Dropping it aborts it.
    type Open<'s>: OpenTransaction<Error = Self::Error>
    where
        Self: 's;

    /// Begins a transaction. The snapshot of the transaction must have every commit that was acknowledged before
    /// this call.
    ///
    /// # Errors
    ///
    /// The store cannot begin one.
    fn begin(&self, isolation: Isolation) -> Result<Self::Open<'_>, Self::Error>;
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The transaction took place. If it wrote, this is its version.
    Done(Option<Version>),
    /// The transaction did not take place, because another transaction wrote something that it had read or written.
    Conflict,
    /// The transaction did not take place, because the store could not write it.
    Failed,
}

/// A row of a range.
pub type Row = (Vec<u8>, Mark);

/// A transaction under way. Its reads see its own writes.
///
/// # Errors
///
/// If a read or a write returns an error, the player drops the transaction. If [`commit`](Self::commit) returns an
/// error, the transaction may or may not have taken place.
pub trait OpenTransaction {
    /// The error of the store.
    type Error: Debug;
    /// A point between two writes, to which the transaction can roll back.
    type Savepoint;

    /// The newest commit that the transaction sees. It may move to a newer commit as long as the transaction has
    /// read nothing.
    fn snapshot(&self) -> Version;

    /// Reads a row.
    fn get(&mut self, place: &Place) -> Result<Option<Mark>, Self::Error>;

    /// Reads several rows in one call.
    fn multi_get(&mut self, table: u32, keys: &[Vec<u8>]) -> Result<Vec<Option<Mark>>, Self::Error>;

    /// Reads at most `limit` rows of a range. The transaction learns nothing about the range beyond the last row
    /// that it reads.
    fn range(
        &mut self,
        table: u32,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>, Self::Error>;

    /// Gives a key a value.
    fn put(&mut self, place: &Place, mark: Mark) -> Result<(), Self::Error>;

    /// Erases a key.
    fn erase(&mut self, place: &Place) -> Result<(), Self::Error>;

    /// Erases a range.
    fn erase_range(&mut self, table: u32, range: &KeyRange) -> Result<(), Self::Error>;

    /// Gives a key a value if it has no value. Returns what the key had before.
    fn insert_new(&mut self, place: &Place, mark: Mark) -> Result<Option<Mark>, Self::Error> {
        self.compare_and_swap(place, None, mark)
    }

    /// Gives a key a new value if it has the expected value. If no value is expected, the key must have none.
    /// Returns what the key had before.
    fn compare_and_swap(
        &mut self,
        place: &Place,
        expected: Option<Mark>,
        mark: Mark,
    ) -> Result<Option<Mark>, Self::Error> {
        let before = self.get(place)?;
        if before == expected {
            self.put(place, mark)?;
        }
        Ok(before)
    }

    /// Makes a savepoint.
    fn savepoint(&mut self) -> Result<Self::Savepoint, Self::Error>;

    /// Undoes all writes since a savepoint. This savepoint may be used again, but later ones may not.
    fn roll_back_to(&mut self, savepoint: &Self::Savepoint) -> Result<(), Self::Error>;

    /// Ends the transaction.
    fn commit(self) -> Result<Commit, Self::Error>;
}

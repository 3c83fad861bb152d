//! The writes that one transaction has made so far, as its own reads see them.
//!
//! One value serves many transactions, one after the other, so that beginning a transaction costs nothing.

use super::keys::Keys;
use super::transaction::{Mark, Operation};

/// What the last write of a transaction to a key did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Gave it a value.
    Put(Mark),
    /// Erased this key alone.
    Erase,
    /// Erased a range that contains it.
    RangeErase,
}

impl Write {
    /// What a read sees after it.
    pub fn mark(self) -> Option<Mark> {
        match self {
            Self::Put(mark) => Some(mark),
            Self::Erase | Self::RangeErase => None,
        }
    }
}

/// The last write to a key. It counts only if `transaction` is the current one.
#[derive(Clone, Copy, Debug)]
struct Cell {
    transaction: u64,
    write: Write,
}

/// The writes of the current transaction.
#[derive(Debug)]
pub struct OwnWrites {
    /// For each key.
    cells: Vec<Cell>,
    transaction: u64,
    /// For each write of the current transaction, its key and what the key's cell held before.
    replaced: Vec<(u32, Cell)>,
    /// For each savepoint, the number of writes that were made before it.
    savepoints: Vec<usize>,
}

impl OwnWrites {
    /// For keys with numbers below `keys`.
    pub fn new(keys: usize) -> Self {
        let cells = vec![Cell { transaction: 0, write: Write::Erase }; keys];
        Self { cells, transaction: 0, replaced: Vec::new(), savepoints: Vec::new() }
    }

    /// Forgets the last transaction.
    pub fn begin(&mut self) {
        self.transaction += 1;
        self.replaced.clear();
        self.savepoints.clear();
    }

    /// Applies an operation, if it is a write, a savepoint or a rollback. A rollback calls `taken_back` with the
    /// mark of each put that it undoes.
    pub fn take(&mut self, operation: &Operation, keys: &Keys<'_>, taken_back: &mut dyn FnMut(Mark)) {
        match operation {
            Operation::Put { place, mark } => self.write(keys.of_place(place), Write::Put(*mark)),
            Operation::Erase { place } => self.write(keys.of_place(place), Write::Erase),
            Operation::EraseRange { table, range } => {
                keys.within(*table, range).for_each(|key| self.write(key, Write::RangeErase));
            }
            Operation::Savepoint => self.savepoints.push(self.replaced.len()),
            Operation::RollBackTo(savepoint) => {
                while self.replaced.len() > self.savepoints[*savepoint] {
                    let (key, before) = self.replaced.pop().expect("there are more than at the savepoint");
                    let cell = std::mem::replace(&mut self.cells[key as usize], before);
                    cell.write.mark().into_iter().for_each(&mut *taken_back);
                }
            }
            Operation::Read { .. } | Operation::ReadRange { .. } => {}
        }
    }

    fn write(&mut self, key: u32, write: Write) {
        let cell = Cell { transaction: self.transaction, write };
        let before = std::mem::replace(&mut self.cells[key as usize], cell);
        self.replaced.push((key, before));
    }

    /// The last write of the transaction to a key.
    pub fn get(&self, key: u32) -> Option<Write> {
        let cell = self.cells[key as usize];
        (cell.transaction == self.transaction).then_some(cell.write)
    }

    /// The keys that the transaction wrote, each with its last write.
    pub fn last(&self) -> Vec<(u32, Write)> {
        let mut keys: Vec<u32> = self.replaced.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().map(|key| (key, self.cells[key as usize].write)).collect()
    }
}

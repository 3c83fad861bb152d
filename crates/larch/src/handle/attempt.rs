//! A transaction that is lent to a future by value. It comes back when the future lets it go. This module does not
//! know what is done with the transaction.
//!
//! A closure that borrows its transaction makes a future of another type for each lifetime. No bound can say that
//! the futures of all these types can be sent to another thread. A closure that gets its transaction by value makes
//! futures of one type. They can be sent if everything that they hold can be sent.

use super::readable::Readable;
use super::selection::Selection;
use super::table::Table;
use super::transaction::Transaction;
use crate::base::error::{Error, Result};
use crate::read::Reader;
use crate::view::value::Parts;
use os::sync::{Arc, Mutex};
use std::ops::{Deref, DerefMut};

/// The transaction of one attempt of [`Database::transact_async`](crate::Database::transact_async). It has
/// everything that a [`Transaction`] has. It commits when the future that got it has returned without an error.
#[derive(Debug)]
#[must_use = "the attempt is committed when the future that got it has returned"]
pub struct Attempt {
    /// `Some` until the attempt is dropped.
    transaction: Option<Transaction>,
    back: Arc<Mutex<Option<Transaction>>>,
}

/// Where the transaction of an attempt comes back.
#[derive(Debug)]
pub(super) struct Back(Arc<Mutex<Option<Transaction>>>);

impl Attempt {
    /// Lends `transaction`.
    pub(super) fn lend(transaction: Transaction) -> (Self, Back) {
        let back = Arc::default();
        (Self { transaction: Some(transaction), back: Arc::clone(&back) }, Back(back))
    }
}

impl Back {
    /// The transaction that was lent.
    ///
    /// # Errors
    ///
    /// [`Error::AttemptKept`] if the attempt still lives.
    pub fn take(self) -> Result<Transaction> {
        self.0.lock().take().ok_or(Error::AttemptKept)
    }
}

impl Deref for Attempt {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        self.transaction.as_ref().expect("it is there until the attempt is dropped")
    }
}

impl DerefMut for Attempt {
    fn deref_mut(&mut self) -> &mut Transaction {
        self.transaction.as_mut().expect("it is there until the attempt is dropped")
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        *self.back.lock() = self.transaction.take();
    }
}

impl Readable for Attempt {
    fn reader<'r>(&'r self, table: &'r Table) -> Result<Reader<'r>> {
        (**self).reader(table)
    }

    fn select<'r>(&'r self, selection: &'r Selection) -> Result<Reader<'r, Parts>> {
        (**self).select(selection)
    }
}

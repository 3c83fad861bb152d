//! A transaction that a future gets by value, but only for a while. When the future drops it, the transaction goes
//! back to the code that has lent it. This module does not know what is done with the transaction.
//!
//! The closure of the program gets its transaction by value for a reason. If a closure borrows its transaction,
//! its future has a different type for each lifetime. A bound in a signature cannot say that all these types can
//! be sent to another thread. If a closure gets its transaction by value, its futures all have one type. Such a
//! future can be sent to another thread if everything that it holds can be.

use super::readable::Readable;
use super::selection::Selection;
use super::table::Table;
use super::transaction::Transaction;
use crate::base::error::{Error, Result};
use crate::read::Reader;
use crate::view::value::Parts;
use os::sync::{Arc, Mutex};
use std::ops::{Deref, DerefMut};

/// The transaction in one attempt of [`Database::transact_async`](crate::Database::transact_async). An attempt can
/// do everything that a [`Transaction`] can. The transaction is committed after its future has returned without an
/// error.
#[derive(Debug)]
#[must_use = "the attempt is committed when the future that got it has returned"]
pub struct Attempt {
    /// The transaction is `Some` until the attempt is dropped.
    transaction: Option<Transaction>,
    back: Arc<Mutex<Option<Transaction>>>,
}

/// The place where an attempt puts its transaction when it is dropped.
#[derive(Debug)]
pub(super) struct Back(Arc<Mutex<Option<Transaction>>>);

impl Attempt {
    /// Lends `transaction` to an attempt.
    pub(super) fn lend(transaction: Transaction) -> (Self, Back) {
        let back = Arc::default();
        (Self { transaction: Some(transaction), back: Arc::clone(&back) }, Back(back))
    }
}

impl Back {
    /// Takes the transaction after the attempt has given it back.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::AttemptKept`] if the attempt was not dropped yet.
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

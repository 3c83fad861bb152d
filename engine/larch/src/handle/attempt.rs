//! Lends a transaction by value to the future of a program's closure. When the future drops it, the transaction
//! goes back to the lender.
//!
//! It is lent by value so that the future can be `Send`. If the closure borrowed its transaction, its future would
//! have a different type for each lifetime, and no bound in a signature can say that all these types are `Send`.
//! With a transaction by value, all futures of the closure have one type.

use super::readable::Readable;
use super::selection::Selection;
use super::table::Table;
use super::transaction::Transaction;
use crate::base::error::{Error, Result};
use crate::read::Reader;
use crate::view::value::Parts;
use os::sync::{Arc, Mutex};
use std::ops::{Deref, DerefMut};

/// One attempt of [`Database::transact_async`](crate::Database::transact_async). It derefs to its [`Transaction`],
/// which is committed after the future that got the attempt has returned without an error.
#[derive(Debug)]
#[must_use = "the attempt is committed when the future that got it has returned"]
pub struct Attempt {
    /// `Some` until the attempt is dropped.
    transaction: Option<Transaction>,
    back: Arc<Mutex<Option<Transaction>>>,
}

/// Where an attempt puts its transaction when it is dropped.
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
    /// Takes the transaction back after its attempt was dropped.
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

//! Transactions of a database as its users begin them. This module does no work itself.

use super::attempt::Attempt;
use super::attempts::{self, transact};
use super::database::Database;
use super::transaction::{Transaction, TransactionOptions};
use crate::base::error::{Error, Result};
use crate::conflicts::recent::Tables;
use crate::conflicts::reserved::Reservation;

impl Database {
    /// Begins a transaction, which is [serializable](crate::transaction::Isolation::Serializable). It costs as much
    /// as a [snapshot](Database::snapshot).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::Readable;
    ///
    /// let mut tx = db.begin()?;
    /// if tx.get(&fruit, "apple")?.is_none() {
    ///     tx.insert(&fruit, "apple", "red")?;
    /// }
    /// tx.commit()?.expect("nothing else happens here");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child of the process that opened the database.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(&TransactionOptions::default())
    }

    /// Begins a transaction with `options`.
    ///
    /// # Errors
    ///
    /// As [`Database::begin`].
    pub fn begin_with(&self, options: &TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self.handle(), options, Reservation::default(), Tables::NONE)
    }

    /// Runs `body` in a transaction and commits it. If it conflicts with another commit, `body` is run again in a
    /// new transaction, after a random time that grows from one conflict to the next. After eight conflicts the keys
    /// of the last attempt are reserved first, see [`Transaction::get_for_update`]. So the work is done in the end,
    /// however busy the keys are that it writes or reads one by one. Ranges are not reserved. If that does not help,
    /// or if a second of work was done for nothing, all other commits wait while `body` runs again. They wait at
    /// most twice as long as the last run of `body` took, and at most a minute. Commits that the thread of `body`
    /// makes meanwhile do not wait.
    ///
    /// `body` may run several times, so it must be harmless to repeat what it does outside of the transaction. If
    /// `body` fails, nothing is committed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let counters = db.table("counters")?;
    /// use larch::Readable;
    ///
    /// let now = db.transact(|tx| {
    ///     let before = tx.get(&counters, "visits")?.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap_or_default()));
    ///     tx.insert(&counters, "visits", (before + 1).to_be_bytes())?;
    ///     Ok::<_, larch::Error>(before + 1)
    /// })?;
    /// assert_eq!(now, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `body`. [`Error::TooManyConflicts`] after 100 attempts. The errors of [`Transaction::commit`];
    /// after [`Error::OutcomeUnknown`] the transaction may have been committed.
    pub fn transact<T, E: From<Error>>(&self, body: impl FnMut(&mut Transaction) -> Result<T, E>) -> Result<T, E> {
        self.transact_with(&TransactionOptions::default(), body)
    }

    /// As [`Database::transact`], with `options`.
    ///
    /// # Errors
    ///
    /// As [`Database::transact`].
    pub fn transact_with<T, E: From<Error>>(
        &self,
        options: &TransactionOptions,
        body: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transact(self.handle(), options, body).map(|(done, _)| done)
    }

    /// As [`Database::transact`], for a `body` that awaits. The future does not stop its thread. Other tasks run
    /// until the commit is durable, while others have reserved the keys of the transaction, before a new attempt
    /// begins, and while the write buffer is full, see [`Transaction::commit_async`].
    ///
    /// `body` gets each [`Attempt`] by value, and lets it go when it returns. So if the future of `body` can be sent
    /// to another thread, the whole future can be sent, too: it may be spawned, and it may be awaited in a handler
    /// of a web server. The closure below borrows what it uses, so it may be called again. What it borrows lives in
    /// the task around it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::Readable;
    ///
    /// let task = smol::spawn(async move {
    ///     db.transact_async(async |mut tx| {
    ///         if tx.get_async(&fruit, "apple").await?.is_none() {
    ///             tx.insert(&fruit, "apple", "red")?;
    ///         }
    ///         Ok::<_, larch::Error>(())
    ///     })
    ///     .await
    /// });
    /// task.await?;
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Database::transact`]. [`Error::AttemptKept`] if `body` returns and its attempt still lives.
    pub async fn transact_async<T, E, F>(&self, body: impl FnMut(Attempt) -> F) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        self.transact_async_with(&TransactionOptions::default(), body).await
    }

    /// As [`Database::transact_async`], with `options`.
    ///
    /// # Errors
    ///
    /// As [`Database::transact_async`].
    pub async fn transact_async_with<T, E, F>(
        &self,
        options: &TransactionOptions,
        body: impl FnMut(Attempt) -> F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        attempts::transact_async(self.handle(), options, body).await.map(|(done, _)| done)
    }
}

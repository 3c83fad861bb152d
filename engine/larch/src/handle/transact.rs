//! The transaction methods of a [`Database`]. The retries are in `attempts`.

use super::attempt::Attempt;
use super::attempts::{self, transact};
use super::database::Database;
use super::transaction::{Transaction, TransactionOptions};
use crate::base::error::{Error, Result};
use crate::conflicts::recent::Tables;
use crate::conflicts::reserved::Reservation;

impl Database {
    /// Begins a [serializable](crate::transaction::Isolation::Serializable) transaction. This is as cheap as a
    /// [snapshot](Database::snapshot).
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
    /// Fails as [`Database::begin`] does.
    pub fn begin_with(&self, options: &TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self.handle(), options, Reservation::default(), Tables::NONE)
    }

    /// Runs `body` in a transaction and commits it. If the transaction conflicts with another commit, `body` runs
    /// again in a new transaction. So side effects of `body` outside of the transaction may happen several times.
    /// If `body` returns an error, nothing is committed.
    ///
    /// Retries escalate, so that the work succeeds at some point however often others write to its keys. First, the
    /// call backs off for a random time that grows with each conflict. After eight conflicts, it reserves the keys
    /// of the last attempt before each new one, and other commits to these keys wait, see
    /// [`Transaction::get_for_update`]; ranges cannot be reserved. If that does not help, or if the failed attempts
    /// have taken a second, all other commits wait while `body` runs again: at most for a tenth of a second, or for
    /// twice the time of the last run of `body` if that is longer, but never more than a minute. Commits of the
    /// thread that runs `body` do not wait then.
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
    /// The error that `body` returned; [`Error::TooManyConflicts`] after 100 attempts; otherwise fails as
    /// [`Transaction::commit`] does. After [`Error::OutcomeUnknown`], the transaction may have been committed.
    pub fn transact<T, E: From<Error>>(&self, body: impl FnMut(&mut Transaction) -> Result<T, E>) -> Result<T, E> {
        self.transact_with(&TransactionOptions::default(), body)
    }

    /// Like [`Database::transact`], but with `options`.
    ///
    /// # Errors
    ///
    /// Fails as [`Database::transact`] does.
    pub fn transact_with<T, E: From<Error>>(
        &self,
        options: &TransactionOptions,
        body: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transact(self.handle(), options, body).map(|(done, _)| done)
    }

    /// Like [`Database::transact`], but as a future, with an async `body`. It never blocks its thread: other tasks
    /// run while it waits for a sync, for room in the write buffer, for keys that other transactions have reserved,
    /// or before a new attempt. See [`Transaction::commit_async`].
    ///
    /// `body` gets each [`Attempt`] by value, and must drop it before it returns. So if the future of `body` is
    /// `Send`, this future is `Send`, too: a program may spawn it, or await it in a handler of a web server. The
    /// closure in the example can be called again because it only borrows what it uses; the task that awaits the
    /// call owns these values.
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
    /// Fails as [`Database::transact`] does, and with [`Error::AttemptKept`] if `body` returns without dropping its
    /// attempt.
    pub async fn transact_async<T, E, F>(&self, body: impl FnMut(Attempt) -> F) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        self.transact_async_with(&TransactionOptions::default(), body).await
    }

    /// Like [`Database::transact_async`], but with `options`.
    ///
    /// # Errors
    ///
    /// Fails as [`Database::transact_async`] does.
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

//! The accounts and the records of transfers, as tables of a database.

use larch::transaction::{Attempt, TransactionOptions};
use larch::{Builder, Database, Durability, Readable, Result, Table, Transaction};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// The number of accounts, and the amount that each one holds at first.
const ACCOUNTS: u32 = 300;
const FIRST_AMOUNT: u64 = 1000;

/// The most bytes of the remark in a record. Remarks are there to fill the disk.
const REMARK_BYTES: usize = 300;

/// The number of a transfer. No two transfers have the same number.
pub type Number = u64;

/// A transfer to be made.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Its number.
    pub number: Number,
    from: u32,
    to: u32,
    most: u64,
    durability: Durability,
    remark_bytes: usize,
}

impl Transfer {
    /// A transfer between two random accounts.
    pub fn of(number: Number, durability: Durability, rng: &mut Xoshiro256PlusPlus) -> Self {
        let (from, to) = (rng.random_range(0..ACCOUNTS), rng.random_range(0..ACCOUNTS));
        Self {
            number,
            from,
            to,
            most: rng.random_range(0..FIRST_AMOUNT),
            durability,
            remark_bytes: rng.random_range(0..REMARK_BYTES),
        }
    }

    /// Moves the amount `most`, or all that the first account holds if that is less.
    fn write(&self, ledger: &Ledger, tx: &mut Transaction, from: u64, to: u64) -> Result<()> {
        let amount = if self.from == self.to { 0 } else { self.most.min(from) };
        if amount > 0 {
            tx.insert(&ledger.accounts, self.from.to_be_bytes(), (from - amount).to_be_bytes())?;
            tx.insert(&ledger.accounts, self.to.to_be_bytes(), (to + amount).to_be_bytes())?;
        }
        let mut record = [self.from.to_be_bytes(), self.to.to_be_bytes()].concat();
        record.extend(amount.to_be_bytes());
        record.resize(record.len() + self.remark_bytes, b'-');
        tx.insert(&ledger.records, self.number.to_be_bytes(), record)
    }

    fn options(&self) -> TransactionOptions {
        TransactionOptions { durability: Some(self.durability), ..TransactionOptions::default() }
    }
}

/// An open bank.
#[derive(Debug)]
pub struct Ledger {
    db: Database,
    accounts: Table,
    records: Table,
}

impl Ledger {
    /// Opens the bank, or creates it.
    ///
    /// # Errors
    ///
    /// The database cannot be opened.
    pub fn open(builder: Builder) -> Result<Self> {
        let db = builder.cache_bytes(1 << 20).write_buffer_bytes(256 << 10).open()?;
        let (accounts, records) = (db.table("accounts")?, db.table("records")?);
        if accounts.first_key_value()?.is_none() {
            let mut batch = db.batch();
            (0..ACCOUNTS).for_each(|account| {
                batch.insert(&accounts, account.to_be_bytes(), FIRST_AMOUNT.to_be_bytes());
            });
            batch.commit()?;
        }
        Ok(Self { db, accounts, records })
    }

    /// Makes a transfer.
    ///
    /// # Errors
    ///
    /// The errors of [`Database::transact`].
    pub fn transfer(&self, transfer: &Transfer) -> Result<()> {
        self.db.transact_with(&transfer.options(), |tx| {
            let from = tx.get(&self.accounts, transfer.from.to_be_bytes())?;
            let to = tx.get(&self.accounts, transfer.to.to_be_bytes())?;
            transfer.write(self, tx, amount(from.as_deref()), amount(to.as_deref()))
        })
    }

    /// Makes a transfer. Other tasks may run between the reads of the transfer.
    ///
    /// # Errors
    ///
    /// The errors of [`Database::transact_async`].
    pub async fn transfer_async(&self, transfer: &Transfer) -> Result<()> {
        let transact = async |mut tx: Attempt| {
            let from = tx.get_async(&self.accounts, transfer.from.to_be_bytes()).await?;
            smol::future::yield_now().await;
            let to = tx.get_async(&self.accounts, transfer.to.to_be_bytes()).await?;
            transfer.write(self, &mut tx, amount(from.as_deref()), amount(to.as_deref()))
        };
        self.db.transact_async_with(&transfer.options(), transact).await
    }

    /// Checks all accounts against all records, in a read-only transaction. Returns the numbers of all transfers
    /// that took place.
    ///
    /// # Errors
    ///
    /// A read failed.
    ///
    /// # Panics
    ///
    /// Panics if an account does not hold the amount that follows from the records.
    pub fn audit(&self) -> Result<Vec<Number>> {
        let tx = self.db.begin()?;
        // The records come in the order of their numbers, not of their commits, so an account may seem overdrawn
        // until all of them are added up.
        let mut expected: BTreeMap<u32, i64> = (0..ACCOUNTS).map(|account| (account, FIRST_AMOUNT as i64)).collect();
        let mut numbers = Vec::new();
        for record in tx.iter(&self.records) {
            let (number, record) = record?;
            let (from, rest) = record.split_first_chunk().expect("a record has a sender");
            let (to, rest) = rest.split_first_chunk().expect("a record has a receiver");
            let moved = amount(rest.get(..8)) as i64;
            *expected.entry(u32::from_be_bytes(*from)).or_default() -= moved;
            *expected.entry(u32::from_be_bytes(*to)).or_default() += moved;
            numbers.push(Number::from_be_bytes(number[..].try_into().expect("a number has eight bytes")));
        }
        let mut found = BTreeMap::new();
        for row in tx.iter(&self.accounts) {
            let (account, held) = row?;
            let account = u32::from_be_bytes(account[..].try_into().expect("an account has four bytes"));
            found.insert(account, amount(Some(&held[..])) as i64);
        }
        assert_eq!(found, expected, "what accounts hold, and what the records say");
        Ok(numbers)
    }

    /// Adds up the amounts of all accounts, in a read-only transaction.
    ///
    /// # Errors
    ///
    /// A read failed.
    ///
    /// # Panics
    ///
    /// Panics if the sum of all accounts is not the sum at the start.
    pub fn expect_total(&self) -> Result<()> {
        let tx = self.db.begin()?;
        let mut total = 0;
        for row in tx.iter(&self.accounts) {
            total += amount(Some(&row?.1[..]));
        }
        assert_eq!(total, FIRST_AMOUNT * u64::from(ACCOUNTS), "what all accounts hold together");
        // A commit would promise that everything this transaction has read is durable, which nobody knows after a
        // failed sync.
        tx.rollback();
        Ok(())
    }
}

fn amount(bytes: Option<&[u8]>) -> u64 {
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    u64::from_be_bytes(bytes.expect("an account holds a number of eight bytes"))
}

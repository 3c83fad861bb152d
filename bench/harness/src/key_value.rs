//! Stores rows in a store that knows only keys and values.

use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::{Request, no_partitions, no_transactions};
use crate::store::{Blocking, Outcome};
use crate::strings::{NotARow, Strings};

/// One thread's access to a store of keys and values.
pub trait KeyValue {
    /// Calls `found` with the value of `key` and returns `true`, or returns `false` if `key` has no value.
    fn get(&mut self, key: &[u8], found: impl FnMut(&[u8])) -> Result<bool, Failure>;

    /// Calls `found` for each of `keys` that has a value, with the key's index and the value.
    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        for (number, key) in keys.iter().enumerate() {
            self.get(key, |value| found(number, value))?;
        }
        Ok(())
    }

    /// Calls `each` for at most `rows` keys and their values, from `start` on, in key order. `each` returns whether
    /// it wants more rows.
    fn scan(&mut self, start: &[u8], rows: u64, each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure>;

    /// Whether the store has no key.
    fn is_empty(&mut self) -> Result<bool, Failure> {
        let mut is_empty = true;
        self.scan(b"", 1, |_, _| {
            is_empty = false;
            false
        })?;
        Ok(is_empty)
    }

    /// Sets the value of `key` to `value`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Deletes `key`, and returns whether it had a value. A store that would need another read to find out returns
    /// `true`.
    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure>;

    /// Replaces the value of `key` by what `change` makes of it. Returns `false` if `key` has no value. A store with
    /// transactions reads and writes in one transaction. In this default implementation, another thread may write in
    /// between.
    fn update(
        &mut self,
        key: &[u8],
        scratch: &mut Vec<u8>,
        mut change: impl FnMut(&[u8], &mut Vec<u8>),
    ) -> Result<bool, Failure> {
        scratch.clear();
        let found = self.get(key, |value| change(value, scratch))?;
        if found {
            self.put(key, scratch)?;
        }
        Ok(found)
    }
}

/// A session for rows on top of a store of keys and values. [`Strings::encode`] encodes the fields of a row into its
/// value.
pub struct Records<K> {
    pairs: K,
    fields: usize,
    record: Strings,
    value: Vec<u8>,
}

impl<K: KeyValue> Records<K> {
    /// Makes a session for rows of `fields` fields on `pairs`.
    pub fn new(pairs: K, fields: usize) -> Self {
        Self { pairs, fields, record: Strings::new(), value: Vec::new() }
    }
}

impl<K: KeyValue> Blocking for Records<K> {
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure> {
        let of = self.fields;
        let mut broken = Ok(());
        let outcome = match *request {
            Request::Read { key, fields } => {
                let found = self.pairs.get(key, |value| broken = reply.row(key, value, of, fields))?;
                found_or_not(found)
            }
            Request::ReadMany { keys, fields } => {
                self.pairs.get_many(keys, |number, value| {
                    let key = keys.get(number).expect("a number that was asked for");
                    note(&mut broken, reply.row(key, value, of, fields));
                })?;
                Outcome::Ok
            }
            Request::Scan { start, rows, fields } => {
                self.pairs.scan(start, rows, |key, value| {
                    note(&mut broken, reply.row(key, value, of, fields));
                    broken.is_ok()
                })?;
                Outcome::Ok
            }
            Request::Insert { key, record } | Request::Replace { key, record } => {
                self.value.clear();
                record.encode(&mut self.value);
                self.pairs.put(key, &self.value)?;
                Outcome::Ok
            }
            Request::Update { key, value, .. } if of == 1 => {
                self.pairs.put(key, value)?;
                Outcome::Ok
            }
            Request::Update { key, field, value } => {
                let record = &mut self.record;
                let found = self.pairs.update(key, &mut self.value, |old, new| {
                    record.clear();
                    broken = record.decode(old, of);
                    if broken.is_ok() {
                        record.replace(field as usize, value);
                        record.encode(new);
                    } else {
                        new.extend_from_slice(old);
                    }
                })?;
                found_or_not(found)
            }
            Request::Delete { key } => found_or_not(self.pairs.delete(key)?),
            Request::Partition(_) => return Err(no_partitions()),
            Request::Transaction(_) => return Err(no_transactions()),
        };
        broken.map_err(|error: NotARow| Failure::request("not_a_row", error.to_string()))?;
        Ok(outcome)
    }
}

fn found_or_not(found: bool) -> Outcome {
    if found { Outcome::Ok } else { Outcome::NotFound }
}

/// Keeps the first error.
fn note(broken: &mut Result<(), NotARow>, new: Result<(), NotARow>) {
    if broken.is_ok() {
        *broken = new;
    }
}

/// Encodes `record` into `value`, as a bulk load into a store of keys and values needs it.
pub fn encoded<'v>(record: &Strings, value: &'v mut Vec<u8>) -> &'v [u8] {
    value.clear();
    record.encode(value);
    value
}

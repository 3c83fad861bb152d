//! Rows on a store that has keys and values only.

use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::{Request, no_partitions, no_transactions};
use crate::store::{Blocking, Outcome};
use crate::strings::{NotARow, Strings};

/// One thread's way to a store of keys and values.
pub trait KeyValue {
    /// Gives the value of `key` to `found` if one exists, and returns whether one does.
    fn get(&mut self, key: &[u8], found: impl FnMut(&[u8])) -> Result<bool, Failure>;

    /// Gives the values of `keys`, with the number of each key, to `found`.
    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        for (number, key) in keys.iter().enumerate() {
            self.get(key, |value| found(number, value))?;
        }
        Ok(())
    }

    /// Gives up to `rows` keys with their values from `start` on, in the order of keys, to `each`, which says whether
    /// it wants more.
    fn scan(&mut self, start: &[u8], rows: u64, each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure>;

    /// Makes `value` the value of `key`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Leaves `key` without a value; says whether it had one, where the store knows without looking, else `true`.
    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure>;

    /// Puts what `change` makes of the value of `key` in its place; `false` if none exists. A store with transactions
    /// does both in one; here another thread may come between.
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

/// A session for rows over one for keys and values. Rows lie encoded as [`Strings::encode`] says.
pub struct Records<K> {
    pairs: K,
    fields: usize,
    record: Strings,
    value: Vec<u8>,
}

impl<K: KeyValue> Records<K> {
    /// Rows of `fields` fields over `pairs`.
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

/// The value of a row of a bulk load, for stores of keys and values.
pub fn encoded<'v>(record: &Strings, value: &'v mut Vec<u8>) -> &'v [u8] {
    value.clear();
    record.encode(value);
    value
}

//! Inserts that are gathered and written many at a time, for stores where a transaction costs more than a row.

use crate::failure::{Failure, Harm};
use crate::reply::Reply;
use crate::request::Request;
use crate::store::{Blocking, Outcome};
use crate::strings::Strings;

/// A store of keys and values that takes many rows in one transaction.
pub trait WriteMany {
    /// Writes each key with the value that has the same number in `values`. It writes all of them or none.
    fn write(&mut self, keys: &Strings, values: &Strings) -> Result<(), Failure>;
}

/// A session that gathers inserts and takes no other request. A batch that cannot be written ends the session: its
/// rows were already reported as done, and retrying the last insert would write only that row.
pub struct Gather<W> {
    writes: W,
    rows: usize,
    keys: Strings,
    values: Strings,
}

impl<W: WriteMany> Gather<W> {
    /// Makes a session that writes to `writes`, with `rows` rows at a time.
    pub fn new(writes: W, rows: u64) -> Self {
        Self { writes, rows: usize::try_from(rows).unwrap_or(usize::MAX), keys: Strings::new(), values: Strings::new() }
    }
}

impl<W: WriteMany> Blocking for Gather<W> {
    fn call(&mut self, request: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        let Request::Insert { key, record } = *request else {
            return Err(Failure::request("not_an_insert", "a session that loads takes inserts only"));
        };
        self.keys.push(key);
        self.values.push_with(|value| record.encode(value));
        if self.keys.len() < self.rows {
            return Ok(Outcome::Batched);
        }
        self.finish()?;
        Ok(Outcome::Ok)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let rows = self.keys.len();
        let written = self.writes.write(&self.keys, &self.values);
        self.keys.clear();
        self.values.clear();
        written.map_err(|failure| {
            let text = format!("a batch of {rows} rows was not written: {}", failure.text);
            Failure { text, harm: Harm::Session, ..failure }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;

    impl WriteMany for Full {
        fn write(&mut self, _: &Strings, _: &Strings) -> Result<(), Failure> {
            Err(Failure::again("busy", "another writes"))
        }
    }

    #[test]
    fn a_batch_that_is_not_written_ends_the_session() {
        let mut gather = Gather::new(Full, 2);
        let mut insert = |key| {
            let record = Strings::new();
            gather.call(&Request::Insert { key, record: &record }, &mut Reply::new())
        };
        assert_eq!(insert(b"a").expect("gathered"), Outcome::Batched);
        let failure = insert(b"b").expect_err("two rows are not written");
        assert_eq!((failure.kind, failure.harm), ("busy", Harm::Session));
        assert_eq!(failure.text, "a batch of 2 rows was not written: another writes");
    }

    #[derive(Default)]
    struct Written(Vec<usize>);

    impl WriteMany for &mut Written {
        fn write(&mut self, keys: &Strings, values: &Strings) -> Result<(), Failure> {
            assert!(keys.iter().eq(values.iter()), "each value belongs to its key");
            self.0.push(keys.len());
            Ok(())
        }
    }

    #[test]
    fn rows_are_written_together_and_the_last_in_the_end() {
        let mut written = Written::default();
        let mut gather = Gather::new(&mut written, 3);
        let outcomes = (0..8).map(|number: u8| {
            let mut record = Strings::new();
            record.push(&[number]);
            gather.call(&Request::Insert { key: &[number], record: &record }, &mut Reply::new()).expect("taken")
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        use Outcome::{Batched, Ok};
        assert_eq!(outcomes, [Batched, Batched, Ok, Batched, Batched, Ok, Batched, Batched]);
        gather.finish().expect("written");
        gather.finish().expect("nothing is left");
        assert!(gather.call(&Request::Delete { key: b"a" }, &mut Reply::new()).is_err());
        assert_eq!(written.0, [3, 3, 2]);
    }
}

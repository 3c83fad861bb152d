//! How a table gives times to its rows: the option of a table, and the extractors that compute the time of a row from
//! its key and its value. This module knows no types and no storage.

use super::error::{Error, Result};
use os::sync::Arc;
use sst::format::features::Unreadable;
use sst::format::{field, varint};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Until when the rows of a table are there if the write does not say it, see
/// [`TableOptions::expiry`](crate::TableOptions::expiry).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// For ever.
    #[default]
    Never,
    /// For this long after the write, as if it was written by [`Table::insert_for`](crate::Table::insert_for). At least
    /// a millisecond.
    After(Duration),
    /// Until the time that an extractor computes from the row. The engine stores this declaration and passes it to the
    /// [function of the program](crate::Builder::expiry_times) that makes the extractor. It has at least one byte.
    By(Vec<u8>),
}

/// The fields of [`Expiry`] in the options of a table.
const AFTER: u8 = 1;
const BY: u8 = 2;

impl Expiry {
    /// # Errors
    ///
    /// [`Error::BadOptions`] if no table can have it.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::After(time) if time.as_millis() == 0 => Err(Error::BadOptions(format!(
                "rows cannot expire {time:?} after they were written; choose at least a millisecond, or Expiry::Never"
            ))),
            Self::By(declaration) if declaration.is_empty() => Err(Error::BadOptions(
                "the declaration by which rows expire is empty; write one, or choose Expiry::Never".to_owned(),
            )),
            Self::Never | Self::After(_) | Self::By(_) => Ok(()),
        }
    }

    /// Appends the numbered field of the options, if there is one.
    ///
    /// ```text
    /// 1 after        seconds varint | nanoseconds varint
    /// 2 by           declaration
    /// ```
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Never => {}
            Self::After(time) => {
                let mut bytes = Vec::new();
                varint::put(&mut bytes, time.as_secs());
                varint::put(&mut bytes, time.subsec_nanos().into());
                field::put(out, AFTER, &bytes);
            }
            Self::By(declaration) => field::put(out, BY, declaration),
        }
    }

    /// What a numbered field of the options says; `None` if it is about something else.
    pub(crate) fn of_field(field: &field::Field<'_>) -> Result<Option<Self>, Unreadable> {
        match field.number {
            AFTER => {
                let mut bytes = field.bytes;
                let time = varint::take(&mut bytes).zip(varint::take(&mut bytes));
                let time = time.filter(|(_, nanos)| bytes.is_empty() && *nanos < 1_000_000_000);
                let (seconds, nanos) = time.ok_or("the time after which rows expire does not decode")?;
                Ok(Some(Self::After(Duration::new(seconds, nanos as u32))))
            }
            BY => Ok(Some(Self::By(field.bytes.to_vec()))),
            _ => Ok(None),
        }
    }
}

/// Computes until when a row is there, from the key and the value. A program registers a function that makes such an
/// extractor from the declaration of a table, see [`Builder::expiry_times`](crate::Builder::expiry_times).
///
/// Closures of the type `Fn(&[u8], &[u8]) -> Result<Option<Duration>, String>` are such extractors, for tables without
/// [column groups](crate::TableOptions::groups). They get the key and the value.
pub trait ExpiryTime: Send + Sync {
    /// The time until which the row is there, since the beginning of 1970; `None` if it does not expire. `part` returns
    /// the row's part in a [column group](crate::TableOptions::groups), counted from 0, or `None` if the table does not
    /// have the group. In a table without column groups, 0 is the whole value.
    ///
    /// It is called when a row is written, and its answer is stored with the row. So a later release may compute
    /// another one: rows that are there keep theirs.
    ///
    /// # Errors
    ///
    /// An error says why the row must not be in the table. The write of the row then fails with
    /// [`Error::BadRow`](crate::Error::BadRow).
    fn until<'r>(&self, key: &'r [u8], part: &dyn Fn(usize) -> Option<&'r [u8]>) -> Result<Option<Duration>, String>;
}

impl<F> ExpiryTime for F
where
    F: Fn(&[u8], &[u8]) -> Result<Option<Duration>, String> + Send + Sync,
{
    fn until<'r>(&self, key: &'r [u8], part: &dyn Fn(usize) -> Option<&'r [u8]>) -> Result<Option<Duration>, String> {
        if part(1).is_some() {
            return Err("its value has several parts, and a closure gets only whole values".to_owned());
        }
        self(key, part(0).ok_or("it has no value")?)
    }
}

/// Makes the extractor of a table from its declaration.
type Make = dyn Fn(&[u8]) -> Result<Box<dyn ExpiryTime>, String> + Send + Sync;

/// The extractors of times that a program has registered.
#[derive(Clone, Default)]
pub struct ExpiryTimes(Option<Arc<Make>>);

impl ExpiryTimes {
    /// Registers `make`, which makes the extractor for each declaration.
    pub fn new(make: impl Fn(&[u8]) -> Result<Box<dyn ExpiryTime>, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// Makes the extractor of the table with this `declaration`. A panic of the program's function is an error.
    ///
    /// # Errors
    ///
    /// Returns why no extractor can be made.
    pub fn make(&self, declaration: &[u8]) -> Result<Arc<dyn ExpiryTime>, String> {
        match &self.0 {
            Some(make) => catch_unwind(AssertUnwindSafe(|| make(declaration)))
                .unwrap_or_else(|_| Err("the function of the program panicked".to_owned()))
                .map(Arc::from),
            None => Err("this program has registered none".to_owned()),
        }
    }
}

impl fmt::Debug for ExpiryTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ExpiryTimes(given)" } else { "ExpiryTimes(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_comes_back() {
        let times = [1_000_000, 1_000_001, 999_999_999, 60_000_000_000].map(Duration::from_nanos);
        let after = times.into_iter().chain([Duration::MAX]).map(Expiry::After);
        for expiry in after.chain([Expiry::By(b"x".to_vec()), Expiry::By(vec![0; 300])]) {
            expiry.check().expect("a table can have it");
            let mut bytes = Vec::new();
            expiry.encode(&mut bytes);
            let field = field::Field::take(&mut &bytes[..]).expect("it is a field");
            assert_eq!(Expiry::of_field(&field), Ok(Some(expiry)));
        }
        let mut nothing = Vec::new();
        Expiry::Never.encode(&mut nothing);
        assert!(nothing.is_empty(), "tables without it have the same bytes as before");
    }

    #[test]
    fn what_no_table_can_have_is_refused() {
        for expiry in [Expiry::After(Duration::from_micros(999)), Expiry::By(Vec::new())] {
            assert!(matches!(expiry.check(), Err(Error::BadOptions(_))), "{expiry:?}");
        }
        let bad = [&[][..], &[1], &[1, 2, 3], &[1, 0x80, 0x94, 0xeb, 0xdc, 0x03]];
        for bytes in bad {
            let field = field::Field { number: AFTER, bytes };
            assert!(matches!(Expiry::of_field(&field), Err(Unreadable::Corrupt(_))), "{bytes:?}");
        }
    }

    #[test]
    fn a_panic_of_the_function_that_makes_an_extractor_is_an_error() {
        let times = ExpiryTimes::new(|declaration| panic!("it does not take {declaration:?}"));
        let why = times.make(b"d").err().expect("it panics");
        assert_eq!(why, "the function of the program panicked");
    }

    #[test]
    fn a_closure_gets_whole_values_alone() {
        let closure = |_: &[u8], value: &[u8]| Ok(Some(Duration::from_secs(value.len() as u64)));
        assert_eq!(closure.until(b"k", &|part| (part == 0).then_some(b"abc")), Ok(Some(Duration::from_secs(3))));
        closure.until(b"k", &|part| (part < 2).then_some(b"abc")).expect_err("it has parts");
    }
}

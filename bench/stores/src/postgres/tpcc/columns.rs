//! The types of the columns in PostgreSQL, and the binary encoding of their values. `tpcc::columns` has the columns.
//!
//! Money is in cents (`int8`) and rates are in ten-thousandths (`int4`), so nothing is rounded. COPY, INSERT and
//! SELECT use the same encoding:
//!
//! ```text
//! length  value       of each column, in the order of the table
//! i32                 -1: null
//! ```
//!
//! Values from a database are checked: one that does not fit its column is [`Malformed`].

use crate::postgres::wire::{Malformed, Values, put_bytes};
use ::tpcc::columns::{self, Column, Kind, Sink, Source, Value, key_columns};
use ::tpcc::schema::{Micros, Table};
use ::tpcc::{Row, Text};
use std::convert::Infallible;

/// Microseconds from 1970 to 2000, from which PostgreSQL counts its times.
pub const MICROS_2000: Micros = 946_684_800_000_000;

/// Stands in a column's type for the dialect's collation that compares bytes.
pub const BYTES_COLLATION: &str = "{bytes}";

/// The columns of `table`. Payments have no key, so the column that distinguishes them is left out.
fn columns(table: Table) -> impl Iterator<Item = &'static Column> {
    columns::columns(table).iter().filter(|(_, kind)| *kind != Kind::Unique)
}

/// The number of columns of `table`.
pub fn count(table: Table) -> u16 {
    columns(table).count() as u16
}

/// The columns of `table` with their types, as CREATE TABLE takes them.
pub fn definitions(table: Table) -> Vec<String> {
    let definition = |(name, kind): &Column| match kind {
        Kind::Number | Kind::Flag => format!("{name} int4 NOT NULL"),
        Kind::OptionalNumber => format!("{name} int4"),
        Kind::Long | Kind::Unique => format!("{name} int8 NOT NULL"),
        Kind::Time => format!("{name} timestamptz NOT NULL"),
        Kind::OptionalTime => format!("{name} timestamptz"),
        Kind::Text(most) => format!("{name} varchar({most}) NOT NULL"),
        Kind::Sorted(most) => format!("{name} varchar({most}){BYTES_COLLATION} NOT NULL"),
        Kind::Exact(bytes) => format!("{name} char({bytes}) NOT NULL"),
        Kind::Credit => format!("{name} char(2) NOT NULL"),
    };
    columns(table).map(definition).collect()
}

/// The names of the columns of `table`, with commas between them.
pub fn names(table: Table) -> String {
    columns(table).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The columns of the primary key. The table of payments has none.
pub fn key(table: Table) -> Option<String> {
    let names: Vec<&str> = columns(table).map(|(name, _)| *name).take(key_columns(table)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The first column, which is the warehouse in all tables but that of items.
pub fn first(table: Table) -> &'static str {
    columns::columns(table)[0].0
}

/// Appends the encoded values of a row.
struct Put<'o>(&'o mut Vec<u8>);

impl Put<'_> {
    #[inline]
    fn optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => put_bytes(self.0, bytes),
            None => self.0.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
}

impl Sink for Put<'_> {
    type Error = Infallible;

    #[inline]
    fn put(&mut self, value: Value<'_>) -> Result<(), Infallible> {
        let time = |micros: Micros| (micros - MICROS_2000).to_be_bytes();
        match value {
            Value::Number(number) => self.optional(Some(&number.to_be_bytes())),
            Value::Signed(number) => self.optional(Some(&number.to_be_bytes())),
            Value::OptionalNumber(number) => {
                self.optional(number.map(u32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice))
            }
            Value::Long(number) => self.optional(Some(&number.to_be_bytes())),
            Value::Time(micros) => self.optional(Some(&time(micros))),
            Value::OptionalTime(micros) => self.optional(micros.map(time).as_ref().map(<[u8; 8]>::as_slice)),
            Value::Text(text) => self.optional(Some(text)),
            Value::Credit(is_good) => self.optional(Some(if is_good { b"GC" } else { b"BC" })),
            Value::Flag(flag) => self.optional(Some(&u32::from(flag).to_be_bytes())),
            Value::Unique(_) => {}
        }
        Ok(())
    }
}

/// Appends the encoded values of a row to `out`.
pub fn put(row: Row<'_>, out: &mut Vec<u8>) {
    match columns::put(row, 0, &mut Put(out)) {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

const NULL: Malformed = Malformed("no value in a column that always has one");

/// Takes the next value, an integer. Computed integers have 4 bytes from some servers and 8 bytes from others.
#[inline]
pub fn long(values: &mut Values<'_>) -> Result<i64, Malformed> {
    optional_long(values)?.ok_or(NULL)
}

#[inline]
fn optional_long(values: &mut Values<'_>) -> Result<Option<i64>, Malformed> {
    let Some(bytes) = values.value()? else { return Ok(None) };
    match (<[u8; 4]>::try_from(bytes), <[u8; 8]>::try_from(bytes)) {
        (Ok(bytes), _) => Ok(Some(i32::from_be_bytes(bytes).into())),
        (_, Ok(bytes)) => Ok(Some(i64::from_be_bytes(bytes))),
        _ => Err(Malformed("a number that has neither four nor eight bytes")),
    }
}

/// Takes the next value, an unsigned 32-bit number.
#[inline]
pub fn int(values: &mut Values<'_>) -> Result<u32, Malformed> {
    narrow(long(values)?)
}

fn narrow<T: TryFrom<i64>>(number: i64) -> Result<T, Malformed> {
    T::try_from(number).map_err(|_| Malformed("a number that its column cannot have"))
}

/// Takes the next value, a signed 32-bit number.
#[inline]
pub fn signed_int(values: &mut Values<'_>) -> Result<i32, Malformed> {
    narrow(long(values)?)
}

/// Takes the next value, an unsigned 32-bit number or NULL.
#[inline]
pub fn optional_int(values: &mut Values<'_>) -> Result<Option<u32>, Malformed> {
    optional_long(values)?.map(narrow).transpose()
}

/// Takes the next value, a text.
#[inline]
pub fn bytes<'v>(values: &mut Values<'v>) -> Result<&'v [u8], Malformed> {
    values.value()?.ok_or(NULL)
}

/// Takes the next value, a text of at most `N` bytes.
#[inline]
pub fn text<const N: usize>(values: &mut Values<'_>, text: &mut Text<N>) -> Result<(), Malformed> {
    let bytes = bytes(values)?;
    if bytes.len() > N {
        return Err(Malformed("a text that is longer than its column"));
    }
    text.set(bytes);
    Ok(())
}

/// Reads the values of a row.
pub struct Taken<'t, 'v>(pub &'t mut Values<'v>);

impl Source for Taken<'_, '_> {
    type Error = Malformed;

    #[inline]
    fn optional(&mut self) -> Result<Option<i64>, Malformed> {
        optional_long(self.0)
    }

    #[inline]
    fn text(&mut self, take: impl FnOnce(&[u8]) -> Result<(), &'static str>) -> Result<(), Malformed> {
        take(bytes(self.0)?).map_err(Malformed)
    }

    fn optional_time(&mut self) -> Result<Option<Micros>, Malformed> {
        Ok(optional_long(self.0)?.map(|micros| micros.wrapping_add(MICROS_2000)))
    }

    fn credit(&mut self) -> Result<bool, Malformed> {
        Ok(bytes(self.0)? == b"GC")
    }

    fn skip_unique(&mut self) -> Result<(), Malformed> {
        Ok(())
    }

    fn bad(&self, what: &'static str) -> Malformed {
        Malformed(what)
    }
}

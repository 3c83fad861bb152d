//! Makes the keys of an index from the rows of a table, as a declaration says. This module knows one row at a
//! time. It knows neither how an index is stored nor how it is kept up to date. See `docs/format/extractor.md`.
//!
//! ```text
//! extractor:  field { "," field }
//! field:      source [ type ] [ "required" | "lenient" ]
//! ```
//!
//! Invariant: which keys a row has depends only on its bytes and on the declaration, in this release and in every
//! later one. To remove an index entry, its key is made from the row again and looked up. So if the meaning of a
//! declaration changes, the stored bytes need a new version.

mod found;
mod json;
mod source;
mod time;

use crate::declaration::Declaration;
use crate::field_type::FieldType;
use crate::scanner::{BadText, Scanner};
use crate::stored::{self, BadStored};
use crate::value::FieldValue;
use found::{Found, Unfit};
use source::Source;
use std::fmt;
use std::str::FromStr;

pub use time::{BadTime, RowTime};

#[cfg(test)]
mod tests;

/// Says which keys a row has in an index. It is parsed from text, and `Display` writes it as text.
///
/// ```
/// use larch_rows::{Extractor, Tuple};
///
/// let by_city: Extractor = r#"value.json("$.address.city") string, key[0..4]"#.parse()?;
/// let value = br#"{"name": "Ada", "address": {"city": "London"}}"#;
/// let mut keys = Vec::new();
/// by_city.index_keys(b"0017", &|_| Some(value), &mut |key| keys.push(key.to_vec())).expect("the row fits");
/// assert_eq!(keys, [("London", *b"0017").to_key()]);
///
/// // A row without the field is not in the index.
/// by_city.index_keys(b"0018", &|_| Some(b"{}"), &mut |_| panic!("no key")).expect("the row fits");
/// # Ok::<(), larch_rows::BadText>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extractor {
    fields: Vec<IndexField>,
    /// Derived from the fields.
    groups: Vec<usize>,
}

/// One field of the keys of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IndexField {
    source: Source,
    field_type: FieldType,
    rule: Rule,
}

/// What happens with a row whose field is missing or has another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// If a value is missing, an optional field gets `none`. If the field is not optional, the row is left out. A
    /// value of another type is an error.
    Plain,
    /// A missing value is an error, and so is a value of another type.
    Required,
    /// A value of another type counts as missing.
    Lenient,
}

/// A row that does not fit the declaration of an index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {field} of the index, `{declared}`: {what}")]
pub struct BadRow {
    /// Number of the field, from 0.
    pub field: usize,
    /// How the field is declared.
    pub declared: String,
    /// What is wrong with the row.
    pub what: String,
}

impl Extractor {
    /// Gives the keys of a row to `emit`, each key once, in ascending order. `part` returns the part of the row's
    /// value in the column group with the given number, or `None` if the table has no such group. It is called only
    /// for the numbers in [`groups`](Self::groups).
    ///
    /// No key of an index begins with another key of the same index. So the row's key may be appended to the index
    /// key, and [`declaration`](Self::declaration) separates the two again.
    ///
    /// # Errors
    ///
    /// Fails if a field has another type than declared, if a required field is missing, or if a field is in a
    /// column group that the table does not have. After an error, `emit` has got no key.
    pub fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), BadRow> {
        let mut keys = vec![Vec::new()];
        let (mut found, mut encoded) = (Vec::new(), Encoded::default());
        for (number, field) in self.fields.iter().enumerate() {
            let bad = |what| BadRow { field: number, declared: field.to_string(), what };
            let bytes = match field.source.group() {
                None => key,
                Some(group) => part(group).ok_or_else(|| bad(format!("the table has no column group {group}")))?,
            };
            found.clear();
            field.source.find(bytes, field.field_type.kind, &mut found);
            encoded.clear();
            field.encode(&mut found, &mut encoded).map_err(bad)?;
            match &encoded.ends[..] {
                [] => return Ok(()),
                [_] => keys.iter_mut().for_each(|key| key.extend_from_slice(&encoded.bytes)),
                _ => keys = keys.iter().flat_map(|key| encoded.iter().map(move |more| [key, more].concat())).collect(),
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys.iter().for_each(|key| emit(key));
        Ok(())
    }

    /// The numbers of the column groups that are needed, in ascending order. If no groups are needed, the key of a
    /// row is enough.
    pub fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// The types of the fields, with which the keys of the index can be shown and parsed.
    pub fn declaration(&self) -> Declaration {
        Declaration::new(self.fields.iter().map(|field| field.field_type).collect::<Vec<_>>())
    }

    /// The extractor as bytes that can be stored: a version and its text.
    pub fn to_bytes(&self) -> Vec<u8> {
        stored::to_bytes(&self.to_string())
    }

    /// Reads an extractor that was stored.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not an extractor, or if they have a version that this release does not know.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadStored> {
        Ok(stored::text_of(bytes)?.parse()?)
    }
}

/// The values of one field of one row, encoded.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
}

impl Encoded {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl IndexField {
    /// Encodes the values that were found in a row. If the row is left out, it encodes nothing.
    fn encode(&self, found: &mut Vec<Found<'_>>, encoded: &mut Encoded) -> Result<(), String> {
        if found.is_empty() {
            found.push(Err(Unfit::Missing));
        }
        for value in found.drain(..) {
            let fits = |value: FieldValue<'_>| {
                let result = value.encode(self.field_type, &mut encoded.bytes);
                result.map_err(|misfit| Unfit::Wrong(misfit.to_string()))
            };
            match (value.and_then(fits), self.rule) {
                (Ok(()), _) => {}
                (Err(Unfit::Wrong(what)), Rule::Plain | Rule::Required) => return Err(what),
                (Err(Unfit::Missing), Rule::Required) => return Err("the row does not have it".to_owned()),
                (Err(_), _) if self.field_type.is_optional => {
                    let none = FieldValue::None.encode(self.field_type, &mut encoded.bytes);
                    none.expect("the field is optional");
                }
                (Err(_), _) => continue,
            }
            encoded.ends.push(encoded.bytes.len());
        }
        Ok(())
    }

    /// The field that comes next in a text.
    fn scan(text: &mut Scanner<'_>) -> Result<Self, BadText> {
        let source = Source::scan(text)?;
        let mut before = text.clone();
        let field_type = FieldType::scan(text, source.default_kind())?;
        source.check(field_type.kind).or_else(|what| before.fail(what))?;
        let mut before = text.clone();
        let rule = match () {
            () if text.takes_word("required") => Rule::Required,
            () if text.takes_word("lenient") => Rule::Lenient,
            () => Rule::Plain,
        };
        if rule == Rule::Required && field_type.is_optional {
            return before.fail("a field with `?` may be missing, so it is not required");
        }
        Ok(Self { source, field_type, rule })
    }
}

impl fmt::Display for IndexField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.source)?;
        let field_type = self.field_type.to_string();
        match self.source.default_kind() {
            // The default kind is not written, but the rest of the type, which follows it, is.
            Some(kind) if kind == self.field_type.kind => write!(out, "{}", &field_type[kind.to_string().len()..])?,
            _ => write!(out, " {field_type}")?,
        }
        match self.rule {
            Rule::Plain => Ok(()),
            Rule::Required => out.write_str(" required"),
            Rule::Lenient => out.write_str(" lenient"),
        }
    }
}

impl FromStr for Extractor {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let mut text = Scanner::new(text);
        let mut fields: Vec<IndexField> = Vec::new();
        loop {
            let mut before = text.clone();
            let field = IndexField::scan(&mut text)?;
            if field.source.gives_many() && fields.iter().any(|field| field.source.gives_many()) {
                return before.fail("only one field of an index may have `[*]`");
            }
            fields.push(field);
            if !text.takes(",") {
                break;
            }
        }
        text.expect_end()?;
        let mut groups: Vec<usize> = fields.iter().filter_map(|field| field.source.group()).collect();
        groups.sort_unstable();
        groups.dedup();
        Ok(Self { fields, groups })
    }
}

impl fmt::Display for Extractor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, field) in self.fields.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(out, "{comma}{field}")?;
        }
        Ok(())
    }
}

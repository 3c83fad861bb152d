//! Finds the field of a JSON value at a path, and skips everything else without keeping it. This module does not
//! know where the value comes from.
//!
//! ```text
//! path:  "$" { "." name | "['" name "']" | "[" number "]" | "[*]" }
//! ```

use super::found::{Found, Unfit};
use crate::field_type::Kind;
use crate::scanner::{BadText, Scanner, push_literal};
use crate::value::FieldValue;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The way from the root of a JSON value to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The member of an object. If several members have this name, only the last one is used.
    Member(String),
    /// An element of an array, from 0.
    Element(usize),
    /// Each element of an array.
    Each,
}

/// The most steps of a path. JSON that is nested more deeply is not read, so a longer path would find nothing.
const MAX_STEPS: usize = 100;

impl Path {
    /// Whether a value may have several fields on this path.
    pub fn gives_many(&self) -> bool {
        self.steps.contains(&Step::Each)
    }

    /// Appends the values that lie on this path in the JSON value `bytes`.
    pub fn find<'r>(&self, bytes: &[u8], kind: Kind, found: &mut Vec<Found<'r>>) {
        let start = found.len();
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let read = Finder { steps: &self.steps, kind, found: &mut *found }.deserialize(&mut json);
        if let Err(bad) = read.and_then(|()| json.end()) {
            found.truncate(start);
            found.push(Err(Unfit::Wrong(format!("it is not JSON: {bad}"))));
        }
    }
}

/// Reads a value. `steps` lead from this value down to the field.
struct Finder<'p, 'f, 'r> {
    steps: &'p [Step],
    kind: Kind,
    found: &'f mut Vec<Found<'r>>,
}

impl Finder<'_, '_, '_> {
    /// Takes a value that is neither an object nor an array. If the path leads on below it, the field is missing.
    fn take(self, value: FieldValue<'static>) {
        if self.steps.is_empty() {
            self.found.push(Ok(value));
        }
    }

    /// Takes a value that cannot be of the field's kind.
    fn refuse(self, what: impl fmt::Display) {
        if self.steps.is_empty() {
            self.found.push(Err(Unfit::Wrong(format!("{what} is not of type {}", self.kind))));
        }
    }

    /// Takes a whole number.
    fn take_whole(self, number: i128) {
        match self.kind {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::U128 => match u128::try_from(number) {
                Ok(number) => self.take(FieldValue::Unsigned(number)),
                Err(_) => self.refuse(number),
            },
            Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 | Kind::I128 => self.take(FieldValue::Signed(number)),
            Kind::F32 => self.take(FieldValue::F32(number as f32)),
            Kind::F64 => self.take(FieldValue::F64(number as f64)),
            _ => self.refuse(number),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Finder<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Finder<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.kind {
            Kind::Bool => self.take(FieldValue::Bool(value)),
            _ => self.refuse(value),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.take_whole(value.into());
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.take_whole(value.into());
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match self.kind {
            Kind::F32 => self.take(FieldValue::F32(value as f32)),
            Kind::F64 => self.take(FieldValue::F64(value)),
            _ => self.refuse(format_args!("{value:?}")),
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        match self.kind {
            Kind::String => self.take(FieldValue::String(Cow::Owned(value.to_owned()))),
            _ => self.refuse("a string"),
        }
        Ok(())
    }

    /// `null`.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if self.steps.is_empty() {
            self.found.push(Err(Unfit::Missing));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Self { steps, kind, found } = self;
        let (wanted, below) = match steps.split_first() {
            Some((Step::Element(number), below)) => (Some(*number), below),
            Some((Step::Each, below)) => (None, below),
            Some((Step::Member(_), _)) | None => {
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Self { steps, kind, found }.refuse("an array");
                return Ok(());
            }
        };
        for number in 0.. {
            let passed = if wanted.is_none_or(|wanted| wanted == number) {
                elements.next_element_seed(Finder { steps: below, kind, found: &mut *found })?
            } else {
                elements.next_element::<IgnoredAny>()?.map(|_| ())
            };
            if passed.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { steps, kind, found } = self;
        let start = found.len();
        let Some((Step::Member(name), below)) = steps.split_first() else {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Self { steps, kind, found }.refuse("an object");
            return Ok(());
        };
        while let Some(is_wanted) = members.next_key_seed(IsName(name))? {
            if is_wanted {
                found.truncate(start);
                members.next_value_seed(Finder { steps: below, kind, found: &mut *found })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Compares the name of a member without keeping it.
struct IsName<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a member")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

impl FromStr for Path {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let mut text = Scanner::new(text);
        text.expect("$")?;
        let mut steps = Vec::new();
        loop {
            if steps.len() == MAX_STEPS {
                text.expect_end()?;
            }
            if text.takes(".") {
                let name = text.peek_word();
                if name.is_empty() {
                    return text
                        .fail("a name of letters, digits and `_` is expected; write another one as ['the name']");
                }
                text.takes_word(name);
                steps.push(Step::Member(name.to_owned()));
            } else if text.takes("[") {
                steps.push(match () {
                    () if text.takes("*") => Step::Each,
                    () if text.peek_word().is_empty() => Step::Member(text.literal('\'')?),
                    () => Step::Element(text.number()?),
                });
                text.expect("]")?;
            } else {
                text.expect_end()?;
                return Ok(Self { steps });
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("$")?;
        for step in &self.steps {
            match step {
                Step::Member(name) if is_plain(name) => write!(out, ".{name}")?,
                Step::Member(name) => {
                    let mut text = String::new();
                    push_literal(name, '\'', &mut text);
                    write!(out, "[{text}]")?;
                }
                Step::Element(number) => write!(out, "[{number}]")?,
                Step::Each => out.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

/// Whether the name of a member can be written after a point.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

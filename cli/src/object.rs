//! Reads the key members of a JSON object from its text. The other members are only checked. This module also
//! splits an object into several objects by its members, and joins them again.

use crate::keys;
use crate::schema::{KeyColumn, Place, Schema};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

#[cfg(test)]
mod tests;

/// Appends the key of the object in `text`.
pub fn encode_key(schema: &Schema, text: &str, key: &mut Vec<u8>) -> Result<(), String> {
    let members = members(schema, text)?;
    for (at, (column, member)) in schema.key.iter().zip(&members).enumerate() {
        let Some(member) = member else {
            return Err(format!(
                "the object has no member {:?}, which is in the key; add it or choose another --key",
                name(column)
            ));
        };
        let text = member_text(column, member)?;
        keys::encode(column.kind, text.as_bytes(), at + 1 == schema.key.len(), key)
            .map_err(|bad| format!("member {:?} of the key: {bad}; correct it or declare it as text", name(column)))?;
    }
    Ok(())
}

/// The object that `put` was given, with the members of its key. Key members that the object lacks are added in
/// front of its other members. Key members that it has must agree with `key`.
pub fn with_key(schema: &Schema, texts: &[Vec<u8>], object: &[u8], key: &[u8]) -> Result<Vec<u8>, String> {
    let object =
        std::str::from_utf8(object).map_err(|_| "the value is not UTF-8; write a JSON object".to_string())?.trim();
    if object.contains('\n') {
        return Err("the object stands on several lines; write it on one".to_string());
    }
    let members = members(schema, object)?;
    let mut front = Vec::new();
    for ((column, text), member) in schema.key.iter().zip(texts).zip(&members) {
        if member.is_some() {
            continue;
        }
        let text = std::str::from_utf8(text)
            .map_err(|_| format!("the key is not UTF-8, so JSON cannot hold member {:?}; write UTF-8", name(column)))?;
        // In the text of the key, a number may be written in a way that JSON does not allow, such as 007 or +5.
        let number = column.kind.is_numeric() && serde_json::from_str::<serde_json::Number>(text).is_ok();
        front.push(b',');
        front.extend_from_slice(string(name(column)).as_bytes());
        front.push(b':');
        front.extend_from_slice(if number { text.into() } else { string(text) }.as_bytes());
    }
    let mut whole = Vec::with_capacity(front.len() + object.len());
    whole.push(b'{');
    whole.extend_from_slice(front.get(1..).unwrap_or_default());
    let inside = &object[1..];
    if !front.is_empty() && inside.trim_start() != "}" {
        whole.push(b',');
    }
    whole.extend_from_slice(inside.as_bytes());
    let mut own = Vec::new();
    encode_key(schema, std::str::from_utf8(&whole).expect("made of UTF-8"), &mut own)?;
    if own != key {
        return Err("the object's own key members say another key; make them agree or leave them out".to_string());
    }
    Ok(whole)
}

/// Splits the object in `text`, which [`encode_key`] has accepted. Appends to each part an object with the members
/// that belong to this part. Names and values are copied unchanged.
pub fn split(text: &str, part_of: impl Fn(&str) -> Option<usize>, parts: &mut [Vec<u8>]) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let stray = json.deserialize_map(Split { part_of, parts: &mut *parts }).map_err(|why| sentence(&why))?;
    if let Some(name) = stray {
        return Err(format!(
            "member {name:?} is in no group, and no group takes the rest; take it out, or import into a table with a \
             group of *"
        ));
    }
    for part in parts {
        if part.is_empty() {
            part.push(b'{');
        }
        part.push(b'}');
    }
    Ok(())
}

/// Joins the members of all parts, and appends them as one object. If a part is not an object that [`split`] made,
/// appends nothing and returns false.
pub fn join<P: AsRef<[u8]>>(parts: &[P], object: &mut Vec<u8>) -> bool {
    fn inside(part: &[u8]) -> Option<&[u8]> {
        part.strip_prefix(b"{")?.strip_suffix(b"}")
    }
    if !parts.iter().all(|part| inside(part.as_ref()).is_some()) {
        return false;
    }
    object.push(b'{');
    let members = parts.iter().filter_map(|part| inside(part.as_ref())).filter(|members| !members.is_empty());
    for (at, members) in members.enumerate() {
        if at > 0 {
            object.push(b',');
        }
        object.extend_from_slice(members);
    }
    object.push(b'}');
    true
}

/// Whether a text is a number of JSON, byte for byte.
pub fn is_number(text: &[u8]) -> bool {
    // The parser would skip white space around a number.
    text.last().is_some_and(u8::is_ascii_digit)
        && matches!(text.first(), Some(b'-' | b'0'..=b'9'))
        && std::str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<&RawValue>(text).is_ok())
}

/// `text` as a JSON string.
pub fn string(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

fn name(column: &KeyColumn) -> &str {
    match &column.column {
        Place::Name(name) => name,
        Place::Number(_) => unreachable!("a soundness check passed"),
    }
}

/// The text of a member from which the key is encoded: the characters of a string, or the digits of a number.
fn member_text<'t>(column: &KeyColumn, member: &'t RawValue) -> Result<Cow<'t, str>, String> {
    let raw = member.get();
    match raw.as_bytes() {
        [b'"', .., b'"'] if !raw.contains('\\') => Ok(Cow::Borrowed(&raw[1..raw.len() - 1])),
        [b'"', ..] => Ok(Cow::Owned(serde_json::from_str(raw).map_err(|why| sentence(&why))?)),
        [b'-' | b'0'..=b'9', ..] if column.kind.is_numeric() => Ok(Cow::Borrowed(raw)),
        [b'-' | b'0'..=b'9', ..] => {
            Err(format!("member {0:?} of the key is a number; declare it, as {0}:int or {0}:num", name(column)))
        }
        _ => Err(format!("member {:?} of the key is {raw}; a key is made of strings and numbers", name(column))),
    }
}

/// The members of the key, in the key's order.
fn members<'t>(schema: &Schema, text: &'t str) -> Result<Vec<Option<&'t RawValue>>, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let members = json.deserialize_map(Members(&schema.key)).map_err(|why| sentence(&why))?;
    json.end().map_err(|why| sentence(&why))?;
    Ok(members)
}

/// The parser's description of an error. The parser adds a line number, which is removed here.
fn sentence(why: &serde_json::Error) -> String {
    let text = why.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    format!("not a JSON object on one line: {text} (at byte {})", why.column())
}

/// Collects the members that belong to the key.
struct Members<'s>(&'s [KeyColumn]);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Vec<Option<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = vec![None; self.0.len()];
        while let Some(place) = map.next_key_seed(PlaceOf(self.0))? {
            let Some(place) = place else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if members[place].replace(map.next_value()?).is_some() {
                let name = name(&self.0[place]);
                return Err(serde::de::Error::custom(format!("member {name:?} of the key is there twice")));
            }
        }
        Ok(members)
    }
}

/// Reads the name of a member and returns its place in the key.
struct PlaceOf<'s>(&'s [KeyColumn]);

impl<'de> DeserializeSeed<'de> for PlaceOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for PlaceOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: serde::de::Error>(self, member: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|column| name(column) == member))
    }
}

/// Copies each member to its part. Returns the name of the first member that belongs to no part.
struct Split<'p, F> {
    part_of: F,
    parts: &'p mut [Vec<u8>],
}

impl<'de, F: Fn(&str) -> Option<usize>> Visitor<'de> for Split<'_, F> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut stray = None;
        while let Some((name, member)) = map.next_entry::<&RawValue, &RawValue>()? {
            let name = name.get();
            let plain = if name.contains('\\') {
                Cow::Owned(serde_json::from_str(name).map_err(serde::de::Error::custom)?)
            } else {
                Cow::Borrowed(&name[1..name.len() - 1])
            };
            let Some(part) = (self.part_of)(&plain) else {
                stray = stray.or_else(|| Some(plain.into_owned()));
                continue;
            };
            let part = &mut self.parts[part];
            part.push(if part.is_empty() { b'{' } else { b',' });
            part.extend_from_slice(name.as_bytes());
            part.push(b':');
            part.extend_from_slice(member.get().as_bytes());
        }
        Ok(stray)
    }
}

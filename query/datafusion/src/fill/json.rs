//! Reads fields of a JSON value by their paths, in one pass. The rest of the value is only checked for its syntax.

use super::builder::{Builder, not_utf8};
use crate::columns::{Form, Source, Step};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

/// The paths of a source as a tree, in which paths with a common beginning share nodes.
#[derive(Debug, Default)]
pub struct Tree {
    root: Node,
    /// The fields that have an array: the number of the field and the number of its array.
    slots: Vec<(usize, usize)>,
}

#[derive(Debug, Default)]
struct Node {
    members: Vec<(String, Node)>,
    elements: Vec<(usize, Node)>,
    /// The indexes in `slots` of the fields whose paths end at this node.
    ends: Vec<usize>,
}

/// What is wrong with a JSON value.
pub enum Bad {
    /// The bytes are not JSON.
    Whole(String),
    /// The value of the field with this number does not have the type of the field.
    Field(usize, String),
}

impl Tree {
    /// The tree of the paths of all fields of `source` for which `array_of` returns the number of an array. Empty if
    /// the source is not JSON.
    pub fn of(source: &Source, array_of: impl Fn(usize) -> Option<usize>) -> Self {
        let mut tree = Self::default();
        if source.form != Form::Json {
            return tree;
        }
        for (number, field) in source.fields.iter().enumerate() {
            let Some(array) = array_of(number) else { continue };
            let name = field.name.iter().map(|name| Step::Member(name.clone())).collect::<Vec<_>>();
            let path = field.path.as_ref().unwrap_or(&name);
            let end = path.iter().fold(&mut tree.root, |node, step| node.below(step));
            end.ends.push(tree.slots.len());
            tree.slots.push((number, array));
        }
        tree
    }

    /// Appends the value of each field in the JSON value `bytes`, or NULL if it is absent.
    pub fn read(&self, bytes: &[u8], builders: &mut [Builder]) -> Result<(), Bad> {
        let text = std::str::from_utf8(bytes).map_err(|bad| Bad::Whole(not_utf8(bad.valid_up_to())))?;
        let found = RefCell::new(vec![None; self.slots.len()]);
        let mut json = serde_json::Deserializer::from_str(text);
        let read = Finder { node: &self.root, found: &found }.deserialize(&mut json).and_then(|()| json.end());
        read.map_err(|bad| Bad::Whole(format!("it is not JSON: {bad}")))?;
        for (&(number, array), found) in self.slots.iter().zip(found.into_inner()) {
            push(found, &mut builders[array]).map_err(|what| Bad::Field(number, what))?;
        }
        Ok(())
    }
}

/// Appends a JSON value. In a column of strings, a value that is not a string is appended as its JSON text.
fn push(found: Option<&RawValue>, array: &mut Builder) -> Result<(), String> {
    let Some(raw) = found.map(RawValue::get).filter(|raw| *raw != "null") else {
        array.push_null();
        return Ok(());
    };
    match (raw.strip_prefix('"'), &*array) {
        (Some(quoted), Builder::String(..)) => match quoted.strip_suffix('"').filter(|text| !text.contains('\\')) {
            Some(text) => array.push_bytes(text.as_bytes()),
            None => {
                let text: String =
                    serde_json::from_str(raw).map_err(|bad| format!("the string cannot be read: {bad}"))?;
                array.push_bytes(text.as_bytes())
            }
        },
        // A number in quotes is a string.
        (Some(_), _) => Err(format!("{raw} is a string")),
        (None, _) => array.push_text(raw.as_bytes()),
    }
}

impl Node {
    fn below(&mut self, step: &Step) -> &mut Self {
        match step {
            Step::Member(name) => child(&mut self.members, name.clone()),
            Step::Element(number) => child(&mut self.elements, *number),
        }
    }

    fn is_leaf(&self) -> bool {
        self.members.is_empty() && self.elements.is_empty()
    }
}

fn child<K: PartialEq>(children: &mut Vec<(K, Node)>, key: K) -> &mut Node {
    let at = children.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
        children.push((key, Node::default()));
        children.len() - 1
    });
    &mut children[at].1
}

/// Reads the value at `node`.
#[derive(Clone, Copy)]
struct Finder<'n, 'f, 'r> {
    node: &'n Node,
    found: &'f RefCell<Vec<Option<&'r RawValue>>>,
}

impl<'r> Finder<'_, '_, 'r> {
    fn take(self, raw: &'r RawValue) {
        let mut found = self.found.borrow_mut();
        self.node.ends.iter().for_each(|end| found[*end] = Some(raw));
    }

    /// Drops what an earlier member with the same name has set.
    fn forget(self) {
        let mut left = vec![self.node];
        let mut found = self.found.borrow_mut();
        while let Some(node) = left.pop() {
            node.ends.iter().for_each(|end| found[*end] = None);
            left.extend(node.members.iter().map(|(_, node)| node).chain(node.elements.iter().map(|(_, node)| node)));
        }
    }
}

impl<'r> DeserializeSeed<'r> for Finder<'_, '_, 'r> {
    type Value = ();

    fn deserialize<D: Deserializer<'r>>(self, from: D) -> Result<(), D::Error> {
        if self.node.ends.is_empty() {
            return from.deserialize_any(self);
        }
        let raw: &'r RawValue = serde::Deserialize::deserialize(from)?;
        self.take(raw);
        if !self.node.is_leaf() {
            let mut json = serde_json::Deserializer::from_str(raw.get());
            json.deserialize_any(self).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

impl<'r> Visitor<'r> for Finder<'_, '_, 'r> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'r>>(self, mut elements: A) -> Result<(), A::Error> {
        for number in 0.. {
            let wanted = self.node.elements.iter().find(|(element, _)| *element == number);
            let passed = match wanted {
                Some((_, node)) => elements.next_element_seed(Self { node, ..self })?,
                None => elements.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if passed.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'r>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key_seed(Name)? {
            match self.node.members.iter().find(|(member, _)| *member == *name) {
                Some((_, node)) => {
                    let below = Self { node, ..self };
                    below.forget();
                    members.next_value_seed(below)?;
                }
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the name of a member, borrowed if possible.
struct Name;

impl<'r> DeserializeSeed<'r> for Name {
    type Value = Cow<'r, str>;

    fn deserialize<D: Deserializer<'r>>(self, from: D) -> Result<Cow<'r, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'r> Visitor<'r> for Name {
    type Value = Cow<'r, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a member")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, name: &'r str) -> Result<Cow<'r, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Cow<'r, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

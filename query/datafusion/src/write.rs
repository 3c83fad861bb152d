//! Turns the rows of a query into keys and values: the opposite of [`crate::fill`].

use crate::columns::{BadColumns, Columns, Field, Form, Source, Step, data_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use rows::{BadValue, Declaration, FieldValue, Kind};
use std::borrow::Cow;
use std::fmt::{self, Write as _};

#[cfg(test)]
mod tests;

/// How the rows of a query become rows of a table.
#[derive(Debug)]
pub struct RowWriter {
    /// The first target is the key.
    targets: Vec<Target>,
    /// The number of parts that a value has.
    parts: usize,
}

/// A key, or a part of a value, that consists of fields.
#[derive(Debug)]
struct Target {
    part: Option<usize>,
    form: Form,
    /// The names of the columns, for messages.
    names: Vec<String>,
    /// The numbers of the columns in the query.
    columns: Vec<usize>,
    /// The declaration of the tuple, if the fields are encoded as a tuple.
    tuple: Declaration,
    kinds: Vec<Kind>,
    json: Node,
}

/// The members of an object.
#[derive(Debug, Default)]
struct Node {
    members: Vec<(String, Member)>,
}

#[derive(Debug)]
enum Member {
    /// A field, given by its number.
    Field(usize),
    Object(Node),
}

/// The error for a row that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// The name of the column that has the value.
    pub column: String,
    /// What is wrong with the value.
    pub what: String,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, what } = self;
        write!(out, "column {column}: {what}; give the table another type, or leave such rows out of the query")
    }
}

impl std::error::Error for Unwritable {}

impl RowWriter {
    /// Makes a writer for a query. The query must have the same columns as the table.
    ///
    /// # Errors
    ///
    /// Fails if the table has no key, if a column is missing in the table or in the query, or if the form of a
    /// column cannot be written.
    pub fn new(columns: &Columns, query: &Schema) -> Result<Self, BadColumns> {
        let wanted = columns.schema();
        if let Some(other) = query.fields().iter().find(|field| wanted.column_with_name(field.name()).is_none()) {
            return Err(BadColumns::new(format!(
                "the query has a column {} and the table has none; name the columns of the query as those of the table, or \
                 leave this one out",
                other.name()
            )));
        }
        // All columns of the query have names of table columns, so if they are more, two of them have the same name.
        if query.fields().len() > wanted.fields().len() {
            return Err(BadColumns::new(
                "two columns of the query have one name; give each another one with AS".to_owned(),
            ));
        }
        let mut targets =
            columns.sources().iter().map(|source| Target::new(source, query)).collect::<Result<Vec<_>, _>>()?;
        targets.sort_by_key(|target| target.part);
        if targets.first().is_none_or(|target| target.part.is_some()) {
            return Err(BadColumns::new("the table has no key; declare one, as in key.tuple(number u32)".to_owned()));
        }
        let parts = targets.iter().filter_map(|target| target.part).max().map_or(1, |part| part + 1);
        Ok(Self { targets, parts })
    }

    /// The number of parts that a value has.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The types of the key's fields, if the key is a tuple without a rest.
    pub fn key(&self) -> Option<&Declaration> {
        let key = &self.targets[0];
        (key.form == Form::Tuple { has_rest: false }).then_some(&key.tuple)
    }

    /// Calls `add` with the key and the parts of the value for each row of a batch.
    ///
    /// # Errors
    ///
    /// Fails if a value does not fit its column, or if `add` fails.
    pub fn write<E: From<Unwritable>>(
        &self,
        batch: &RecordBatch,
        mut add: impl FnMut(&[u8], &[Vec<u8>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let arrays = self.targets.iter().map(|target| target.arrays(batch)).collect::<Result<Vec<_>, Unwritable>>()?;
        let (mut key, mut parts) = (Vec::new(), vec![Vec::new(); self.parts]);
        for row in 0..batch.num_rows() {
            key.clear();
            parts.iter_mut().for_each(Vec::clear);
            for (target, arrays) in self.targets.iter().zip(&arrays) {
                let bytes = target.part.map_or(&mut key, |part| &mut parts[part]);
                target.write(arrays, row, bytes)?;
            }
            add(&key, &parts)?;
        }
        Ok(())
    }
}

impl Target {
    fn new(source: &Source, query: &Schema) -> Result<Self, BadColumns> {
        let bad = |what: String| Err(BadColumns::new(what));
        if matches!(source.form, Form::Split { .. }) {
            return bad("texts with a byte between them are not written; declare .tuple(…) or .json(…)".to_owned());
        }
        let (mut names, mut columns, mut json) = (Vec::new(), Vec::new(), Node::default());
        for (number, Field { name, path, .. }) in source.fields.iter().enumerate() {
            let Some(name) = name else {
                return bad("a field that is written has a name, and not `_`".to_owned());
            };
            let Some((column, _)) = query.column_with_name(name) else {
                return bad(format!("the query has no column {name}; add it, or leave it out of the table"));
            };
            names.push(name.clone());
            columns.push(column);
            if source.form == Form::Json {
                let steps = path.clone().unwrap_or_else(|| vec![Step::Member(name.clone())]);
                if !json.add(&steps, number) {
                    return bad(format!("{name}: a member that is written is named by members alone, and once"));
                }
            }
        }
        let types: Vec<_> = source.fields.iter().map(|field| field.field_type).collect();
        let tuple =
            if source.form == (Form::Tuple { has_rest: true }) { &types[..types.len() - 1] } else { &types[..] };
        Ok(Self {
            part: source.group,
            form: source.form,
            names,
            columns,
            tuple: Declaration::new(tuple),
            kinds: types.iter().map(|field| field.kind).collect(),
            json,
        })
    }

    /// Returns an array for each field, cast to the type that the table's column has in Arrow.
    fn arrays(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, Unwritable> {
        // A value that does not fit the type of its column must be an error. With `safe`, the cast would make it
        // NULL.
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let cast = |((column, kind), name): ((&usize, &Kind), &String)| {
            let array = batch.column(*column);
            let bad = |what: String| Unwritable { column: name.clone(), what };
            let cast = |array: &ArrayRef, wanted: &DataType| {
                cast_with_options(array, wanted, &options).map_err(|error| bad(error.to_string()))
            };
            let (given, wanted) = (array.data_type(), data_type(*kind));
            let written = cast(array, &wanted)?;
            // The cast truncates digits for which the type has no room. Such a number is refused.
            if given.is_numeric()
                && wanted.is_numeric()
                && *given != wanted
                && cast(&written, given)?.as_ref() != array.as_ref()
            {
                return Err(bad(format!("a number of type {given} has digits for which {wanted} has no room")));
            }
            Ok(written)
        };
        self.columns.iter().zip(&self.kinds).zip(&self.names).map(cast).collect()
    }

    fn write(&self, arrays: &[ArrayRef], row: usize, bytes: &mut Vec<u8>) -> Result<(), Unwritable> {
        let bad = |field: usize, what: String| Unwritable { column: self.names[field].clone(), what };
        let values = arrays.iter().zip(&self.kinds).map(|(array, kind)| value(array, *kind, row));
        let values = values.enumerate().map(|(field, value)| value.map_err(|what| bad(field, what)));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let whole = |field: usize, bytes: &mut Vec<u8>| match &values[field] {
            FieldValue::String(text) => {
                bytes.extend_from_slice(text.as_bytes());
                Ok(())
            }
            FieldValue::Bytes(content) => {
                bytes.extend_from_slice(content);
                Ok(())
            }
            _ => Err(bad(field, "NULL is only for a field that is declared with `?`".to_owned())),
        };
        match self.form {
            Form::Whole => whole(0, bytes),
            Form::Tuple { has_rest } => {
                let fields = self.tuple.fields().len();
                let encoded = self.tuple.encode(&values[..fields], bytes).map_err(|unfit| match unfit {
                    BadValue::Field { field, misfit, .. } => bad(field, misfit.to_string()),
                    other => bad(0, other.to_string()),
                });
                encoded.and_then(|()| if has_rest { whole(fields, bytes) } else { Ok(()) })
            }
            Form::Json => {
                let mut text = String::new();
                self.json.write(&values, &mut text).map_err(|(field, what)| bad(field, what))?;
                bytes.extend_from_slice(text.as_bytes());
                Ok(())
            }
            Form::Split { .. } => unreachable!("it was refused"),
        }
    }
}

impl Node {
    /// Adds a field at the end of a path of members. Returns whether the path was free.
    fn add(&mut self, steps: &[Step], field: usize) -> bool {
        let [Step::Member(name), rest @ ..] = steps else { return false };
        let at = self.members.iter().position(|(member, _)| member == name);
        if rest.is_empty() {
            if at.is_none() {
                self.members.push((name.clone(), Member::Field(field)));
            }
            return at.is_none();
        }
        let at = at.unwrap_or_else(|| {
            self.members.push((name.clone(), Member::Object(Self::default())));
            self.members.len() - 1
        });
        match &mut self.members[at].1 {
            Member::Object(node) => node.add(rest, field),
            Member::Field(_) => false,
        }
    }

    /// Writes the object.
    ///
    /// # Errors
    ///
    /// Fails if a number cannot be written as JSON. The error has the number of the field.
    fn write(&self, values: &[FieldValue<'_>], text: &mut String) -> Result<(), (usize, String)> {
        for (number, (name, member)) in self.members.iter().enumerate() {
            text.push(if number == 0 { '{' } else { ',' });
            push_json(name, text);
            text.push(':');
            match member {
                Member::Object(node) => node.write(values, text)?,
                Member::Field(field) => match &values[*field] {
                    FieldValue::None => text.push_str("null"),
                    FieldValue::String(value) => push_json(value, text),
                    FieldValue::F32(value) if !value.is_finite() => {
                        return Err((*field, format!("{value} is no number of JSON")));
                    }
                    FieldValue::F64(value) if !value.is_finite() => {
                        return Err((*field, format!("{value} is no number of JSON")));
                    }
                    value => write!(text, "{value}").expect("memory takes every write"),
                },
            }
        }
        text.push('}');
        Ok(())
    }
}

fn push_json(content: &str, text: &mut String) {
    text.push_str(&serde_json::to_string(content).expect("a text is a string of JSON"));
}

/// The value in row `row` of an array, with the type of its kind.
///
/// # Errors
///
/// Fails if the value is a whole number of 39 digits that does not fit the kind.
fn value(array: &ArrayRef, kind: Kind, row: usize) -> Result<FieldValue<'_>, String> {
    if array.is_null(row) {
        return Ok(FieldValue::None);
    }
    let too_large = |value: String| format!("{value} is outside the range of {kind}");
    Ok(match kind {
        Kind::Bool => FieldValue::Bool(array.as_boolean().value(row)),
        Kind::U8 => FieldValue::Unsigned(array.as_primitive::<UInt8Type>().value(row).into()),
        Kind::U16 => FieldValue::Unsigned(array.as_primitive::<UInt16Type>().value(row).into()),
        Kind::U32 => FieldValue::Unsigned(array.as_primitive::<UInt32Type>().value(row).into()),
        Kind::U64 => FieldValue::Unsigned(array.as_primitive::<UInt64Type>().value(row).into()),
        Kind::I8 => FieldValue::Signed(array.as_primitive::<Int8Type>().value(row).into()),
        Kind::I16 => FieldValue::Signed(array.as_primitive::<Int16Type>().value(row).into()),
        Kind::I32 => FieldValue::Signed(array.as_primitive::<Int32Type>().value(row).into()),
        Kind::I64 => FieldValue::Signed(array.as_primitive::<Int64Type>().value(row).into()),
        Kind::U128 => {
            let number = array.as_primitive::<Decimal256Type>().value(row);
            match number.to_parts() {
                (low, 0) => FieldValue::Unsigned(low),
                _ => return Err(too_large(number.to_string())),
            }
        }
        Kind::I128 => {
            let number = array.as_primitive::<Decimal256Type>().value(row);
            FieldValue::Signed(number.to_i128().ok_or_else(|| too_large(number.to_string()))?)
        }
        Kind::F32 => FieldValue::F32(array.as_primitive::<Float32Type>().value(row)),
        Kind::F64 => FieldValue::F64(array.as_primitive::<Float64Type>().value(row)),
        Kind::String => FieldValue::String(Cow::Borrowed(array.as_string_view().value(row))),
        Kind::Fixed(_) => FieldValue::Bytes(Cow::Borrowed(array.as_fixed_size_binary().value(row))),
        _ => FieldValue::Bytes(Cow::Borrowed(array.as_binary_view().value(row))),
    })
}

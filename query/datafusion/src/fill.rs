//! Turns rows into Arrow arrays: decodes the fields that a query needs directly from a row's bytes into the arrays.

mod builder;
mod json;
mod split;

use crate::columns::{Columns, Form};
use builder::Builder;
use datafusion::arrow::array::ArrayRef;
use rows::{BadTuple, Decoder, FieldType, Kind, Mistake};

#[cfg(test)]
mod tests;

/// The error for a row whose bytes do not fit a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadField {
    /// The number of the column in the schema, or `None` if the bytes as a whole are wrong.
    pub column: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl BadField {
    fn whole(what: impl ToString) -> Self {
        Self { column: None, what: what.to_string() }
    }
}

/// Arrays to which rows are appended.
pub struct Filler {
    sources: Vec<Wanted>,
    /// The arrays, in the order of the query's columns.
    builders: Vec<Builder>,
    /// The kinds of the arrays' values.
    kinds: Vec<Kind>,
    /// The number of rows for which new arrays have room.
    capacity: usize,
    rows: usize,
}

/// A source, and the fields that a query needs from it.
struct Wanted {
    form: Form,
    /// The number of the source's part among the parts that are read, or `None` for the key.
    part: Option<usize>,
    /// The fields of the source, up to the last field that the query needs.
    fields: Vec<Place>,
    /// The number of fields, counted from the first, that have a [plain width](Place::plain_width).
    plain: usize,
    /// Whether `fields` are all fields of the source.
    is_all: bool,
    json: json::Tree,
}

/// A field, and the array to which the values of the field are appended.
#[derive(Clone, Copy)]
struct Place {
    field_type: FieldType,
    /// The number of the field's array, or `None` if the query does not need the field.
    array: Option<usize>,
    /// The number of the field's column, or `None` if the field is not a column.
    column: Option<usize>,
    /// The number of bytes of the field, if it is the same in every tuple and the field is not descending.
    plain_width: Option<usize>,
}

impl Filler {
    /// Arrays for these columns, in this order, each named once. `groups` are the column groups that are read, in
    /// the order in which the parts of each row come. The arrays begin with room for `capacity` rows.
    ///
    /// # Panics
    ///
    /// Panics if a column is in a group that is not read.
    pub fn new(columns: &Columns, wanted: &[usize], groups: &[usize], capacity: usize) -> Self {
        let mut builders: Vec<Option<(Kind, Builder)>> = wanted.iter().map(|_| None).collect();
        let (mut sources, mut next) = (Vec::new(), 0);
        for source in columns.sources() {
            let mut fields = Vec::with_capacity(source.fields.len());
            for field in &source.fields {
                let column = field.name.as_ref().map(|_| {
                    next += 1;
                    next - 1
                });
                let array = column.and_then(|column| wanted.iter().position(|wanted| *wanted == column));
                if let Some(array) = array {
                    let kind = field.field_type.kind;
                    builders[array] = Some((kind, Builder::new(kind, capacity)));
                }
                let FieldType { kind, is_optional, is_descending } = field.field_type;
                let plain_width = kind.width().filter(|_| !is_optional && !is_descending);
                fields.push(Place { field_type: field.field_type, array, column, plain_width });
            }
            let Some(last) = fields.iter().rposition(|field| field.array.is_some()) else { continue };
            let part = source.group.map(|group| {
                groups.iter().position(|read| *read == group).expect("the groups of all wanted columns are read")
            });
            let json = json::Tree::of(source, |field| fields[field].array);
            let is_all = last + 1 == fields.len();
            fields.truncate(last + 1);
            let has_rest = matches!(source.form, Form::Tuple { has_rest: true });
            let typed = &fields[..fields.len() - usize::from(has_rest && is_all)];
            let plain = typed.iter().take_while(|field| field.plain_width.is_some()).count();
            sources.push(Wanted { form: source.form, part, fields, plain, is_all, json });
        }
        let builders = builders.into_iter().map(|builder| builder.expect("a wanted column is one of the table"));
        let (kinds, builders) = builders.unzip();
        Self { sources, builders, kinds, capacity, rows: 0 }
    }

    /// Appends a row to the arrays. `parts` are the row's parts in the groups that are read.
    ///
    /// # Errors
    ///
    /// Fails if a field does not fit its column. The arrays must not be used after that.
    #[inline]
    pub fn push(&mut self, key: &[u8], parts: &[&[u8]]) -> Result<(), BadField> {
        for wanted in &self.sources {
            wanted.read(wanted.part.map_or(key, |part| parts[part]), &mut self.builders)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Appends `rows` rows. `keys` passes their keys to a closure, one after the other. For each group that is read,
    /// `parts` has that part of each row.
    ///
    /// # Errors
    ///
    /// Fails if a field does not fit its column, with the number of the row in this call. The arrays must not be
    /// used after that.
    pub fn push_rows(
        &mut self,
        keys: impl Fn(&mut dyn FnMut(&[u8])),
        parts: &[Vec<&[u8]>],
        rows: usize,
    ) -> Result<(), (usize, BadField)> {
        for wanted in &self.sources {
            match wanted.part {
                Some(part) => wanted.read_all(&parts[part], &mut self.builders)?,
                None => {
                    let (mut row, mut read) = (0, Ok(()));
                    keys(&mut |key| {
                        if read.is_ok() {
                            read = wanted.read(key, &mut self.builders).map_err(|bad| (row, bad));
                            row += 1;
                        }
                    });
                    read?;
                }
            }
        }
        self.rows += rows;
        Ok(())
    }

    /// The number of rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Approximately how many bytes the arrays take.
    pub fn bytes(&self) -> usize {
        self.builders.iter().map(Builder::bytes).sum()
    }

    /// Returns the arrays with all rows so far, in the order of the query's columns, and begins new ones.
    pub fn take(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        let next = |(builder, kind): (&mut Builder, &Kind)| {
            std::mem::replace(builder, Builder::new(*kind, self.capacity)).finish()
        };
        self.builders.iter_mut().zip(&self.kinds).map(next).collect()
    }
}

impl Wanted {
    /// Reads this source of many rows, field after field if all fields have a [plain width](Place::plain_width).
    fn read_all(&self, sources: &[&[u8]], builders: &mut [Builder]) -> Result<(), (usize, BadField)> {
        if self.plain_columns(sources, builders).is_some() {
            return Ok(());
        }
        let mut sources = sources.iter().enumerate();
        sources.try_for_each(|(row, bytes)| self.read(bytes, builders).map_err(|bad| (row, bad)))
    }

    /// Reads this source column after column. Returns `None` if its form does not allow that, or if a row is
    /// damaged. In the latter case, the arrays may have some of the new values.
    fn plain_columns(&self, sources: &[&[u8]], builders: &mut [Builder]) -> Option<()> {
        if !matches!(self.form, Form::Tuple { .. }) || self.plain < self.fields.len() {
            return None;
        }
        let width = self.fields.iter().map_while(|field| field.plain_width).sum::<usize>();
        if sources.iter().any(|bytes| if self.is_all { bytes.len() != width } else { bytes.len() < width }) {
            return None;
        }
        let mut at = 0;
        for field in &self.fields {
            let end = at + field.plain_width?;
            if let Some(array) = field.array {
                builders[array].push_column(sources.iter().map(|bytes| &bytes[at..end])).ok()?;
            }
            at = end;
        }
        Some(())
    }

    #[inline]
    fn read(&self, bytes: &[u8], builders: &mut [Builder]) -> Result<(), BadField> {
        let read = match self.form {
            Form::Tuple { has_rest } => return self.tuple(bytes, has_rest, builders),
            Form::Whole => match self.fields[0].array {
                Some(array) => builders[array].push_bytes(bytes).map_err(|what| (0, what)),
                None => Ok(()),
            },
            Form::Split { separator, escaped, marked } => {
                let texts = if marked { split::unmarked(bytes) } else { Some(bytes) };
                split::read(texts, separator, escaped, self.fields.len(), |field, text| {
                    let Some(array) = self.fields[field].array else { return Ok(()) };
                    match text {
                        Some(text) => builders[array].push_text(text),
                        None => {
                            builders[array].push_null();
                            Ok(())
                        }
                    }
                })
            }
            Form::Json => match self.json.read(bytes, builders) {
                Ok(()) => Ok(()),
                Err(json::Bad::Whole(what)) => return Err(BadField::whole(what)),
                Err(json::Bad::Field(field, what)) => Err((field, what)),
            },
        };
        read.map_err(|(field, what)| BadField { column: self.fields[field].column, what })
    }

    #[inline]
    fn tuple(&self, bytes: &[u8], has_rest: bool, builders: &mut [Builder]) -> Result<(), BadField> {
        match self.plain_fields(bytes, builders) {
            // The usual case: all fields are read.
            Some(left) if self.plain == self.fields.len() && (left.is_empty() || !self.is_all) => Ok(()),
            Some(left) => self.tuple_from(self.plain, (bytes, left), has_rest, builders),
            None => self.tuple_from(0, (bytes, bytes), has_rest, builders),
        }
    }

    /// Reads the leading fields with a plain width, and returns the bytes after them, or `None` if a field is wrong.
    #[inline]
    fn plain_fields<'b>(&self, bytes: &'b [u8], builders: &mut [Builder]) -> Option<&'b [u8]> {
        let mut left = bytes;
        for field in &self.fields[..self.plain] {
            let (value, after) = left.split_at_checked(field.plain_width?)?;
            if let Some(array) = field.array {
                builders[array].push_plain(value).ok()?;
            }
            left = after;
        }
        Some(left)
    }

    /// Reads the fields of a tuple from number `first` on, which begin with `left`.
    fn tuple_from(
        &self,
        first: usize,
        (bytes, left): (&[u8], &[u8]),
        has_rest: bool,
        builders: &mut [Builder],
    ) -> Result<(), BadField> {
        let mut from = Decoder::at(bytes, bytes.len() - left.len());
        for (number, &Place { field_type, array, column, .. }) in self.fields.iter().enumerate().skip(first) {
            let array = array.map(|array| &mut builders[array]);
            if has_rest && self.is_all && number + 1 == self.fields.len() {
                let pushed = array.map_or(Ok(()), |array| array.push_bytes(from.rest()));
                return pushed.map_err(|what| BadField { column, what });
            }
            if let Err(mistake) = read_field(&mut from, field_type, array) {
                let what = format!("{field_type} at byte {}: {mistake}", from.offset());
                return Err(BadField { column, what });
            }
        }
        if self.is_all && !from.rest().is_empty() {
            return Err(BadField::whole(BadTuple::Longer { offset: from.offset(), bytes: from.rest().len() }));
        }
        Ok(())
    }
}

/// Reads a field of a tuple into an array, or skips the field if there is no array.
#[inline]
fn read_field(from: &mut Decoder<'_>, field_type: FieldType, array: Option<&mut Builder>) -> Result<(), Mistake> {
    let read = |from: &mut Decoder<'_>| match (field_type.is_optional && !from.flag()?, array) {
        (true, Some(array)) => {
            array.push_null();
            Ok(())
        }
        (true, None) => Ok(()),
        (false, Some(array)) => array.push_field(from),
        (false, None) => builder::pass_field(from, field_type.kind),
    };
    if field_type.is_descending { from.inverted(read) } else { read(from) }
}

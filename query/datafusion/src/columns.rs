//! The columns of a table: where each column lies in a row, and its type. Rows are read elsewhere (see
//! [`crate::fill`]).
//!
//! ```text
//! columns:  source { "," source }
//! source:   "key" form | ( "value" | "part(" number ")" ) form
//! form:     name kind                                                the bytes as they are; kind is string or bytes
//!         | ".tuple(" field { "," field } ")"                        as docs/format/tuple.md has them
//!         | ".split(" separator [ "escaped" ] [ "marked" ] ")" "(" field { "," field } ")"
//!         | ".json(" field { "," field } ")"
//! field:    name type [ path ]          the path, of a JSON field alone, in double quotes: "$.address.city"
//!         | name "rest" kind            of a key alone, in the last place: what is left of the key
//! name:     a word, or any characters in double quotes; `_` for a field that is no column
//! type:     kind [ "?" ] [ "desc" ]     as docs/format/tuple.md has them
//! ```
//!
//! The words are those of `docs/format/extractor.md`, where they declare indexes. Unlike there, each source is
//! written only once, with all its fields.

use datafusion::arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};
use rows::{Declaration, FieldType, Kind};
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The type of a column of 128-bit whole numbers, which have up to 39 digits. A decimal of 128 bits has room for
/// fewer.
const WHOLE_128: DataType = DataType::Decimal256(39, 0);

/// The most column groups that can be named. No table has so many.
const MAX_GROUPS: usize = 1 << 16;

/// Where the columns of a table lie in its rows, and their types. Parsed from text; `Display` writes the text again.
///
/// ```
/// use larch_datafusion::Columns;
///
/// let columns: Columns = r#"key.tuple(city string, number u32 desc), value.json(name string, age u8 "$.born.age")"#.parse()?;
/// let names: Vec<_> = columns.schema().fields().iter().map(|field| field.name().clone()).collect();
/// assert_eq!(names, ["city", "number", "name", "age"]);
/// # Ok::<(), larch_datafusion::BadColumns>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    sources: Vec<Source>,
}

/// A key, or a part of a value, with the columns in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The column group that contains the bytes, or `None` for the key.
    pub group: Option<usize>,
    /// How the fields are encoded in the bytes.
    pub form: Form,
    /// All fields, of which at least one is a column.
    pub fields: Vec<Field>,
}

/// How fields are encoded in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The bytes are a single field.
    Whole,
    /// The fields of a tuple, one after the other.
    Tuple {
        /// Whether the last field takes the rest of the bytes, without an end marker.
        has_rest: bool,
    },
    /// Texts separated by a byte.
    Split {
        /// The byte between two texts.
        separator: u8,
        /// Whether `\t`, `\n`, `\r` and `\\` in a text stand for other characters.
        escaped: bool,
        /// Whether empty bytes mean that the source has no texts, and a zero byte at the start is a mark to be
        /// skipped.
        marked: bool,
    },
    /// The fields are members of a JSON object.
    Json,
}

/// One field of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name of the column, or `None` if the field is not a column.
    pub name: Option<String>,
    /// The type of the field.
    pub field_type: FieldType,
    /// The path to the field in a JSON object, or `None` for the member with the name of the column.
    pub path: Option<Vec<Step>>,
}

/// A step of a path from the root of a JSON value to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A step to a member of an object.
    Member(String),
    /// A step to an element of an array, counted from 0.
    Element(usize),
}

/// Why a text does not declare columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadColumns(String);

impl BadColumns {
    /// An error with this text.
    pub fn new(what: String) -> Self {
        Self(what)
    }
}

impl fmt::Display for BadColumns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for BadColumns {}

impl Columns {
    /// The columns of these sources.
    ///
    /// # Errors
    ///
    /// Fails if no column is named, two columns have the same name, a source is declared twice, or a form does not
    /// fit its fields.
    pub fn new(sources: Vec<Source>) -> Result<Self, BadColumns> {
        let bad = |what: String| Err(BadColumns(what));
        let mut names: Vec<&str> = Vec::new();
        for (at, source) in sources.iter().enumerate() {
            source.check()?;
            if sources[..at].iter().any(|other| other.group == source.group) {
                return bad(format!("{} is declared twice; declare all of its fields together", source.shown()));
            }
            for name in source.fields.iter().filter_map(|field| field.name.as_deref()) {
                if names.contains(&name) {
                    return bad(format!("two columns have the name {name}; choose another one"));
                }
                names.push(name);
            }
        }
        if names.is_empty() {
            return bad("there is no column; declare one, as in key k bytes".to_owned());
        }
        Ok(Self { sources })
    }

    /// The columns of a table about whose rows nothing is known: `key`, and `value` for the whole value, or a column
    /// for each column group.
    pub fn raw(groups: &[String]) -> Self {
        Self::of_key(Source::whole(None, "key", Kind::Bytes), groups)
    }

    /// The columns of a table whose keys are tuples of unnamed fields: `key_0`, `key_1`, …, and `value` for the
    /// whole value, or a column for each column group.
    pub fn of_tuples(key: &Declaration, groups: &[String]) -> Self {
        let fields = key.fields().iter().enumerate();
        let fields = fields.map(|(at, &field_type)| Field::new(Some(format!("key_{at}")), field_type)).collect();
        Self::of_key(Source { group: None, form: Form::Tuple { has_rest: false }, fields }, groups)
    }

    /// The columns of the key `key`, and a column of bytes for each part of the value.
    fn of_key(key: Source, groups: &[String]) -> Self {
        let taken: Vec<String> = key.fields.iter().filter_map(|field| field.name.clone()).collect();
        let free = |name: &str| {
            let mut name = name.to_owned();
            while taken.contains(&name) {
                name.push('_');
            }
            name
        };
        let mut sources = vec![key];
        match groups {
            [] => sources.push(Source::whole(Some(0), "value", Kind::Bytes)),
            groups => sources
                .extend(groups.iter().enumerate().map(|(at, name)| Source::whole(Some(at), free(name), Kind::Bytes))),
        }
        Self { sources }
    }

    /// The key and the parts of the value that have columns, in the order of their columns.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The key, with its most significant field first; `None` if no column is in the key.
    pub fn key(&self) -> Option<&Source> {
        self.sources.iter().find(|source| source.group.is_none())
    }

    /// The number of the first column in the source with the number `source`.
    pub fn first_column(&self, source: usize) -> usize {
        self.sources[..source].iter().map(Source::columns).sum()
    }

    /// For each field of the key, the number of its column, or `None` if the field is not a column.
    pub fn key_columns(&self) -> Vec<Option<usize>> {
        let Some(at) = self.sources.iter().position(|source| source.group.is_none()) else { return Vec::new() };
        let mut next = self.first_column(at);
        let number = |field: &Field| {
            field.name.as_ref().map(|_| {
                next += 1;
                next - 1
            })
        };
        self.sources[at].fields.iter().map(number).collect()
    }

    /// The numbers of the column groups that `columns` are in, ascending.
    pub fn groups_of(&self, columns: &[usize]) -> Vec<usize> {
        let needed = |&at: &usize| {
            let first = self.first_column(at);
            columns.iter().any(|column| (first..first + self.sources[at].columns()).contains(column))
        };
        let sources = (0..self.sources.len()).filter(needed);
        let mut groups: Vec<usize> = sources.filter_map(|at| self.sources[at].group).collect();
        groups.sort_unstable();
        groups
    }

    /// A key as text, for messages.
    pub fn show_key(&self, key: &[u8]) -> String {
        match self.key() {
            Some(Source { form: Form::Tuple { has_rest: false }, fields, .. }) => {
                Declaration::new(fields.iter().map(|field| field.field_type).collect::<Vec<_>>()).show(key)
            }
            _ => format!("\"{}\"", key.escape_ascii()),
        }
    }

    /// The columns as a schema of Arrow.
    pub fn schema(&self) -> SchemaRef {
        let of_source = |source: &Source| {
            let column = |field: &Field| {
                let name = field.name.as_ref()?;
                Some(ArrowField::new(name, data_type(field.field_type.kind), source.may_miss(field)))
            };
            source.fields.iter().filter_map(column).collect::<Vec<_>>()
        };
        Arc::new(Schema::new(self.sources.iter().flat_map(of_source).collect::<Vec<_>>()))
    }

    /// Checks that all columns are in column groups that the table has. `groups` are the table's groups.
    ///
    /// # Errors
    ///
    /// Fails if a column is in another group.
    pub fn check_groups(&self, table: &str, groups: &[String]) -> Result<(), BadColumns> {
        let parts = groups.len().max(1);
        match self.sources.iter().find(|source| source.group.is_some_and(|group| group >= parts)) {
            None => Ok(()),
            Some(source) if groups.is_empty() => Err(BadColumns(format!(
                "table {table} is not split in column groups, so there is no {}; write value",
                source.shown()
            ))),
            Some(source) => Err(BadColumns(format!(
                "table {table} has {parts} column groups ({}), from part(0) on, so there is no {}",
                groups.join(", "),
                source.shown()
            ))),
        }
    }
}

/// The type of a column with fields of the kind `kind`.
pub fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::U8 => DataType::UInt8,
        Kind::U16 => DataType::UInt16,
        Kind::U32 => DataType::UInt32,
        Kind::U64 => DataType::UInt64,
        Kind::I8 => DataType::Int8,
        Kind::I16 => DataType::Int16,
        Kind::I32 => DataType::Int32,
        Kind::I64 => DataType::Int64,
        Kind::U128 | Kind::I128 => WHOLE_128,
        Kind::F32 => DataType::Float32,
        Kind::F64 => DataType::Float64,
        Kind::String => DataType::Utf8View,
        Kind::Fixed(bytes) => DataType::FixedSizeBinary(bytes.into()),
        // For `bytes`, and for any kind added later, because each value can be shown as bytes.
        _ => DataType::BinaryView,
    }
}

impl Source {
    /// A source with a single field, which takes all its bytes.
    pub fn whole(group: Option<usize>, name: impl Into<String>, kind: Kind) -> Self {
        Self { group, form: Form::Whole, fields: vec![Field::new(Some(name.into()), FieldType::new(kind))] }
    }

    /// The number of fields of the source that are columns.
    pub fn columns(&self) -> usize {
        self.fields.iter().filter(|field| field.name.is_some()).count()
    }

    /// Whether the field may be missing in a row. The column is then NULL.
    pub fn may_miss(&self, field: &Field) -> bool {
        field.field_type.is_optional || matches!(self.form, Form::Split { .. } | Form::Json)
    }

    /// The name of the source in the text that declares columns.
    fn shown(&self) -> String {
        match self.group {
            None => "key".to_owned(),
            Some(0) => "value".to_owned(),
            Some(group) => format!("part({group})"),
        }
    }

    fn check(&self) -> Result<(), BadColumns> {
        let bad = |what: &str| Err(BadColumns(format!("{}: {what}", self.shown())));
        let is_key = self.group.is_none();
        if self.fields.is_empty() {
            return bad("there is no field");
        }
        match self.form {
            Form::Split { separator, .. } if !separator.is_ascii() => {
                return bad("a separator is a character of ASCII");
            }
            Form::Split { .. } | Form::Json if is_key => {
                return bad("a key is .tuple(…), or one column of string or bytes");
            }
            Form::Tuple { has_rest: true } if !is_key => return bad("only a key can have `rest`"),
            _ => {}
        }
        for (at, field) in self.fields.iter().enumerate() {
            let FieldType { kind, is_optional, is_descending } = field.field_type;
            let has_no_end =
                self.form == Form::Whole || self.form == Form::Tuple { has_rest: true } && at + 1 == self.fields.len();
            if has_no_end && (!matches!(kind, Kind::String | Kind::Bytes) || is_optional || is_descending) {
                return bad("bytes without an end are string or bytes, neither optional nor descending");
            }
            let is_text = matches!(self.form, Form::Split { .. } | Form::Json);
            if is_text && (is_optional || is_descending) {
                return bad("a text may always be missing and has no order: leave out `?` and `desc`");
            }
            if is_text && matches!(kind, Kind::Fixed(_)) || self.form == Form::Json && kind == Kind::Bytes {
                return bad("a text is a string, a number or bool");
            }
            if field.path.is_some() && self.form != Form::Json {
                return bad("only a field of .json(…) has a path");
            }
            if field.name.is_none() && self.form == Form::Json {
                return bad("a field of .json(…) is found by its name, so it cannot be `_`");
            }
        }
        Ok(())
    }
}

impl Field {
    /// A field that is found by its position, or by its name in a JSON object.
    pub fn new(name: Option<String>, field_type: FieldType) -> Self {
        Self { name, field_type, path: None }
    }
}

impl FromStr for Columns {
    type Err = BadColumns;

    fn from_str(text: &str) -> Result<Self, BadColumns> {
        let mut text = Cursor { text, at: 0 };
        let mut sources = Vec::new();
        loop {
            sources.push(source(&mut text)?);
            if !text.takes(",") {
                break;
            }
        }
        if !text.rest().is_empty() {
            return text.fail("`,` or the end is expected");
        }
        Self::new(sources)
    }
}

fn source(text: &mut Cursor<'_>) -> Result<Source, BadColumns> {
    let group = match text.word() {
        "key" => None,
        "value" => Some(0),
        "part" => {
            text.expect("(")?;
            let Some(group) = text.word().parse().ok().filter(|group| *group < MAX_GROUPS) else {
                return text.fail("the number of a column group is expected, from 0");
            };
            text.expect(")")?;
            Some(group)
        }
        _ => return text.fail("`key`, `value` or `part(N)` is expected"),
    };
    if !text.takes(".") {
        let name = text.name()?;
        let field = Field::new(name, text.field_type()?);
        return Ok(Source { group, form: Form::Whole, fields: vec![field] });
    }
    let form = match text.word() {
        "tuple" => Form::Tuple { has_rest: false },
        "json" => Form::Json,
        "split" => {
            text.expect("(")?;
            let separator = match text.quoted('\'')?.as_bytes() {
                &[separator] => separator,
                _ => return text.fail("a separator is one byte, as in ',' or '\\t'"),
            };
            let (escaped, marked) = (text.takes_word("escaped"), text.takes_word("marked"));
            text.expect(")")?;
            Form::Split { separator, escaped, marked }
        }
        _ => return text.fail("`tuple`, `split` or `json` is expected"),
    };
    text.expect("(")?;
    let mut fields = Vec::new();
    let has_rest = loop {
        let name = text.name()?;
        let has_rest = text.takes_word("rest");
        if has_rest && !matches!(form, Form::Tuple { .. }) {
            return text.fail("only the last field of a key's .tuple(…) is `rest`");
        }
        let field_type = text.field_type()?;
        let path = if text.rest().starts_with('"') { Some(path(&text.quoted('"')?)?) } else { None };
        fields.push(Field { name, field_type, path });
        if has_rest || !text.takes(",") {
            break has_rest;
        }
    };
    text.expect(")")?;
    let form = if has_rest { Form::Tuple { has_rest } } else { form };
    Ok(Source { group, form, fields })
}

/// Parses a path to a field in JSON, such as `$.a['b c'][2]`.
fn path(text: &str) -> Result<Vec<Step>, BadColumns> {
    let mut text = Cursor { text, at: 0 };
    let mut steps = Vec::new();
    text.expect("$")?;
    while !text.rest().is_empty() {
        if text.takes(".") {
            let name = text.word();
            if name.is_empty() {
                return text.fail("a name is expected; write one with other characters as ['the name']");
            }
            steps.push(Step::Member(name.to_owned()));
        } else {
            text.expect("[")?;
            if text.rest().starts_with('\'') {
                steps.push(Step::Member(text.quoted('\'')?));
            } else {
                match text.word().parse() {
                    Ok(number) => steps.push(Step::Element(number)),
                    Err(_) => return text.fail("the number of an element is expected, from 0"),
                }
            }
            text.expect("]")?;
        }
    }
    if steps.is_empty() {
        return text.fail("a path has at least one step; for the whole value write: value name string");
    }
    Ok(steps)
}

/// A place in a text. Spaces and line ends before the next sign or word are skipped.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// The text after this place.
    fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), BadColumns> {
        if self.takes(sign) { Ok(()) } else { self.fail(&format!("`{sign}` is expected")) }
    }

    /// Reads the next word, which consists of letters, digits and `_`. It is empty if no word follows.
    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let before = self.at;
        let found = self.word() == word;
        if !found {
            self.at = before;
        }
        found
    }

    /// The name of a column, or `None` for `_`.
    fn name(&mut self) -> Result<Option<String>, BadColumns> {
        if self.rest().starts_with('"') {
            return self.quoted('"').map(Some);
        }
        match self.word() {
            "" => self.fail("the name of a column is expected"),
            "_" => Ok(None),
            name => Ok(Some(name.to_owned())),
        }
    }

    /// Reads a type, in the form of a declaration with one field.
    fn field_type(&mut self) -> Result<FieldType, BadColumns> {
        let rest = self.rest();
        let end = rest.find(['"', ',', ')']).unwrap_or(rest.len());
        match rest[..end].parse::<Declaration>() {
            Ok(declaration) => {
                self.at += end;
                Ok(declaration.fields()[0])
            }
            Err(bad) => self.fail(&bad.what),
        }
    }

    /// Reads a text in quotes. Between the quotes, a backslash must stand before each quote and each backslash,
    /// and `\t` stands for a tab.
    fn quoted(&mut self, quote: char) -> Result<String, BadColumns> {
        let mut chars = self.rest().char_indices();
        if chars.next().is_none_or(|(_, first)| first != quote) {
            return self.fail(&format!("a text in quotes is expected: {quote}…{quote}"));
        }
        let mut content = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, 't')) => content.push('\t'),
                    Some((_, c)) if c == quote || c == '\\' => content.push(c),
                    _ => return self.fail("after a backslash in quotes comes `t`, a backslash or the quote"),
                },
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(content);
                }
                c => content.push(c),
            }
        }
        self.fail("the text in quotes has no end")
    }

    fn fail<T>(&mut self, what: &str) -> Result<T, BadColumns> {
        let rest = self.rest();
        let near: String = rest.chars().take(20).collect();
        let near = if near.is_empty() { "at the end".to_owned() } else { format!("at `{near}`") };
        Err(BadColumns(format!("{near} of the columns: {what}")))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, source) in self.sources.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(out, "{comma}{source}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.shown())?;
        let (before, after) = match self.form {
            Form::Whole => (" ".to_owned(), ""),
            Form::Tuple { .. } => (".tuple(".to_owned(), ")"),
            Form::Json => (".json(".to_owned(), ")"),
            Form::Split { separator, escaped, marked } => {
                let mut text = String::new();
                push_quoted(&char::from(separator).to_string(), '\'', &mut text);
                let escaped = if escaped { " escaped" } else { "" };
                let marked = if marked { " marked" } else { "" };
                (format!(".split({text}{escaped}{marked})("), ")")
            }
        };
        out.write_str(&before)?;
        for (at, field) in self.fields.iter().enumerate() {
            out.write_str(if at > 0 { ", " } else { "" })?;
            let mut text = String::new();
            match &field.name {
                None => text.push('_'),
                Some(name) if is_word(name) => text.push_str(name),
                Some(name) => push_quoted(name, '"', &mut text),
            }
            out.write_str(&text)?;
            let is_rest = self.form == Form::Tuple { has_rest: true } && at + 1 == self.fields.len();
            write!(out, "{} {}", if is_rest { " rest" } else { "" }, field.field_type)?;
            if let Some(steps) = &field.path {
                let mut text = String::new();
                push_quoted(&shown_path(steps), '"', &mut text);
                write!(out, " {text}")?;
            }
        }
        out.write_str(after)
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name != "_" && name != "rest" && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn shown_path(steps: &[Step]) -> String {
    let mut path = String::from("$");
    for step in steps {
        match step {
            Step::Member(name) if is_word(name) => {
                path.push('.');
                path.push_str(name);
            }
            Step::Member(name) => {
                path.push('[');
                push_quoted(name, '\'', &mut path);
                path.push(']');
            }
            Step::Element(number) => write!(path, "[{number}]").expect("memory takes every write"),
        }
    }
    path
}

/// Appends `content` in quotes, in the form that [`Cursor::quoted`] reads.
fn push_quoted(content: &str, quote: char, text: &mut String) {
    text.push(quote);
    for c in content.chars() {
        match c {
            '\t' => text.push_str("\\t"),
            c if c == quote || c == '\\' => text.extend(['\\', c]),
            c => text.push(c),
        }
    }
    text.push(quote);
}

//! Where a field of an index comes from: a place in the key of a row or in a part of its value. This module knows
//! no index.
//!
//! ```text
//! source:   ( "key" | "value" | "part(" group ")" ) [ place ]
//! place:    range [ reading ] | reading
//!         | ".split(" separator [ "escaped" ] [ "marked" ] ")[" number "]"     the separator in single quotes
//!         | ".json(" path ")"                                                  the path in double quotes
//!         | ".tuple(" declaration [ "," "rest" kind ] ")[" number "]"          of a rest "string" or "bytes"
//! range:    "[" [ start ] ".." [ end ] "]"
//! reading:  ".le" | ".be" | ".text"
//! number:   from 0, or "*" for each (not of a tuple)
//! ```

use super::found::{Found, Unfit};
use super::json::Path;
use crate::declaration::Declaration;
use crate::decoder::BadTuple;
use crate::field_type::{FieldType, Kind};
use crate::scanner::{BadText, Scanner, push_literal};
use crate::value::FieldValue;
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The most column groups that a source can name. No table has that many.
const MAX_GROUPS: usize = 1 << 16;

/// Where a field comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    from: From,
    place: Place,
}

/// The part of a row that a source looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Key,
    Part(usize),
}

/// Where the field is in that part.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Bytes {
        start: usize,
        end: Option<usize>,
        reading: Reading,
    },
    Split {
        separator: u8,
        form: SplitForm,
        number: Number,
    },
    Json(Path),
    /// `rest` is the kind of the bytes after the fields, if the declaration names these bytes. As a field, they
    /// have the number after that of the last field.
    Tuple {
        declaration: Declaration,
        rest: Option<Kind>,
        field: usize,
    },
}

/// How the pieces between separators are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SplitForm {
    /// In a piece, `\t`, `\n`, `\r` and `\\` each stand for one byte.
    escaped: bool,
    /// If this is set, a zero byte at the start is a mark and belongs to no piece, and an empty value has no
    /// pieces. If this is not set, an empty value has one empty piece.
    marked: bool,
}

/// How bytes are read as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The bytes as they are.
    Raw,
    /// A number, low byte first.
    LittleEndian,
    /// A number, high byte first.
    BigEndian,
    /// Digits.
    Text,
}

/// One of several values, or each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    One(usize),
    Each,
}

impl Source {
    /// The column group that the field is in; `None` if it is in the key.
    pub fn group(&self) -> Option<usize> {
        match self.from {
            From::Key => None,
            From::Part(group) => Some(group),
        }
    }

    /// Whether a row may have several values for the field.
    pub fn gives_many(&self) -> bool {
        match &self.place {
            Place::Split { number, .. } => *number == Number::Each,
            Place::Json(path) => path.gives_many(),
            Place::Bytes { .. } | Place::Tuple { .. } => false,
        }
    }

    /// The kind of the field if its declaration names none.
    pub fn default_kind(&self) -> Option<Kind> {
        match &self.place {
            Place::Bytes { start, end, reading: Reading::Raw } => {
                let bytes = end.and_then(|end| u16::try_from(end - start).ok());
                Some(bytes.map_or(Kind::Bytes, Kind::Fixed))
            }
            Place::Bytes { .. } | Place::Split { .. } | Place::Json(_) => None,
            Place::Tuple { declaration, rest, field } => {
                declaration.fields().get(*field).map_or(*rest, |field| Some(field.kind))
            }
        }
    }

    /// Checks whether this source can give values of `kind`. If not, the error says why.
    pub fn check(&self, kind: Kind) -> Result<(), String> {
        let fits = |is_right: bool, what: &str| if is_right { Ok(()) } else { Err(format!("{what}, not {kind}")) };
        let is_string = matches!(kind, Kind::String | Kind::Bytes);
        match &self.place {
            Place::Bytes { start, end, reading: Reading::Raw } => {
                fits(
                    !kind.is_number() && kind != Kind::Bool,
                    "bytes without `.le`, `.be` or `.text` are string or bytes",
                )?;
                fits(
                    end.is_none_or(|end| kind.width().is_none_or(|width| width == end - start)),
                    "the range is longer or shorter",
                )
            }
            Place::Bytes { reading: Reading::Text, .. } => {
                fits(kind.is_number() || kind == Kind::Bool, "`.text` is a number or bool")
            }
            Place::Bytes { start, end, .. } => {
                fits(kind.is_number(), "`.le` and `.be` are numbers")?;
                fits(end.is_none_or(|end| kind.width() == Some(end - start)), "the range is longer or shorter")
            }
            Place::Split { .. } => fits(
                is_string || kind.width().is_some() && !matches!(kind, Kind::Fixed(_)),
                "text is a string, bytes, a number or bool",
            ),
            Place::Json(_) => fits(!matches!(kind, Kind::Bytes | Kind::Fixed(_)), "JSON has strings, numbers and bool"),
            Place::Tuple { .. } => {
                let declared = self.default_kind().expect("the number of the field was checked");
                fits(kind == declared, &format!("the field of the tuple is {declared}"))
            }
        }
    }

    /// Appends the values of `bytes` for a field of `kind`. `bytes` is the key or the part at which this source
    /// looks. If nothing is appended, the field is missing.
    pub fn find<'r>(&self, bytes: &'r [u8], kind: Kind, found: &mut Vec<Found<'r>>) {
        match &self.place {
            Place::Bytes { start, end, reading } => {
                let bytes = match end {
                    Some(end) => bytes.get(*start..*end),
                    None => bytes.get(*start..),
                };
                found.extend(bytes.map(|bytes| reading.read(bytes, kind)));
            }
            Place::Split { separator, form, number } => {
                let Some(bytes) = form.pieces(bytes) else { return };
                let piece_as = |piece| if form.escaped { escaped_as(piece, kind) } else { piece_as(piece, kind) };
                let mut pieces = bytes.split(|byte| byte == separator).map(piece_as);
                match number {
                    Number::One(number) => found.extend(pieces.nth(*number)),
                    Number::Each => found.extend(pieces),
                }
            }
            Place::Json(path) => path.find(bytes, kind, found),
            Place::Tuple { declaration, rest: None, field } => {
                found.push(given(declaration.decode_field(bytes, *field)));
            }
            Place::Tuple { declaration, rest: Some(_), field } => found.push(match declaration.decode_front(bytes) {
                Ok((_, rest)) if *field == declaration.fields().len() => raw_as(rest, kind),
                Ok((mut values, _)) => given(Ok(values.swap_remove(*field))),
                Err(bad) => given(Err(bad)),
            }),
        }
    }

    /// The source that comes next in a text.
    pub fn scan(text: &mut Scanner<'_>) -> Result<Self, BadText> {
        let from = match () {
            () if text.takes_word("key") => From::Key,
            () if text.takes_word("value") => From::Part(0),
            () if text.takes_word("part") => {
                text.expect("(")?;
                let mut before = text.clone();
                let group = text.number()?;
                if group >= MAX_GROUPS {
                    return before.fail("no table has so many column groups");
                }
                text.expect(")")?;
                From::Part(group)
            }
            () => return text.fail("`key`, `value` or `part(N)` is expected"),
        };
        Ok(Self { from, place: Place::scan(text)? })
    }
}

impl Place {
    fn scan(text: &mut Scanner<'_>) -> Result<Self, BadText> {
        let (start, end) = if text.takes("[") { scan_range(text)? } else { (0, None) };
        let is_whole = (start, end) == (0, None);
        if !text.takes(".") {
            return Ok(Self::Bytes { start, end, reading: Reading::Raw });
        }
        match text.peek_word() {
            word @ ("le" | "be" | "text") => {
                text.takes_word(word);
                let reading = match word {
                    "le" => Reading::LittleEndian,
                    "be" => Reading::BigEndian,
                    _ => Reading::Text,
                };
                Ok(Self::Bytes { start, end, reading })
            }
            "split" if is_whole => {
                text.takes_word("split");
                text.expect("(")?;
                let mut before = text.clone();
                let separator = match text.literal('\'')?.as_bytes() {
                    &[separator] => separator,
                    _ => return before.fail("a separator is one byte, as in ','"),
                };
                let form = SplitForm { escaped: text.takes_word("escaped"), marked: text.takes_word("marked") };
                text.expect(")")?;
                text.expect("[")?;
                let number = if text.takes("*") { Number::Each } else { Number::One(text.number()?) };
                text.expect("]")?;
                Ok(Self::Split { separator, form, number })
            }
            "json" if is_whole => {
                text.takes_word("json");
                text.expect("(")?;
                let mut before = text.clone();
                let path = text.literal('"')?;
                let path = path.parse().or_else(|bad: BadText| before.fail(format!("in the path, {bad}")))?;
                text.expect(")")?;
                Ok(Self::Json(path))
            }
            "tuple" if is_whole => {
                text.takes_word("tuple");
                text.expect("(")?;
                let (declaration, rest) = scan_tuple(text)?;
                text.expect(")")?;
                text.expect("[")?;
                let mut before = text.clone();
                let field = text.number()?;
                let fields = declaration.fields().len() + usize::from(rest.is_some());
                if field >= fields {
                    return before.fail(format!("the tuple has {fields} fields, from 0"));
                }
                text.expect("]")?;
                Ok(Self::Tuple { declaration, rest, field })
            }
            _ if is_whole => text.fail("`le`, `be`, `text`, `split`, `json` or `tuple` is expected"),
            _ => text.fail("`le`, `be` or `text` is expected"),
        }
    }
}

/// The field types of a tuple, and the kind of the bytes after the fields if the text names them.
fn scan_tuple(text: &mut Scanner<'_>) -> Result<(Declaration, Option<Kind>), BadText> {
    let mut fields = vec![FieldType::scan(text, None)?];
    while text.takes(",") {
        if !text.takes_word("rest") {
            fields.push(FieldType::scan(text, None)?);
            continue;
        }
        let mut before = text.clone();
        let rest = FieldType::scan(text, None)?;
        if ![FieldType::new(Kind::String), FieldType::new(Kind::Bytes)].contains(&rest) {
            return before.fail("what follows the fields is `string` or `bytes`");
        }
        return Ok((Declaration::new(fields), Some(rest.kind)));
    }
    Ok((Declaration::new(fields), None))
}

/// A range `0..4]`, `4..]`, `..4]` or `..]`, of at least one byte.
fn scan_range(text: &mut Scanner<'_>) -> Result<(usize, Option<usize>), BadText> {
    let start = if text.takes("..") {
        0
    } else {
        let start = text.number()?;
        text.expect("..")?;
        start
    };
    if text.takes("]") {
        return Ok((start, None));
    }
    let mut before = text.clone();
    let end = text.number()?;
    if end <= start {
        return before.fail("a range ends after its start");
    }
    text.expect("]")?;
    Ok((start, Some(end)))
}

impl Reading {
    fn read(self, bytes: &[u8], kind: Kind) -> Found<'_> {
        let mut number = [0; 16];
        match (self, kind.width()) {
            (Self::Text, _) => return word_as(bytes, kind),
            (Self::Raw, None) => return raw_as(bytes, kind),
            (_, Some(width)) if bytes.len() < width => return Err(Unfit::Missing),
            (_, Some(width)) if bytes.len() > width => {
                return Err(Unfit::Wrong(format!("{} bytes are more than {kind} has", bytes.len())));
            }
            (Self::Raw, Some(_)) => return Ok(FieldValue::Bytes(Cow::Borrowed(bytes))),
            (Self::LittleEndian, _) => number[..bytes.len()].copy_from_slice(bytes),
            (Self::BigEndian, _) => {
                number[..bytes.len()].copy_from_slice(bytes);
                number[..bytes.len()].reverse();
            }
        }
        // A number of 128 bits. All bits above the bits of the kind are 0.
        let bits = u128::from_le_bytes(number);
        Ok(match kind {
            Kind::F32 => FieldValue::F32(f32::from_bits(bits as u32)),
            Kind::F64 => FieldValue::F64(f64::from_bits(bits as u64)),
            Kind::I8 => FieldValue::Signed((bits as i8).into()),
            Kind::I16 => FieldValue::Signed((bits as i16).into()),
            Kind::I32 => FieldValue::Signed((bits as i32).into()),
            Kind::I64 => FieldValue::Signed((bits as i64).into()),
            Kind::I128 => FieldValue::Signed(bits as i128),
            _ => FieldValue::Unsigned(bits),
        })
    }
}

impl SplitForm {
    /// The bytes that contain the pieces; `None` if the form is `marked` and `bytes` is empty.
    fn pieces(self, bytes: &[u8]) -> Option<&[u8]> {
        match bytes {
            [] if self.marked => None,
            [0, pieces @ ..] if self.marked => Some(pieces),
            pieces => Some(pieces),
        }
    }
}

/// A field of a tuple as a value.
fn given<'r>(value: Result<FieldValue<'r>, BadTuple>) -> Found<'r> {
    match value {
        Ok(FieldValue::None) => Err(Unfit::Missing),
        Ok(value) => Ok(value),
        Err(bad) => Err(Unfit::Wrong(bad.to_string())),
    }
}

/// A piece of text with escapes as a value.
fn escaped_as(piece: &[u8], kind: Kind) -> Found<'_> {
    // No byte of a number is written with an escape.
    if !piece.contains(&b'\\') || !matches!(kind, Kind::String | Kind::Bytes) {
        return piece_as(piece, kind);
    }
    let (mut plain, mut bytes) = (Vec::with_capacity(piece.len()), piece.iter());
    while let Some(&byte) = bytes.next() {
        plain.push(match (byte, if byte == b'\\' { bytes.next() } else { None }) {
            (b'\\', Some(b't')) => b'\t',
            (b'\\', Some(b'n')) => b'\n',
            (b'\\', Some(b'r')) => b'\r',
            (b'\\', Some(b'\\')) => b'\\',
            (b'\\', _) => {
                return Err(Unfit::Wrong(format!("\"{}\" has a backslash that escapes nothing", piece.escape_ascii())));
            }
            (byte, _) => byte,
        });
    }
    match (kind, String::from_utf8(plain)) {
        (Kind::String, Ok(text)) => Ok(FieldValue::String(Cow::Owned(text))),
        (Kind::String, Err(bad)) => Err(not_utf8(bad.utf8_error())),
        (_, plain) => Ok(FieldValue::Bytes(Cow::Owned(plain.map_or_else(|bad| bad.into_bytes(), String::into_bytes)))),
    }
}

fn not_utf8(bad: std::str::Utf8Error) -> Unfit {
    Unfit::Wrong(format!("the string is not UTF-8 from byte {} on", bad.valid_up_to()))
}

/// A piece of text as a value.
fn piece_as(piece: &[u8], kind: Kind) -> Found<'_> {
    match kind {
        Kind::String | Kind::Bytes => raw_as(piece, kind),
        _ => word_as(piece, kind),
    }
}

/// Bytes as a string, or as they are.
fn raw_as(bytes: &[u8], kind: Kind) -> Found<'_> {
    if kind != Kind::String {
        return Ok(FieldValue::Bytes(Cow::Borrowed(bytes)));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(FieldValue::String(Cow::Borrowed(text))),
        Err(bad) => Err(not_utf8(bad)),
    }
}

/// Text as a number or a `bool`. An empty text has no value.
fn word_as(word: &[u8], kind: Kind) -> Found<'_> {
    if word.is_empty() {
        return Err(Unfit::Missing);
    }
    let value = std::str::from_utf8(word).ok().and_then(|word| FieldValue::of_word(kind, word));
    value.ok_or_else(|| Unfit::Wrong(format!("\"{}\" is not of type {kind}", word.escape_ascii())))
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            From::Key => out.write_str("key")?,
            From::Part(0) => out.write_str("value")?,
            From::Part(group) => write!(out, "part({group})")?,
        }
        let mut text = String::new();
        match &self.place {
            Place::Bytes { start, end, reading } => {
                match (start, end) {
                    (0, None) => {}
                    (start, None) => write!(out, "[{start}..]")?,
                    (start, Some(end)) => write!(out, "[{start}..{end}]")?,
                }
                out.write_str(match reading {
                    Reading::Raw => "",
                    Reading::LittleEndian => ".le",
                    Reading::BigEndian => ".be",
                    Reading::Text => ".text",
                })
            }
            Place::Split { separator, form, number } => {
                push_literal(char::from(*separator).encode_utf8(&mut [0; 4]), '\'', &mut text);
                let escaped = if form.escaped { " escaped" } else { "" };
                let marked = if form.marked { " marked" } else { "" };
                write!(out, ".split({text}{escaped}{marked})")?;
                match number {
                    Number::One(number) => write!(out, "[{number}]"),
                    Number::Each => out.write_str("[*]"),
                }
            }
            Place::Json(path) => {
                push_literal(&path.to_string(), '"', &mut text);
                write!(out, ".json({text})")
            }
            Place::Tuple { declaration, rest, field } => {
                write!(text, "{declaration}")?;
                if let Some(rest) = rest {
                    write!(text, ", rest {rest}")?;
                }
                write!(out, ".tuple({text})[{field}]")
            }
        }
    }
}

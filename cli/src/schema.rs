//! What the rows of a table are made of: where they came from, what their columns are called, which of them are the key.
//! Kept as JSON in the table's metadata. It does not know how a row is written as bytes (see [`crate::layout`]).

use crate::keys::Kind;
use serde::{Deserialize, Serialize};
use std::fmt;

#[cfg(test)]
mod tests;

/// The newest form of a schema that this program understands.
const VERSION: u32 = 1;

/// The text that rows are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Comma-separated values with quotes (RFC 4180)
    Csv,
    /// Tab-separated values, taken byte for byte: no quotes, no escapes
    Tsv,
    /// A JSON object on each line
    Jsonl,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
        })
    }
}

/// Where a key column is found in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// The n-th column of a CSV or TSV row, from 1.
    Number(usize),
    /// A member of a JSON object.
    Name(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// One column of the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyColumn {
    /// Where it is in a row.
    pub column: Place,
    /// What it holds.
    pub kind: Kind,
}

/// A key column as the command line names it: `name`, `3`, `name:int`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    name: String,
    kind: Kind,
}

impl std::str::FromStr for KeySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, kind) = [Kind::Text, Kind::Int, Kind::Num]
            .into_iter()
            .find_map(|kind| Some((text.strip_suffix(kind.name())?.strip_suffix(':')?, kind)))
            .unwrap_or((text, Kind::Text));
        if name.is_empty() {
            return Err("a key column is a name or a number from 1, and :int or :num if it is numeric".to_string());
        }
        Ok(Self { name: name.to_string(), kind })
    }
}

/// What the rows of a table are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Form of this description; also what tells it from metadata of other programs.
    #[serde(rename = "larch_rows")]
    version: u32,
    /// The text that rows are made from.
    pub format: Format,
    /// Names of all columns, if the input had a header.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The key, most significant column first. Never empty.
    pub key: Vec<KeyColumn>,
    /// The program that made the rows up, if they did not come from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

impl Schema {
    /// The schema of an input whose header, if it has one, named `columns`; an error says which column is not there.
    pub fn new(format: Format, columns: Vec<String>, specs: &[KeySpec]) -> Result<Self, String> {
        let mut key: Vec<KeyColumn> = Vec::with_capacity(specs.len());
        for spec in specs {
            let column = match format {
                Format::Jsonl => Place::Name(spec.name.clone()),
                _ => Place::Number(column_number(&columns, &spec.name)?),
            };
            if key.iter().any(|other| other.column == column) {
                return Err(format!("column {} is in the key twice; name it once", spec.name));
            }
            key.push(KeyColumn { column, kind: spec.kind });
        }
        assert!(!key.is_empty(), "the caller asks for at least one key column");
        Ok(Self { version: VERSION, format, columns, key, made_by: None })
    }

    /// Reads the metadata of a table. `None` is a table without a description: its rows are raw keys and values.
    pub fn from_metadata(table: &str, metadata: &[u8]) -> Result<Option<Self>, String> {
        let ours = match serde_json::from_slice::<serde_json::Value>(metadata) {
            Ok(json) => json.get("larch_rows").and_then(serde_json::Value::as_u64),
            Err(_) => None,
        };
        match ours {
            None => Ok(None),
            Some(version) if version > u64::from(VERSION) => Err(format!(
                "the rows of table {table} were described by a newer larch (form {version}, this one reads {VERSION}); \
                 use that version"
            )),
            Some(_) => match serde_json::from_slice::<Self>(metadata) {
                Ok(schema) if schema.is_sound() => Ok(Some(schema)),
                Ok(_) => Err(damaged(table, "its key columns do not fit its format")),
                Err(why) => Err(damaged(table, &why.to_string())),
            },
        }
    }

    /// The metadata to keep with a table.
    pub fn to_metadata(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a schema is plain JSON")
    }

    /// Key columns as the command line would name them.
    pub fn specs(&self) -> Vec<KeySpec> {
        self.key.iter().map(|key| KeySpec { name: key.column.to_string(), kind: key.kind }).collect()
    }

    /// Whether fields are kept with tab, line ends and backslash escaped. TSV cannot hold the first two and escapes nothing.
    pub fn escapes(&self) -> bool {
        self.format != Format::Tsv
    }

    /// Whether the value holds the whole row. A JSON object always comes back as it was written; a number in the key
    /// does too only if its text is kept, because `007` and `7` are one key.
    pub fn keeps_whole_rows(&self) -> bool {
        self.format == Format::Jsonl || self.key.iter().any(|key| key.kind.is_numeric())
    }

    fn is_sound(&self) -> bool {
        !self.key.is_empty()
            && self.key.iter().all(|key| match (&key.column, self.format) {
                (Place::Name(_), format) => format == Format::Jsonl,
                (Place::Number(number), format) => format != Format::Jsonl && *number > 0,
            })
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.format)?;
        if !self.columns.is_empty() {
            write!(f, " of columns {}", self.columns.join(", "))?;
        }
        f.write_str(", key ")?;
        for (at, key) in self.key.iter().enumerate() {
            let name = match &key.column {
                Place::Number(number) => self.columns.get(number - 1).filter(|name| !name.is_empty()),
                Place::Name(_) => None,
            };
            let separator = if at > 0 { ", " } else { "" };
            match name {
                Some(name) => write!(f, "{separator}{name}")?,
                None if self.format == Format::Jsonl => write!(f, "{separator}{}", key.column)?,
                None => write!(f, "{separator}column {}", key.column)?,
            }
            if key.kind.is_numeric() {
                write!(f, ":{}", key.kind.name())?;
            }
        }
        if let Some(program) = &self.made_by {
            write!(f, ", made by {program}")?;
        }
        Ok(())
    }
}

/// A column's number from 1. A name of the header comes before a number, so that a header of years still works.
fn column_number(columns: &[String], name: &str) -> Result<usize, String> {
    let mut named = columns.iter().enumerate().filter(|(_, column)| *column == name);
    match (named.next(), named.next()) {
        (Some((at, _)), None) => return Ok(at + 1),
        (Some((first, _)), Some((second, _))) => {
            return Err(format!(
                "the header names {name} twice, as columns {} and {}; give the number of the one you mean",
                first + 1,
                second + 1
            ));
        }
        (None, _) => {}
    }
    match name.parse::<usize>() {
        Ok(0) => Err("columns are numbered from 1".to_string()),
        Ok(number) if columns.is_empty() || number <= columns.len() => Ok(number),
        Ok(number) => Err(format!("there is no column {number}: the header has {}", columns.len())),
        Err(_) if columns.is_empty() => {
            Err(format!("there is no header to find key column {name} in; number it from 1, or say --header"))
        }
        Err(_) => Err(format!("the header has no column {name}; it has {}", columns.join(", "))),
    }
}

fn damaged(table: &str, why: &str) -> String {
    format!("the description of the rows of table {table} is damaged: {why}; copy the rows to a new table")
}

//! What the rows of a table consist of: their format, the names of their columns, and the columns of the key. The
//! description is stored as JSON in the table's metadata. This module does not know how a row is encoded as bytes
//! (see [`crate::layout`]).

use crate::keys::Kind;
use serde::{Deserialize, Serialize};
use std::fmt;

pub mod groups;

#[cfg(test)]
mod tests;

use groups::{Group, GroupSpec};

/// The version of a schema without groups. Programs that do not know groups can read such a schema.
const PLAIN: u32 = 1;
/// The version of a schema with groups. It is the newest version that this program understands.
const GROUPED: u32 = 2;
/// The greatest column number in a table without a header, whose columns are named by their numbers. No row has
/// that many columns, but this program allocates memory for every number up to the greatest one named.
const MAX_COLUMN: usize = 1_000_000;

/// The format of the text from which rows are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Comma-separated values with quotes (RFC 4180)
    Csv,
    /// Tab-separated values, taken byte for byte: no quotes, no escapes; lines end in LF or CRLF
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

/// Where a column is found in a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// The n-th column of a CSV or TSV row, counted from 1.
    Number(usize),
    /// A member of a JSON object.
    Name(String),
}

impl Place {
    /// The number of a column, or `None` if the place is a member of a JSON object.
    pub fn number(&self) -> Option<usize> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(_) => None,
        }
    }
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
    /// Where the column is in a row.
    pub column: Place,
    /// The kind of its values.
    pub kind: Kind,
}

impl KeyColumn {
    /// The first column of a CSV or TSV row, as text.
    pub fn first() -> Self {
        Self { column: Place::Number(1), kind: Kind::Text }
    }
}

/// A key column as the command line names it: `name`, `3`, `name:int`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// The name of the column on the command line.
    pub name: String,
    /// The kind of its values.
    pub kind: Kind,
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

/// A column of an index as the command line names it: `city`, `3`, `age:int`, `age:int desc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// The column.
    pub spec: KeySpec,
    /// Whether the column is in descending order.
    pub is_descending: bool,
}

impl std::str::FromStr for IndexColumn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let name = text.strip_suffix("desc").filter(|name| name.ends_with(char::is_whitespace));
        let spec = name.map_or(text, str::trim_end).parse()?;
        Ok(Self { spec, is_descending: name.is_some() })
    }
}

/// What the rows of a table are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The version of this description. The name of the field also tells it from the metadata of another program.
    #[serde(rename = "larch_rows")]
    version: u32,
    /// The format of the text from which rows are made.
    pub format: Format,
    /// The names of all columns, if the input had a header.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The columns of the key, the most significant one first. There is at least one.
    pub key: Vec<KeyColumn>,
    /// The groups into which all other columns are split. There are none if these columns are stored together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The program that made the rows, if they did not come from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

impl Schema {
    /// The schema of an input. `columns` are the names in the header of the input, if it has one. If a column does
    /// not exist, the error names it.
    pub fn new(format: Format, columns: Vec<String>, specs: &[KeySpec]) -> Result<Self, String> {
        let mut key: Vec<KeyColumn> = Vec::with_capacity(specs.len());
        for spec in specs {
            let column = place(format, &columns, "key column", &spec.name)?;
            if key.iter().any(|other| other.column == column) {
                return Err(format!("column {} is in the key twice; name it once", spec.name));
            }
            key.push(KeyColumn { column, kind: spec.kind });
        }
        Ok(Self::with_key(format, columns, key))
    }

    /// The schema of an input with the key columns `key`. These columns are not checked: the caller knows that
    /// they exist, or only compares the schema with another one.
    pub fn with_key(format: Format, columns: Vec<String>, key: Vec<KeyColumn>) -> Self {
        assert!(!key.is_empty(), "the caller asks for at least one key column");
        Self { version: PLAIN, format, columns, key, groups: Vec::new(), made_by: None }
    }

    /// The same schema with its columns split into groups. An error says what is wrong with the groups.
    pub fn with_groups(self, specs: &[GroupSpec]) -> Result<Self, String> {
        let find = |name: &str| place(self.format, &self.columns, "column", name);
        let groups = specs.iter().map(|spec| spec.resolve(find)).collect::<Result<Vec<_>, _>>()?;
        groups::check(self.format, &self.columns, &self.key, &groups)?;
        Ok(self.with_groups_of(groups))
    }

    /// The same schema with these groups. The groups are not checked: the caller knows that they fit, or only
    /// compares the schema with another one.
    pub fn with_groups_of(self, groups: Vec<Group>) -> Self {
        Self { version: if groups.is_empty() { PLAIN } else { GROUPED }, groups, ..self }
    }

    /// The names of the groups. There are none if the columns are stored together.
    pub fn group_names(&self) -> Vec<String> {
        self.groups.iter().map(|group| group.name.clone()).collect()
    }

    /// Reads the metadata of a table whose rows are split into `groups`. Returns `None` if the table has no
    /// description, so that its rows are raw keys and values.
    pub fn from_metadata(table: &str, metadata: &[u8], groups: &[String]) -> Result<Option<Self>, String> {
        let ours = match serde_json::from_slice::<serde_json::Value>(metadata) {
            Ok(json) => json.get("larch_rows").and_then(serde_json::Value::as_u64),
            Err(_) => None,
        };
        match ours {
            None => Ok(None),
            Some(version) if version > u64::from(GROUPED) => Err(format!(
                "the rows of table {table} were described by a newer larch (form {version}, this one reads {GROUPED}); \
                 use that version"
            )),
            Some(_) => match serde_json::from_slice::<Self>(metadata) {
                Ok(schema) => match schema.check(groups) {
                    Ok(()) => Ok(Some(schema)),
                    Err(why) => Err(damaged(table, &why)),
                },
                Err(why) => Err(damaged(table, &why.to_string())),
            },
        }
    }

    /// The names of the columns as members of a JSON object. Each name occurs once. If a column has no name, or
    /// has the same name as an earlier column, its number is used as its name.
    pub fn members(&self) -> Vec<String> {
        let mut taken: Vec<String> = Vec::with_capacity(self.columns.len());
        for (at, name) in self.columns.iter().enumerate() {
            let mut name = name.clone();
            if name.is_empty() || taken.contains(&name) {
                name = (at + 1).to_string();
                while taken.contains(&name) || self.columns.contains(&name) {
                    name.push('_');
                }
            }
            taken.push(name);
        }
        taken
    }

    /// The first line of a TSV file with rows of this table, without its line end; `None` if the table has no names, or
    /// if its rows are not those of TSV.
    pub fn tsv_header(&self) -> Option<String> {
        (self.format == Format::Tsv && !self.columns.is_empty()).then(|| self.columns.join("\t"))
    }

    /// The options with which `import` makes a table of the same kind from a file of the same format.
    pub fn import_options(&self) -> Vec<String> {
        let of_key = |key: &KeyColumn| {
            let name = label(&self.columns, &key.column);
            if key.kind.is_numeric() {
                return format!("{name}:{}", key.kind.name());
            }
            // The end of a name may look like the kind of a column.
            let is_plain = name.parse::<KeySpec>().is_ok_and(|spec| spec.name == name);
            if is_plain { name } else { format!("{name}:{}", key.kind.name()) }
        };
        let key: Vec<String> = self.key.iter().map(of_key).collect();
        let mut options = vec!["--key".to_owned(), key.join(",")];
        if self.format != Format::Jsonl {
            options.push(if self.columns.is_empty() { "--no-header" } else { "--header" }.to_owned());
        }
        if !self.groups.is_empty() {
            options.extend(["--groups".to_owned(), self.groups_text()]);
        }
        options
    }

    /// The groups in the form of the command line.
    fn groups_text(&self) -> String {
        let group = |group: &Group| {
            let labels: Vec<String> = group.columns.iter().map(|column| label(&self.columns, column)).collect();
            format!("{}:{}", group.name, if group.rest { "*".to_string() } else { labels.join(",") })
        };
        self.groups.iter().map(group).collect::<Vec<_>>().join(";")
    }

    /// The metadata to store with a table.
    pub fn to_metadata(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a schema is plain JSON")
    }

    /// Whether fields are stored with escapes for tab, line ends and backslash. Fields of TSV cannot contain tabs
    /// and line ends, so nothing is escaped.
    pub fn escapes(&self) -> bool {
        self.format != Format::Tsv
    }

    /// Whether the value contains the whole row, including the columns of the key. A JSON object must always be
    /// printed as it was written. A number in the key can be printed as it was written only if its text is stored,
    /// because `007` and `7` are the same key.
    pub fn keeps_whole_rows(&self) -> bool {
        self.format == Format::Jsonl || self.key.iter().any(|key| key.kind.is_numeric())
    }

    fn check(&self, groups: &[String]) -> Result<(), String> {
        let fits = |key: &KeyColumn| match (&key.column, self.format) {
            (Place::Name(_), format) => format == Format::Jsonl,
            (Place::Number(number), format) => format != Format::Jsonl && *number > 0,
        };
        if self.key.is_empty() || !self.key.iter().all(fits) {
            return Err("its key columns do not fit its format".to_string());
        }
        if self.groups.is_empty() != (self.version < GROUPED) {
            return Err(format!("form {} does not fit {} groups", self.version, self.groups.len()));
        }
        if !self.groups.is_empty() {
            groups::check(self.format, &self.columns, &self.key, &self.groups)?;
        }
        if self.group_names() != groups {
            let listed = |names: &[String]| if names.is_empty() { "none".to_string() } else { names.join(", ") };
            let (ours, theirs) = (listed(&self.group_names()), listed(groups));
            return Err(format!("it describes the groups {ours}, and the table has {theirs}"));
        }
        Ok(())
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
        if !self.groups.is_empty() {
            write!(f, ", groups {}", self.groups_text())?;
        }
        if let Some(program) = &self.made_by {
            write!(f, ", made by {program}")?;
        }
        Ok(())
    }
}

/// The name of a column on the command line.
fn label(columns: &[String], place: &Place) -> String {
    let Place::Number(number) = place else { return place.to_string() };
    match number.checked_sub(1).and_then(|at| columns.get(at)) {
        Some(name) if is_label(name) && columns.iter().filter(|other| *other == name).count() == 1 => name.clone(),
        _ => number.to_string(),
    }
}

/// Whether the name of a column can stand in a list of the columns in a group.
fn is_label(name: &str) -> bool {
    !name.is_empty() && name != "*" && !name.contains([',', ';'])
}

/// The place of the column that is called `name` on the command line. `what` says what the column is needed for, in
/// messages.
pub fn place(format: Format, columns: &[String], what: &str, name: &str) -> Result<Place, String> {
    match format {
        Format::Jsonl => Ok(Place::Name(name.to_string())),
        Format::Csv | Format::Tsv => column_number(columns, what, name).map(Place::Number),
    }
}

/// The number of a column, counted from 1. A name in the header takes precedence over a number, so a header may
/// have years as names.
fn column_number(columns: &[String], what: &str, name: &str) -> Result<usize, String> {
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
        Ok(number) if columns.is_empty() && number > MAX_COLUMN => Err(beyond(number)),
        Ok(number) if columns.is_empty() || number <= columns.len() => Ok(number),
        Ok(number) => Err(format!("there is no column {number}: the header has {}", columns.len())),
        Err(_) if columns.is_empty() => {
            Err(format!("there is no header to find {what} {name} in; number it from 1, or say --header"))
        }
        Err(_) => Err(format!("the header has no column {name}; it has {}", columns.join(", "))),
    }
}

fn beyond(number: usize) -> String {
    format!("there is no column {number}: without a header they are numbered up to {MAX_COLUMN}")
}

fn damaged(table: &str, why: &str) -> String {
    format!("the description of the rows of table {table} is damaged: {why}; copy the rows to a new table")
}

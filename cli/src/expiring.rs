//! Until when the rows of a table are there, as the command line says it and as it is printed. This module reads no
//! rows.

use crate::keys::Kind;
use crate::layout::indexed;
use crate::schema::{IndexColumn, KeySpec, Schema};
use ::rows::RowTime;
use larch::TableOptions;
use larch::options::Expiry;
use std::str::FromStr;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// What is said of rows that do not expire.
pub const NEVER: &str = "never";

/// Parses the value of `--expire-after`.
pub fn after(text: &str) -> Result<Expiry, String> {
    match text {
        NEVER => Ok(Expiry::Never),
        text => Ok(Expiry::After(kit::time::parse_length(text)?)),
    }
}

/// Where a row has the time until which it is there: the value of `--expire-by`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpireBy {
    /// In a column, as a text, or as a number of this unit.
    Column(String, Option<&'static str>),
    /// Where a declaration says.
    Declared(RowTime),
}

/// The units of a column.
const UNITS: [&str; 3] = ["seconds", "milliseconds", "microseconds"];

impl FromStr for ExpireBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if indexed::is_declaration(text) {
            return text.parse().map(Self::Declared).map_err(|bad: ::rows::BadText| {
                format!("{bad}; docs/format/extractor.md has the grammar, and a column is also named by its number")
            });
        }
        let of_unit = |unit: &&'static str| Some((text.strip_suffix(*unit)?.strip_suffix(':')?, Some(*unit)));
        let (column, unit) = UNITS.iter().find_map(of_unit).unwrap_or((text, None));
        if column.is_empty() {
            return Err("name a column, or declare where the time is in a row".to_owned());
        }
        Ok(Self::Column(column.to_owned(), unit))
    }
}

impl ExpireBy {
    /// The option of a table with these `options`.
    pub fn expiry(&self, options: &TableOptions) -> Result<Expiry, String> {
        let (column, unit) = match self {
            Self::Declared(declared) => return Ok(Expiry::By(declared.to_bytes())),
            Self::Column(column, unit) => (column, unit),
        };
        let Some(schema) = Schema::from_metadata("with --expire-by", &options.metadata, &options.groups)? else {
            return Err(format!(
                "rows of raw keys and values have no column {column}; say where the time is, as in \
                 'value[0..8].le u64 seconds' (docs/format/extractor.md)"
            ));
        };
        let kind = if unit.is_some() { Kind::Int } else { Kind::Text };
        let spec = KeySpec { name: column.clone(), kind };
        let field = indexed::field_of(&schema, &IndexColumn { spec, is_descending: false })?;
        let declared: RowTime = match unit {
            Some(unit) => format!("{field} {unit}").parse(),
            None => field.parse(),
        }
        .expect("the field is written in the language of declarations");
        Ok(Expiry::By(declared.to_bytes()))
    }
}

/// Until when the rows of a table are there, in words: `never`, `after 10m`, `by value.text u64 seconds`.
pub fn text(expiry: &Expiry) -> String {
    match expiry {
        Expiry::Never => NEVER.to_owned(),
        Expiry::After(time) => format!("after {}", length(*time)),
        Expiry::By(declaration) => match RowTime::from_bytes(declaration) {
            Ok(declared) => format!("by {declared}"),
            Err(_) => format!("by {}", declaration.escape_ascii()),
        },
    }
}

/// A length of time in the longest unit that gives a whole number, as `--expire-after` takes it.
fn length(time: Duration) -> String {
    const UNITS: [(u128, &str); 7] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let nanos = time.as_nanos();
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| nanos.is_multiple_of(*unit)).expect("1 divides it");
    format!("{}{name}", nanos / unit)
}

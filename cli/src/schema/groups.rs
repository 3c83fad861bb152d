//! Column groups, in the form of the command line and in the form of a schema. The columns of a group are stored
//! together, and apart from the columns of other groups. This module does not know how a row is encoded as bytes
//! (see [`crate::layout`]).
//!
//! ```text
//! hot:a,b;cold:c      two groups of named or numbered columns
//! hot:a,b;cold:*      the second takes every column that is in no other, those a row of an earlier release has beyond the header too
//! ```
//!
//! Key columns are in no group, because the key is stored with each group. Every other known column is in exactly
//! one group.

use super::{Format, KeyColumn, MAX_COLUMN, Place, beyond, label};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// The most groups a table can have.
pub const MAX_GROUPS: usize = 16;
/// The most bytes in the name of a group.
const MAX_NAME_BYTES: usize = 64;
/// In the list of a group's columns, this text stands for all columns that no other group names.
const REST: &str = "*";

/// A group in the form in which a schema stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The name of the group. No two groups have the same name.
    pub name: String,
    /// The columns of the group, in sorted order. The list is empty if the group takes all columns that no other
    /// group names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Place>,
    /// Whether the group takes all columns that no other group names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rest: bool,
}

/// A group in the form of the command line: `hot:name,3`, `cold:*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    name: String,
    columns: Vec<String>,
}

impl std::str::FromStr for GroupSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, columns)) = text.split_once(':') else {
            return Err(format!(
                "a group is a name and its columns, as in hot:name,age, or hot:{REST} for all that no other group names"
            ));
        };
        check_name(name)?;
        if columns.split(',').any(str::is_empty) {
            return Err(format!("group {name} has a column without a name; write names or numbers from 1, or {REST}"));
        }
        Ok(Self { name: name.to_string(), columns: columns.split(',').map(str::to_string).collect() })
    }
}

impl GroupSpec {
    /// Makes the group. `place` finds the place of each column.
    pub(super) fn resolve(&self, place: impl Fn(&str) -> Result<Place, String>) -> Result<Group, String> {
        let Self { name, columns } = self;
        let rest = columns.iter().any(|column| column == REST);
        if rest && columns.len() > 1 {
            return Err(format!(
                "group {name} has {REST}, which is every column that no other group names; leave its other columns out"
            ));
        }
        let mut places = Vec::new();
        if !rest {
            let found = columns.iter().map(|column| place(column));
            places = found.collect::<Result<_, _>>().map_err(|why| format!("group {name}: {why}"))?;
        }
        places.sort();
        Ok(Group { name: name.clone(), columns: places, rest })
    }
}

/// The numbers (from 0) of the groups named in `asked`, in that order, or of all groups if `asked` is empty.
pub fn choose(groups: &[String], asked: &[String]) -> Result<Vec<usize>, String> {
    if asked.is_empty() {
        return Ok((0..groups.len()).collect());
    }
    if groups.is_empty() {
        return Err("the table has no groups of columns; leave --groups out".to_string());
    }
    let mut chosen = Vec::with_capacity(asked.len());
    for name in asked {
        let Some(group) = groups.iter().position(|group| group == name) else {
            return Err(format!("the table has no group {name:?}; it has {}", groups.join(", ")));
        };
        if chosen.contains(&group) {
            return Err(format!("group {name} is asked for twice; name it once"));
        }
        chosen.push(group);
    }
    Ok(chosen)
}

/// Checks the groups of a schema. The error says what is wrong with them.
pub(super) fn check(format: Format, columns: &[String], key: &[KeyColumn], groups: &[Group]) -> Result<(), String> {
    if groups.len() > MAX_GROUPS {
        return Err(format!("these are {} groups, and a table has at most {MAX_GROUPS}; join some", groups.len()));
    }
    for (at, group) in groups.iter().enumerate() {
        check_name(&group.name)?;
        if groups[..at].iter().any(|other| other.name == group.name) {
            return Err(format!("there are two groups {}; give one of them another name", group.name));
        }
        if group.rest != group.columns.is_empty() {
            return Err(format!("group {} must have either columns or {REST}", group.name));
        }
    }
    let mut rest = groups.iter().filter(|group| group.rest);
    let (rest, second) = (rest.next(), rest.next());
    if let (Some(first), Some(second)) = (rest, second) {
        return Err(format!(
            "groups {} and {} both have {REST}, which is every column that no other group names; only one can",
            first.name, second.name
        ));
    }
    // For each column that is named, the group that names it, or `None` if it is a column of the key.
    let mut taken: BTreeMap<&Place, Option<&str>> = key.iter().map(|key| (&key.column, None)).collect();
    for group in groups {
        for place in &group.columns {
            check_place(format, columns, place).map_err(|why| format!("group {}: {why}", group.name))?;
            let Some(other) = taken.insert(place, Some(&group.name)) else { continue };
            let column = label(columns, place);
            return Err(match other {
                None => format!(
                    "column {column} is in the key, which is kept with every group; leave it out of group {}",
                    group.name
                ),
                Some(other) if other == group.name => {
                    format!("column {column} is in group {other} twice; name it once")
                }
                Some(other) => format!("column {column} is in groups {other} and {}; it can be in one", group.name),
            });
        }
    }
    if rest.is_some() || format == Format::Jsonl {
        return Ok(());
    }
    let last = taken.keys().filter_map(|place| place.number()).max().unwrap_or(0).max(columns.len());
    match (1..=last).map(Place::Number).find(|place| !taken.contains_key(place)) {
        None => Ok(()),
        Some(place) => Err(format!(
            "column {} is in no group; name it, or give one group {REST} for the rest",
            label(columns, &place)
        )),
    }
}

fn check_place(format: Format, columns: &[String], place: &Place) -> Result<(), String> {
    match (place, format) {
        (Place::Name(_), Format::Jsonl) => Ok(()),
        (Place::Number(number), Format::Csv | Format::Tsv) => match *number {
            0 => Err("columns are numbered from 1".to_string()),
            number if !columns.is_empty() && number > columns.len() => {
                Err(format!("there is no column {number}: the header has {}", columns.len()))
            }
            number if columns.is_empty() && number > MAX_COLUMN => Err(beyond(number)),
            _ => Ok(()),
        },
        _ => Err(format!("{place} is no column of {format} rows")),
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() {
        return Err("a group needs a name before its columns, as in hot:name,age".to_string());
    }
    if name.len() > MAX_NAME_BYTES || !name.bytes().all(fits) {
        return Err(format!(
            "a group cannot be named {name:?}; use at most {MAX_NAME_BYTES} of A-Z, a-z, 0-9, _, - and ."
        ));
    }
    Ok(())
}

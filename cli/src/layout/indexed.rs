//! Says where named columns are in rows: makes the extractor for an index on them, in the language of
//! `docs/format/extractor.md`. The user gives only names; where a column is in a row depends on the format, the key and
//! the groups. This module reads no rows.

use super::Layout;
use crate::keys::Kind;
use crate::schema::{IndexColumn, Place, Schema, place};
use ::rows::{Extractor, quoted};

#[cfg(test)]
mod tests;

/// The extractor for the keys of an index on these columns. If a column does not exist, the error names
/// it.
pub fn extractor(schema: &Schema, columns: &[IndexColumn]) -> Result<Extractor, String> {
    let layout = Layout::new(Some(schema.clone()));
    let fields = columns.iter().map(|column| field(schema, &layout, column)).collect::<Result<Vec<_>, _>>()?;
    Ok(fields.join(", ").parse().expect("the fields are written in the language of extractors"))
}

/// Where a column is in a row, and its kind, in the language of extractors. If the column does not exist, the error
/// names it.
pub fn field_of(schema: &Schema, column: &IndexColumn) -> Result<String, String> {
    field(schema, &Layout::new(Some(schema.clone())), column)
}

/// Whether a text is a declaration and does not name columns. All declarations begin with one of three words.
pub fn is_declaration(text: &str) -> bool {
    let word = text.trim_start().split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
    matches!(word, Some("key" | "value" | "part"))
}

fn field(schema: &Schema, layout: &Layout, column: &IndexColumn) -> Result<String, String> {
    let IndexColumn { spec, is_descending } = column;
    let kind = match spec.kind {
        Kind::Text => "string",
        Kind::Int => "i64",
        Kind::Num => "f64",
    };
    let kind = if *is_descending { format!("{kind} desc") } else { kind.to_owned() };
    let in_no_group = || format!("column {} is in no group of the table, so no row has it", spec.name);
    let at = match place(schema.format, &schema.columns, "column", &spec.name)? {
        Place::Name(name) => {
            let part = layout.part_of_member(&name).ok_or_else(in_no_group)?;
            let path = quoted(&format!("$[{}]", quoted(&name, '\'')), '"');
            return Ok(format!("part({part}).json({path}) {kind}"));
        }
        Place::Number(number) => number - 1,
    };
    if let Some(part) = layout.part_of(at) {
        let before = (0..at).filter(|other| layout.part_of(*other) == Some(part)).count();
        let escaped = if schema.escapes() { " escaped" } else { "" };
        let marked = if layout.marks() { " marked" } else { "" };
        return Ok(format!("part({part}).split('\\t'{escaped}{marked})[{before}] {kind}"));
    }
    let at = layout.in_key(at).ok_or_else(in_no_group)?;
    // All columns of the key are texts here: with a number in the key, the value would contain the key columns,
    // too.
    match (schema.key.len(), spec.kind) {
        (1, Kind::Text) => Ok(format!("key {kind}")),
        (1, _) => Ok(format!("key.text {kind}")),
        (columns, Kind::Text) => Ok(format!("key.tuple({}rest string)[{at}] {kind}", "string, ".repeat(columns - 1))),
        _ => Err(format!(
            "column {} is a text in the key of the table, among others; leave :{} out",
            spec.name,
            spec.kind.name()
        )),
    }
}

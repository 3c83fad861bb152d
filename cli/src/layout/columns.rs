//! What a schema says about the columns of a table, in the language that `larch sql` reads (`docs/guide/sql.md`).
//! This module reads no rows.
//!
//! Each column of the key is declared. Each other column is declared if the header names it, or if the schema
//! contains its number. If the columns of a row are not known, for example because the row is a JSON object, the
//! text of the row is declared as a single column.

use super::Layout;
use crate::keys::Kind;
use crate::schema::{Format, Place, Schema};

#[cfg(test)]
mod tests;

/// The columns of a table with this schema.
pub fn declared(schema: &Schema) -> String {
    let layout = Layout::new(Some(schema.clone()));
    let mut names = Names::default();
    let mut sources = vec![key(schema, &mut names)];
    // If the rows have no header or are JSON objects, one column contains the text of everything that is not in
    // the key.
    let is_text = schema.format == Format::Jsonl || schema.columns.is_empty();
    let names_of_parts = if schema.groups.is_empty() { vec!["value".to_owned()] } else { schema.group_names() };
    for (part, name) in names_of_parts.iter().enumerate() {
        let source = if part == 0 { "value".to_owned() } else { format!("part({part})") };
        if is_text {
            sources.push(format!("{source} {} string", names.free(name)));
            continue;
        }
        let mut fields = Vec::new();
        for at in (0..schema.columns.len()).filter(|at| layout.part_of(*at) == Some(part)) {
            fields.push(match layout.in_key(at) {
                Some(_) => "_ string".to_owned(),
                None => format!("{} string", names.free(&column_name(schema, at))),
            });
        }
        if fields.iter().any(|field| !field.starts_with("_ ")) {
            let escaped = if schema.escapes() { " escaped" } else { "" };
            let marked = if layout.marks() { " marked" } else { "" };
            sources.push(format!("{source}.split('\\t'{escaped}{marked})({})", fields.join(", ")));
        }
    }
    sources.join(", ")
}

fn key(schema: &Schema, names: &mut Names) -> String {
    let field = |(at, column): (usize, &super::KeyColumn)| {
        let name = match &column.column {
            Place::Number(number) => column_name(schema, number - 1),
            Place::Name(name) => name.clone(),
        };
        let kind = match column.kind {
            Kind::Text if at + 1 == schema.key.len() => "rest string",
            Kind::Text => "string",
            Kind::Int => "i64",
            Kind::Num => "f64",
        };
        format!("{} {kind}", names.free(&name))
    };
    let fields: Vec<String> = schema.key.iter().enumerate().map(field).collect();
    format!("key.tuple({})", fields.join(", "))
}

/// The name of a column of CSV or TSV. Columns are counted from 0.
fn column_name(schema: &Schema, at: usize) -> String {
    let named = schema.columns.get(at).filter(|name| !name.is_empty());
    named.cloned().unwrap_or_else(|| format!("column_{}", at + 1))
}

/// The names that were given to columns so far.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// Returns `name` in the language of columns. If this name is already used, `_` is appended.
    fn free(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        while self.0.contains(&free) {
            free.push('_');
        }
        let is_word = !free.is_empty() && free.chars().all(|c| c.is_alphanumeric() || c == '_');
        let written = if is_word && !matches!(&*free, "_" | "rest") {
            free.clone()
        } else {
            let escaped = free.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
            format!("\"{escaped}\"")
        };
        self.0.push(free);
        written
    }
}

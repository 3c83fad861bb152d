//! Tests that columns are found at their places in rows.

use super::*;
use crate::layout::Row;
use crate::schema::Format;

fn specs<T: std::str::FromStr<Err = String>>(text: &str) -> Vec<T> {
    text.split(',').map(|spec| spec.parse().expect("a column")).collect()
}

fn schema(format: Format, key: &str, groups: &str) -> Schema {
    let columns = match format {
        Format::Jsonl => Vec::new(),
        Format::Csv | Format::Tsv => ["id", "name", "city"].map(str::to_owned).to_vec(),
    };
    let schema = Schema::new(format, columns, &specs(key)).expect("the columns are there");
    let groups: Vec<_> =
        groups.split(';').filter(|group| !group.is_empty()).map(|group| group.parse().expect("a group")).collect();
    if groups.is_empty() { schema } else { schema.with_groups(&groups).expect("the groups fit") }
}

/// The keys that an index on the columns `columns` has for a row, as text.
fn keys(schema: &Schema, columns: &str, record: [&str; 3]) -> Vec<String> {
    let extractor = extractor(schema, &specs(columns)).expect("the columns are there");
    let layout = Layout::new(Some(schema.clone()));
    let mut row = Row::default();
    match schema.format {
        Format::Jsonl => {
            let member = |(name, value): (&str, &str)| format!("{}:{}", quoted(name, '"'), quoted(value, '"'));
            let members = ["id", "name", "city"].into_iter().zip(record).map(member).collect::<Vec<_>>();
            layout.encode_object(&format!("{{{}}}", members.join(",")), &mut row)
        }
        Format::Csv | Format::Tsv => layout.encode(&record.map(|text| text.as_bytes().to_vec()).to_vec(), &mut row),
    }
    .expect("a row");
    let mut keys = Vec::new();
    let part = |part: usize| row.parts.get(part).map(Vec::as_slice);
    let mut emit = |key: &[u8]| keys.push(extractor.declaration().show(key));
    extractor.index_keys(&row.key, &part, &mut emit).expect("the row fits");
    keys
}

#[test]
fn a_column_is_the_same_wherever_the_key_and_the_groups_leave_it() {
    let record = ["7", "Ada", "Bonn"];
    for format in [Format::Csv, Format::Tsv, Format::Jsonl] {
        for key in ["id", "id:int", "id:num", "name", "city", "id,city", "city,id", "name,id:int", "city,name,id"] {
            for groups in ["", "all:*", "one:city;two:*", "one:name,city;two:*"] {
                // A column of the key cannot be in a group.
                if key.split(',').any(|key| groups.contains(key)) {
                    continue;
                }
                let schema = schema(format, key, groups);
                let check = |columns: &str, expected: &str| {
                    assert_eq!(keys(&schema, columns, record), [expected], "{columns} of {schema}");
                };
                check("name", "(\"Ada\")");
                check("city", "(\"Bonn\")");
                check("city,name", "(\"Bonn\", \"Ada\")");
                check("id", "(\"7\")");
                if format != Format::Jsonl {
                    check("3,1", "(\"Bonn\", \"7\")");
                    let is_one_of_several_texts = key.contains(',') && key.contains("id") && !key.contains("id:");
                    if !is_one_of_several_texts {
                        check("id:int,city", "(7, \"Bonn\")");
                    }
                }
            }
        }
    }
}

#[test]
fn any_text_is_the_key_of_its_row() {
    for key in ["id", "id:int", "city,id"] {
        for text in ["", "\0", "a\tb", "\\t", "\n\r\\", "\u{e4}"] {
            let schema = schema(Format::Csv, key, "");
            let expected = [format!("({})", quoted(text, '"'))];
            assert_eq!(keys(&schema, "name", ["7", text, "x"]), expected, "{schema}");
            assert_eq!(keys(&schema, "city", ["7", "x", text]), expected, "{schema}");
        }
    }
    let odd = Schema::new(Format::Jsonl, Vec::new(), &specs("id")).expect("it is a member");
    let declared = extractor(&odd, &specs("it's \"b\\c\"")).expect("a member has any name").to_string();
    assert_eq!(declared, r#"value.json("$['it\\'s \"b\\\\c\"']") string"#);
}

#[test]
fn a_column_that_is_not_there_is_named() {
    let error = |schema: &Schema, columns: &str| extractor(schema, &specs(columns)).expect_err("it is not there");
    let csv = schema(Format::Csv, "id", "");
    assert_eq!(error(&csv, "age"), "the header has no column age; it has id, name, city");
    assert_eq!(error(&csv, "city,4"), "there is no column 4: the header has 3");
    let grouped = schema(Format::Jsonl, "id", "one:name");
    assert_eq!(error(&grouped, "city"), "column city is in no group of the table, so no row has it");
    let texts = schema(Format::Tsv, "id,name", "");
    assert_eq!(error(&texts, "id:int"), "column id is a text in the key of the table, among others; leave :int out");
}

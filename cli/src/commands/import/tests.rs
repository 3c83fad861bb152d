//! Tests of the groups in an import into an existing table.

use super::*;

fn schema(columns: &str, groups: &str) -> Schema {
    let columns = columns.split_whitespace().map(str::to_string).collect();
    let schema = Schema::new(Format::Csv, columns, &["id".parse().expect("a name")]).expect("the column exists");
    grouped(schema, &specs(groups), None).expect(groups)
}

fn specs(groups: &str) -> Vec<GroupSpec> {
    groups.split_terminator(';').map(|group| group.parse().expect("a group")).collect()
}

#[test]
fn a_table_keeps_its_groups_and_others_differ_from_them() {
    let table = schema("id a b", "hot:b;cold:a");
    let again = |columns, groups| grouped(schema(columns, ""), &specs(groups), Some(&table)).expect(groups);
    assert_eq!(again("id a b", ""), table);
    assert_eq!(again("id a b", "hot:3;cold:2"), table);
    for groups in ["hot:a;cold:b", "cold:a;hot:b", "hot:b;cold:*", "hot:a,b"] {
        assert_ne!(again("id a b", groups), table, "{groups}");
    }
    assert_ne!(again("id a b c", ""), table);
    let plain = schema("id a b", "");
    assert_ne!(grouped(schema("id a b", ""), &specs("hot:*"), Some(&plain)).expect("a group"), plain);
    let wrong = grouped(schema("id a b", ""), &specs("hot:a"), Some(&table)).expect_err("b is in no group");
    assert!(wrong.starts_with("column b is in no group"), "{wrong}");
}

//! Tests of groups that come from the command line and from metadata.

use super::*;
use crate::schema::Schema;

/// Makes a schema and returns its text, or returns the error if the schema cannot be made. If `columns` is empty,
/// there is no header.
fn describe(format: Format, columns: &str, key: &str, groups: &str) -> String {
    match schema(format, columns, key, groups) {
        Ok(schema) => schema.to_string(),
        Err(error) => error,
    }
}

fn schema(format: Format, columns: &str, key: &str, groups: &str) -> Result<Schema, String> {
    let columns = columns.split_whitespace().map(str::to_string).collect();
    let keys: Vec<_> = key.split(',').map(|spec| spec.parse().expect("a key specification")).collect();
    let groups = groups.split(';').map(str::parse).collect::<Result<Vec<GroupSpec>, _>>()?;
    Schema::new(format, columns, &keys).expect("the key exists").with_groups(&groups)
}

#[test]
fn columns_of_groups_are_named_or_numbered() {
    let csv = |columns, key, groups, expected: &str| {
        assert_eq!(describe(Format::Csv, columns, key, groups), expected, "{groups}");
    };
    let is = "csv rows of columns id, a, b, c, key id, groups";
    csv("id a b c", "id", "hot:a,b;cold:c", &format!("{is} hot:a,b;cold:c"));
    csv("id a b c", "id", "hot:3,a;cold:4", &format!("{is} hot:a,b;cold:c"));
    csv("id a b c", "id", "hot:b;cold:*", &format!("{is} hot:b;cold:*"));
    csv("id a b c", "id", "all:*", &format!("{is} all:*"));
    csv("id a b c", "id", "cold:*;hot:a,b,c", &format!("{is} cold:*;hot:a,b,c"));
    csv("id a a", "id", "x.-_9:3;y:2", "csv rows of columns id, a, a, key id, groups x.-_9:3;y:2");
    csv("", "2", "hot:1;cold:3", "csv rows, key column 2, groups hot:1;cold:3");
    csv("", "1", "hot:7;cold:*", "csv rows, key column 1, groups hot:7;cold:*");
    csv("id a:b", "id", "hot:a:b", "csv rows of columns id, a:b, key id, groups hot:a:b");
    assert_eq!(describe(Format::Jsonl, "", "id", "hot:b,a;cold:*"), "jsonl rows, key id, groups hot:a,b;cold:*");
    assert_eq!(describe(Format::Jsonl, "", "id", "hot:1"), "jsonl rows, key id, groups hot:1");
}

#[test]
fn a_name_that_a_list_cannot_hold_is_shown_as_a_number() {
    let columns = ["id", "a,b", "*", ""].map(str::to_string).to_vec();
    let key = ["id".parse().expect("a name")];
    let groups = ["hot:2,3,4".parse().expect("a group")];
    let schema = Schema::new(Format::Csv, columns, &key).expect("the key exists").with_groups(&groups);
    assert!(schema.expect("they fit").to_string().ends_with(", groups hot:2,3,4"));
}

#[test]
fn wrong_groups_say_what_is_wrong() {
    let csv = |groups: &str, part: &str| {
        let error = schema(Format::Csv, "id a b c d", "id", groups).expect_err(groups);
        assert!(error.contains(part), "{groups}: {error}");
    };
    csv("", "a group is a name and its columns, as in hot:name,age, or hot:*");
    csv("hot", "a group is a name and its columns");
    csv("hot:a;", "a group is a name and its columns");
    csv(":a", "a group needs a name");
    csv("hot:", "group hot has a column without a name");
    csv("hot:a,,b", "group hot has a column without a name");
    csv("h t:*", "a group cannot be named \"h t\"; use at most 64 of A-Z");
    csv("hé:*", "a group cannot be named \"hé\"");
    csv("*:a", "a group cannot be named \"*\"");
    csv(&format!("{}:*", "x".repeat(65)), "a group cannot be named");
    csv("hot:a;hot:*", "there are two groups hot");
    csv("hot:*;cold:*", "groups hot and cold both have *");
    csv("hot:a,*", "group hot has *, which is every column");
    csv("hot:a,b,a;cold:*", "column a is in group hot twice; name it once");
    csv("hot:a,b;cold:*;more:2", "column a is in groups hot and more; it can be in one");
    csv("hot:id;cold:*", "column id is in the key, which is kept with every group; leave it out of group hot");
    csv("hot:e;cold:*", "group hot: the header has no column e; it has id, a, b, c, d");
    csv("hot:6;cold:*", "group hot: there is no column 6: the header has 5");
    csv("hot:0;cold:*", "group hot: columns are numbered from 1");
    csv("hot:a,b;cold:c", "column d is in no group; name it, or give one group * for the rest");
    let groups: Vec<String> = (0..17).map(|number| format!("g{number}:{}", number + 2)).collect();
    let error = schema(Format::Tsv, "", "1", &groups.join(";")).expect_err("17 groups");
    assert!(error.starts_with("these are 17 groups, and a table has at most 16"), "{error}");
    assert!(schema(Format::Tsv, "", "1", &groups[..16].join(";")).is_ok());

    let tsv = |key, groups, part: &str| {
        let error = schema(Format::Tsv, "", key, groups).expect_err(groups);
        assert!(error.contains(part), "{groups}: {error}");
    };
    tsv("1", "hot:a;cold:*", "group hot: there is no header to find column a in; number it from 1");
    tsv("1", "hot:3;cold:4", "column 2 is in no group");
    tsv("4", "hot:1,2", "column 3 is in no group");
    tsv(
        "1",
        "hot:9999999999;cold:*",
        "group hot: there is no column 9999999999: without a header they are numbered up to 1000000",
    );
}

#[test]
fn members_of_the_key_are_in_no_group() {
    let error = schema(Format::Jsonl, "", "id", "hot:a,id;cold:*").expect_err("id is the key");
    assert!(error.starts_with("column id is in the key"), "{error}");
}

#[test]
fn metadata_with_groups_has_a_form_of_its_own() {
    let kept = |format, columns, key, groups, expected: &str| {
        let schema = schema(format, columns, key, groups).expect(groups);
        assert_eq!(String::from_utf8_lossy(&schema.to_metadata()), expected);
        let names = schema.group_names();
        let read = |groups| Schema::from_metadata("t", expected.as_bytes(), groups);
        assert_eq!(read(&names), Ok(Some(schema.clone())));
        for groups in [&[][..], &["warm".to_string()], &[&names[..], &["warm".to_string()]].concat()] {
            let error = read(groups).expect_err("other groups");
            assert!(error.contains("table t is damaged: it describes the groups hot"), "{error}");
        }
        let plain = schema.with_groups_of(Vec::new());
        assert!(String::from_utf8_lossy(&plain.to_metadata()).starts_with(r#"{"larch_rows":1,"#));
    };
    kept(
        Format::Csv,
        "id a b",
        "id",
        "hot:b;cold:*",
        r#"{"larch_rows":2,"format":"csv","columns":["id","a","b"],"key":[{"column":1,"kind":"text"}],"groups":[{"name":"hot","columns":[3]},{"name":"cold","rest":true}]}"#,
    );
    kept(
        Format::Jsonl,
        "",
        "id",
        "hot:b,a",
        r#"{"larch_rows":2,"format":"jsonl","key":[{"column":"id","kind":"text"}],"groups":[{"name":"hot","columns":["a","b"]}]}"#,
    );
}

#[test]
fn metadata_whose_groups_do_not_fit_is_damaged() {
    let check = |form: u32, groups: &str, part: &str| {
        let metadata = format!(
            r#"{{"larch_rows":{form},"format":"csv","columns":["id","a"],"key":[{{"column":1,"kind":"text"}}],"groups":[{groups}]}}"#
        );
        let error = Schema::from_metadata("t", metadata.as_bytes(), &[]).expect_err(&metadata);
        assert!(error.contains("table t is damaged") && error.contains(part), "{metadata}: {error}");
    };
    check(2, "", "form 2 does not fit 0 groups");
    check(1, r#"{"name":"hot","columns":[2]}"#, "form 1 does not fit 1 groups");
    for (groups, part) in [
        (r#"{"name":"","columns":[2]}"#, "a group needs a name"),
        (r#"{"name":"hot"}"#, "must have either columns or *"),
        (r#"{"name":"hot","columns":[2],"rest":true}"#, "must have either columns or *"),
        (r#"{"name":"hot","columns":[1,2]}"#, "in the key"),
        (r#"{"name":"hot","columns":[0,2]}"#, "numbered from 1"),
        (r#"{"name":"hot","columns":[2,3]}"#, "no column 3"),
        (r#"{"name":"hot","columns":["a"]}"#, "a is no column of csv rows"),
        (r#"{"name":"hot","columns":[2]},{"name":"cold","columns":[2]}"#, "in groups hot and cold"),
        (r#"{"name":"hot","columns":[2]},{"name":"hot","rest":true}"#, "two groups hot"),
        (r#"{"name":"hot","rest":true},{"name":"cold","rest":true}"#, "both have *"),
    ] {
        check(2, groups, part);
    }
}

#[test]
fn groups_are_chosen_by_name() {
    let choose = |groups: &[&str], asked: &str| {
        let asked: Vec<String> = asked.split_terminator(',').map(str::to_string).collect();
        choose(&groups.iter().map(ToString::to_string).collect::<Vec<_>>(), &asked)
    };
    assert_eq!(choose(&["a", "b", "c"], ""), Ok(vec![0, 1, 2]));
    assert_eq!(choose(&["a", "b", "c"], "c,a"), Ok(vec![2, 0]));
    assert_eq!(choose(&[], ""), Ok(vec![]));
    let error = |groups, asked| choose(groups, asked).expect_err("a wrong choice");
    assert_eq!(error(&["a", "b"], "a,d"), "the table has no group \"d\"; it has a, b");
    assert_eq!(error(&["a", "b"], "b,b"), "group b is asked for twice; name it once");
    assert_eq!(error(&[], "a"), "the table has no groups of columns; leave --groups out");
}

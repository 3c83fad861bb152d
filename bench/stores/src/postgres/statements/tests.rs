//! Tests of the messages that requests turn into.

use super::*;
use harness::Strings;

fn statement_of(request: &Request<'_>) -> String {
    let statements = Statements::new(&Table::numbered("usertable", "field", 2));
    let mut out = Vec::new();
    statements.put(request, &mut out);
    // 'B', length, portal, name.
    let name = out[6..].split(|byte| *byte == 0).next().expect("split gives one part at least");
    let name = std::str::from_utf8(name).expect("names are numbers");
    let found = statements.all().find(|(number, _)| number == name).map(|(_, sql)| sql.to_owned());
    found.expect("it is prepared")
}

#[test]
fn every_request_has_its_statement() {
    let record: Strings = {
        let mut record = Strings::new();
        record.push(b"a");
        record.push(b"b");
        record
    };
    let (key, all, one) = (b"k".as_slice(), Fields::All, Fields::One(1));
    for (request, sql) in [
        (Request::Read { key, fields: all }, r#"SELECT "field0", "field1" FROM "usertable" WHERE ycsb_key = $1"#),
        (Request::Read { key, fields: one }, r#"SELECT "field1" FROM "usertable" WHERE ycsb_key = $1"#),
        (
            Request::ReadMany { keys: &record, fields: one },
            "SELECT wanted.key, found.* FROM unnest($1::text[]) AS wanted (key) CROSS JOIN LATERAL \
             (SELECT \"field1\" FROM \"usertable\" WHERE ycsb_key = wanted.key LIMIT 1) AS found",
        ),
        (
            Request::Scan { start: key, rows: 3, fields: all },
            r#"SELECT ycsb_key, "field0", "field1" FROM "usertable" WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2"#,
        ),
        (Request::Update { key, field: 1, value: b"v" }, r#"UPDATE "usertable" SET "field1" = $2 WHERE ycsb_key = $1"#),
        (
            Request::Insert { key, record: &record },
            r#"INSERT INTO "usertable" (ycsb_key, "field0", "field1") VALUES ($1, $2, $3)"#,
        ),
        (
            Request::Replace { key, record: &record },
            r#"UPDATE "usertable" SET "field0" = $2, "field1" = $3 WHERE ycsb_key = $1"#,
        ),
        (Request::Delete { key }, r#"DELETE FROM "usertable" WHERE ycsb_key = $1"#),
    ] {
        assert_eq!(statement_of(&request), sql);
    }
}

#[test]
fn names_are_quoted() {
    let statements = Statements::new(&Table { name: "a\"; b".to_owned(), fields: vec!["order".to_owned()] });
    assert_eq!(statements.has_rows(), r#"SELECT EXISTS (SELECT 1 FROM "a""; b")"#);
    assert!(statements.create(&crate::postgres::dialect::POSTGRES).contains(r#""order" text"#));
}

//! Tests the error messages for wrong rows and statements.

use crate::session::Session;
use kit::Scratch;
use larch::{Database, TableOptions};
use rows::Tuple;

#[test]
fn a_damaged_row_is_named_by_table_key_and_column() {
    let scratch = Scratch::new("sql-damaged");
    let database = Database::open(scratch.path()).expect("a database");
    let table = database.table("cities").expect("a table");
    for id in 0..50_u32 {
        let value = if id == 17 { r#"{"people": 300}"# } else { r#"{"people": 30}"# };
        table.insert((id, "x").to_key(), value).expect("it is written");
    }
    let session = Session::new(2, 8);
    session.add("t", &database, &table, "key.tuple(id u32, name string), value.json(people u8)");
    let advice = "correct the row, or declare other columns with CREATE EXTERNAL TABLE";
    let expected =
        format!(r#"External error: table cities, row (17, "x"), column people: "300" is not of type u8; {advice}"#);
    assert_eq!(session.error("SELECT sum(people) FROM t"), expected);
    // All other rows can still be read, and so can the other columns of the bad row.
    assert_eq!(session.rows("SELECT sum(people) FROM t WHERE id <> 17"), ["1470"]);
    assert_eq!(session.rows("SELECT count(*), max(name) FROM t"), ["50|x"]);
    table.insert([0, 0, 0, 99, 7], "{}").expect("it is written");
    let session = Session::new(2, 8);
    session.add("t", &database, &table, "key.tuple(id u32, name string), value.json(people u8)");
    let expected = format!(
        "External error: table cities, row (99) + x'07', column name: string at byte 4: the bytes end within the field; {advice}"
    );
    assert_eq!(session.error("SELECT name FROM t WHERE id = 99"), expected);
}

#[test]
fn a_page_that_cannot_be_read_is_an_error_of_the_engine() {
    let scratch = Scratch::new("sql-page");
    let directory = scratch.path().join("db");
    let database = Database::open(&directory).expect("a database");
    let table = database.table("t").expect("a table");
    for id in 0..5_000_u32 {
        table.insert((id,).to_key(), vec![7; 100]).expect("it is written");
    }
    database.flush().expect("it is flushed");
    database.close().expect("it is closed");
    let files = std::fs::read_dir(&directory).expect("a directory").map(|file| file.expect("a file").path());
    let file = files.max_by_key(|file| file.metadata().map_or(0, |file| file.len())).expect("there are files");
    let mut bytes = std::fs::read(&file).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("it can be written");
    let database = Database::builder(&directory).read_only(true).open().expect("it opens");
    let table = database.existing_table("t").expect("it can be asked").expect("it is there");
    let session = Session::new(2, 1000);
    session.add("t", &database, &table, "key.tuple(id u32), value v bytes");
    let error = session.error("SELECT max(v) FROM t");
    let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
    assert!(error.contains(&name), "{error}");
}

#[test]
fn statements_that_declare_tables_say_what_is_wrong() {
    let scratch = Scratch::new("sql-ddl");
    let database = Database::open(scratch.path()).expect("a database");
    let options = TableOptions { groups: vec!["a".into(), "b".into()], ..TableOptions::default() };
    let table = database.table_with("pairs", options).expect("a table");
    table.insert_parts((7_u32,).to_key(), &["one", "two"]).expect("it is written");
    let session = Session::with_factory(&database);
    let ddl = |location: &str, columns: &str| {
        let columns = columns.replace('\'', "''");
        format!(
            "CREATE OR REPLACE EXTERNAL TABLE p STORED AS LARCH LOCATION '{location}' OPTIONS ('columns' '{columns}')"
        )
    };
    session.batches(&ddl("pairs", "key.tuple(id u32), value x string, part(1) y string")).expect("it is declared");
    assert_eq!(session.rows("SELECT id, y, x FROM p"), ["7|two|one"]);
    session.batches("CREATE EXTERNAL TABLE q STORED AS LARCH LOCATION 'pairs'").expect("it is declared");
    assert_eq!(session.rows("SELECT * FROM q"), ["00000007|6f6e65|74776f"]);

    let error = session.error(&ddl("pears", "key k bytes"));
    assert!(error.contains("the database has no table pears; it has pairs"), "{error}");
    let error = session.error(&ddl("pairs", "key k u8"));
    assert!(error.contains("key: bytes without an end are string or bytes"), "{error}");
    let error = session.error(&ddl("pairs", "part(2) k bytes"));
    assert!(
        error.contains("table pairs has 2 column groups (a, b), from part(0) on, so there is no part(2)"),
        "{error}"
    );
    let error = session.error("CREATE EXTERNAL TABLE r (k BYTEA) STORED AS LARCH LOCATION 'pairs'");
    assert!(error.contains("the columns of r are not listed in brackets"), "{error}");
    let error =
        session.error("CREATE EXTERNAL TABLE r STORED AS LARCH LOCATION 'pairs' OPTIONS ('colums' 'key k bytes')");
    assert!(error.contains("a table of Larch has no option colums"), "{error}");
    let error = session.error("INSERT INTO q VALUES ('a', 'b', 'c')");
    assert!(error.contains("Insert into not implemented for this table"), "{error}");
}

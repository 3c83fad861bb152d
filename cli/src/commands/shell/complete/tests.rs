use super::Helper;
use crate::args;
use crate::commands::shell::line::Lines;
use clap::Parser as _;
use kit::Scratch;
use std::path::Path;

/// Checks what is offered at the end of a line, about a database with three tables.
fn check(line: &str, expected: Option<&[&str]>) {
    let scratch = Scratch::new("shell");
    let database = larch::Database::open(scratch.join("db")).expect("a test can make a database");
    let people = database.table("people").expect("there is room");
    for key in ["ada", "alan", "grace hopper"] {
        people.insert(key, "1").expect("there is room");
    }
    database.table("places").expect("there is room");
    database.table("notes").expect("there is room");
    database.close().expect("there is room");
    let common = args::Cli::parse_from(["larch", "tables", "db"]).common;
    let commands = Lines::new("larch".into(), Path::new("db")).commands().clone();
    let helper = Helper::new(&scratch.join("db"), &common, commands);
    let found = helper.complete_end(line).map(|(start, found)| {
        let texts = found.into_iter().map(|text| String::from_utf8(text).expect("text"));
        (start, texts.collect::<Vec<_>>())
    });
    let expected = expected.map(|expected| expected.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    assert_eq!(found.map(|(_, texts)| texts), expected, "{line}");
}

#[test]
fn commands_tables_keys_and_options_are_completed_where_they_stand() {
    check("sp", Some(&["split", "split-off"]));
    check(".", Some(&[".help", ".quit"]));
    check("index c", Some(&["check", "create"]));
    check("get p", Some(&["people", "places"]));
    check("get ", Some(&["notes", "people", "places"]));
    check("get people a", Some(&["ada", "alan"]));
    check("get people 'gr", Some(&["grace hopper"]));
    check("scan people --prefix al", Some(&["alan"]));
    check("explain people get ad", Some(&["ada"]));
    check("explain people s", Some(&["scan"]));
    check("scan people --rev", Some(&["--reverse"]));
    check("scan people --format j", Some(&["jsonl"]));
    check("scan people | so", Some(&[]));
    check("SELECT * FROM peo", Some(&["people"]));
    check("put places ", Some(&[]));
    check("nonsense ", Some(&[]));
    check("load people < ro", None);
    check("import people ro", None);
}

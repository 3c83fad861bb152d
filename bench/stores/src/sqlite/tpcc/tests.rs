use super::SCHEME;
use ::tpcc::conformance::conforms;
use ::tpcc::{Form, Setup};
use harness::conformance::Scratch;
use harness::{Opening, Target};
use rusqlite::Connection;

fn check(options: &str) {
    let scratch = Scratch::new("sqlite-tpcc");
    let text = format!("sqlite:{}{options}", scratch.path().join("file").display());
    let target = Target::parse(&text).expect("it is a target");
    conforms(&|setup| (SCHEME.open)(&target, setup).unwrap_or_else(|failure| panic!("{failure}")));
}

#[test]
fn it_conforms_synced() {
    check("?durability=synced&cache=64MiB");
}

#[test]
fn it_conforms_buffered_with_little_memory() {
    check("?durability=buffered&cache=2MiB&log=1MiB&page=8KiB&mmap=64MiB");
}

#[test]
fn it_conforms_when_transactions_share_commits() {
    check("?group=4&cache=64MiB");
}

#[test]
fn tables_of_others_are_neither_taken_nor_removed() {
    let scratch = Scratch::new("sqlite-tpcc-others");
    let path = scratch.path().join("file");
    let others = Connection::open(&path).expect("a new file");
    others.execute_batch("CREATE TABLE stock (item); INSERT INTO stock VALUES (1)").expect("a table");
    let target = Target::parse(&format!("sqlite:{}", path.display())).expect("it is a target");
    let setup = Setup { opening: Opening::OrCreate, connections: None };
    let database = (SCHEME.open)(&target, &setup).unwrap_or_else(|failure| panic!("{failure}"));
    let form = Form { warehouses: 1, seed: 1, loaded: 1 };
    let refused = database.create(&form).expect_err("there is a table of this name");
    assert_eq!(refused.kind, "other_tables", "{refused}");
    assert_eq!(database.clean().expect_err("nothing was made").kind, "no_store");
    others.execute_batch("ALTER TABLE stock RENAME TO mine").expect("another name");
    database.create(&form).expect("no name is taken");
    database.clean().expect("what was made is removed");
    let names: String = others
        .query_row("SELECT group_concat(name) FROM sqlite_schema", [], |row| row.get(0))
        .expect("there is a table");
    assert_eq!(names, "mine");
}

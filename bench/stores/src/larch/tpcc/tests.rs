use super::SCHEME;
use ::tpcc::conformance::conforms;
use ::tpcc::{Form, Setup, about};
use harness::conformance::Scratch;
use harness::{Opening, Target};

#[test]
fn larch_conforms() {
    for options in
        ["?durability=synced&cache=64MiB&write_buffer=4MiB", "?durability=buffered&cache=2MiB&write_buffer=2MiB"]
    {
        let scratch = Scratch::new("larch-tpcc");
        let text = format!("larch:{}{options}", scratch.path().join("db").display());
        let target = Target::parse(&text).expect("it is a target");
        conforms(&|setup| (SCHEME.open)(&target, setup).unwrap_or_else(|failure| panic!("{failure}")));
    }
}

#[test]
fn tables_of_others_are_neither_taken_nor_removed_and_half_a_database_is() {
    let scratch = Scratch::new("larch-tpcc-others");
    let place = scratch.path().join("db");
    let names = || larch::Database::open(&place).expect("it is closed").tables();
    let form = Form { warehouses: 1, seed: 1, loaded: 1 };
    let open = |opening| {
        let target = Target::parse(&format!("larch:{}", place.display())).expect("it is a target");
        (SCHEME.open)(&target, &Setup { opening, connections: None }).unwrap_or_else(|failure| panic!("{failure}"))
    };
    {
        let db = larch::Database::open(&place).expect("a new directory");
        db.table("stock").and_then(|stock| stock.insert("a", "1")).expect("a table");
        db.close().expect("it ends in good order");
    }
    let database = open(Opening::OrCreate);
    assert_eq!(database.create(&form).expect_err("there is a table of this name").kind, "other_tables");
    assert_eq!(database.clean().expect_err("nothing was made").kind, "no_store");
    database.close().expect("it ends in good order");
    assert!(names().contains(&"stock".to_owned()), "{:?}", names());

    // What a crash in the middle of `create` leaves behind: the form and some of the tables.
    {
        let db = larch::Database::open(&place).expect("it is closed");
        db.drop_table("stock").expect("it is there");
        let about = db.table(about::TABLE).expect("a table");
        about.insert(about::form_key(), about::encode_form(&form)).expect("there is room");
        db.table("warehouse").and_then(|table| table.insert("a", "1")).expect("a table");
        db.table("mine").expect("a table");
        db.close().expect("it ends in good order");
    }
    let database = open(Opening::Existing);
    database.clean().expect("what was made is removed");
    database.close().expect("it ends in good order");
    assert_eq!(names(), ["mine", about::TABLE]);
}

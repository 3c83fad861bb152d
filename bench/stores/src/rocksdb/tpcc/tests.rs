use super::{Db, SCHEME};
use ::tpcc::conformance::conforms;
use ::tpcc::{Form, Setup};
use harness::conformance::Scratch;
use harness::{Opening, Target};
use rocksdb::Options;

fn check(options: &str) {
    let scratch = Scratch::new("rocksdb-tpcc");
    let text = format!("rocksdb:{}{options}", scratch.path().join("db").display());
    let target = Target::parse(&text).expect("it is a target");
    conforms(&|setup| (SCHEME.open)(&target, setup).unwrap_or_else(|failure| panic!("{failure}")));
}

#[test]
fn it_conforms_synced() {
    check("?durability=synced&cache=64MiB");
}

#[test]
fn it_conforms_buffered_with_little_memory() {
    check("?durability=buffered&cache=4MiB&write_buffer=4MiB&page=4KiB&filter_bits=0&compression=lz4&statistics=1");
}

#[test]
fn what_a_crash_left_half_made_is_removed() {
    let scratch = Scratch::new("rocksdb-tpcc-half");
    let place = scratch.path().join("db");
    let target = Target::parse(&format!("rocksdb:{}", place.display())).expect("it is a target");
    let open = |opening| {
        let setup = Setup { opening, connections: None };
        (SCHEME.open)(&target, &setup).unwrap_or_else(|failure| panic!("{failure}"))
    };
    let form = Form { warehouses: 1, seed: 1, loaded: 1 };
    let database = open(Opening::OrCreate);
    assert_eq!(database.clean().expect_err("nothing was made").kind, "no_store");
    database.create(&form).expect("it can be made");
    database.close().expect("it closes");

    let (options, data) = (Options::default(), place.join("data"));
    let known = || Db::list_cf(&options, &data).expect("they are in a file");
    let db = Db::open_cf(&options, &data, known()).expect("it is a database");
    db.drop_cf("stock").expect("it is there");
    drop(db);

    let database = open(Opening::Existing);
    database.clean().expect("the rest is removed");
    assert_eq!(database.form().expect("it can be asked"), None);
    database.create(&form).expect("no name is taken");
    database.clean().expect("it can be cleaned");
    database.close().expect("it closes");
    assert_eq!(known(), ["default"]);
}

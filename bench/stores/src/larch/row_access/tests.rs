//! Tests that are specific to Larch. The tests of `row_access` check what every database promises.

use super::*;
use ::row_access::{SetupParameters, conformance};
use kit::Scratch;
use std::sync::atomic::AtomicBool;

#[test]
fn it_keeps_the_promises_of_every_database() {
    let directory = Scratch::new("row-access");
    conformance::check(&SCHEME, &format!("larch:{}", directory.join("db").display()));
}

#[test]
fn rows_are_scattered_and_an_index_leads_to_them() {
    let directory = Scratch::new("row-access");
    let target = Target::parse(&format!("larch:{}", directory.join("db").display())).expect("a good target");
    let database = open(&target, Opening::OrCreate).expect("it opens");
    let parameters = SetupParameters { tab_rows: 1000, ..SetupParameters::default() };
    let never = AtomicBool::new(false);
    ::row_access::setup::setup(&*database, &parameters, false, 1, &never, &|_| {}).expect("it loads");
    let access = Access { table: "bench0001".to_owned(), prepared: true, index_only: false };
    let path = database.access_path(&access, Statement::Read, 1, 100).expect("it explains");
    assert!(path.starts_with("entries of the index") && path.contains("rows of the table"), "{path}");
    let access = Access { index_only: true, ..access };
    let path = database.access_path(&access, Statement::Read, 1, 100).expect("it explains");
    assert!(path.starts_with("entries of the index alone") && !path.contains("rows of the table"), "{path}");
    database.close().expect("it closes");

    let db = Database::builder(directory.join("db")).extractors(extractors::of).open().expect("it opens");
    let table = db.existing_table("bench0001").expect("it reads").expect("it was made");
    let keys = table.iter().map(|row| decoded(&row.expect("it reads").1).expect("it is ours").0);
    assert!(!keys.collect::<Vec<_>>().is_sorted(), "rows do not lie in the order of mykey");
    assert!(
        table.index("bench0001_asc_mykey").expect("it was made").check(|_| {}).expect("it reads").problems.is_empty()
    );
}

#[test]
fn a_table_of_another_form_is_not_added_to() {
    let directory = Scratch::new("row-access");
    let target = Target::parse(&format!("larch:{}", directory.join("db").display())).expect("a good target");
    let database = open(&target, Opening::OrCreate).expect("it opens");
    let parameters = SetupParameters { tab_rows: 10, tab_tablets: 3, ..SetupParameters::default() };
    let form = parameters.form();
    let notes = database.create(&form, true).expect("it is made");
    assert_eq!(notes, ["tab_tablets has no effect: Larch has no tablets"]);
    let batch = Batch::new(1, 1, &(1..=10), 10, 1);
    database.loader(&form, &Order::Made).expect("it is there").insert(&batch).expect("it writes");
    let other = TableForm { index_as_pk: true, ..form };
    let failure = database.create(&other, false).expect_err("the table has an index");
    assert!(failure.text.contains("index_as_pk=>false"), "{failure}");
}

//! Tests of partitions on a real server.

use super::*;
use crate::postgres::server::tests::shared;

fn target(database: &str) -> String {
    shared().connect().expect("it runs").query(&format!("CREATE DATABASE {database}")).expect("the superuser may");
    format!("{}&synchronous_commit=off", shared().url(database))
}

#[test]
fn it_keeps_the_promises_of_every_database() {
    ::kv::conformance::check(&SCHEME, &target("partitions"));
}

#[test]
fn other_dialects_keep_them_on_this_server() {
    for (scheme, database) in [(COCKROACH, "partitions_cockroach"), (YUGABYTE, "partitions_yugabyte")] {
        ::kv::conformance::check(&scheme, &target(database).replace("postgres:", &format!("{}:", scheme.name)));
    }
}

#[test]
fn what_the_server_uses_is_known_and_is_not_this_process() {
    let database = (SCHEME.open)(&Target::parse(&target("partitions_used")).expect("a good target"), &Setup::default());
    let database = database.expect("it runs");
    assert!(matches!(database.used(), StoreUse::Server(used) if used.nanos > 0), "{:?}", database.used());
}

#[test]
fn a_table_that_was_made_otherwise_is_named() {
    let target = target("partitions_of_another");
    let control = Connection::open(&Address::from_environment(&target).expect("a good address"));
    control.expect("it runs").query("CREATE TABLE test (id bigint)").expect("it is made");
    let target = Target::parse(&target).expect("a good target");
    let failure = (SCHEME.open)(&target, &Setup::default()).err().expect("the table has other columns");
    assert!(failure.text.contains("-table") && failure.text.contains("test"), "{failure}");
}

#[test]
fn the_parts_of_a_scan_are_of_equal_width() {
    let statements = Statements::new(&Setup::default());
    *statements.bounds.write().expect("it is not poisoned") = Some((0, 99));
    let parts: Vec<(i64, i64)> = (0..4).map(|part| statements.part(part, 4)).collect();
    assert_eq!(parts, [(i64::MIN, 24), (25, 49), (50, 74), (75, i64::MAX)]);
    *statements.bounds.write().expect("it is not poisoned") = Some((i64::MIN, i64::MAX));
    let parts: Vec<(i64, i64)> = (0..3).map(|part| statements.part(part, 3)).collect();
    assert!(parts.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{parts:?}");
}

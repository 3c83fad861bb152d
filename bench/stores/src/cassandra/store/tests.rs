//! Tests that the store keeps the key-value driver's promises on a real server, and refuses wrong options.

use super::*;
use crate::cassandra::server::ServerOptions;
use crate::cassandra::server::tests::shared;
use kv::Content;

fn target(text: &str) -> Target {
    Target::parse(text).expect("a good target")
}

#[test]
fn cassandra_keeps_the_promises_of_the_driver() {
    kv::conformance::check(&PARTITIONS, &format!("cassandra://{}/conformance", shared().address()));
}

#[test]
fn rows_without_partitions_are_refused_with_the_reason() {
    let table = harness::Table::numbered("usertable", "field", 10);
    let refused = (SCHEME.open)(&target("cassandra:start"), &table, harness::Opening::OrCreate);
    let failure = refused.err().expect("its rows lie in partitions");
    assert!(failure.text.contains("which only `larch bench kv` has"), "{failure}");
}

#[test]
fn settings_are_those_of_the_server() {
    let setup = Setup { table: "Settings".to_owned(), ..Setup::default() };
    let address = format!("cassandra://{}?compression=lz4", shared().address());
    let database = Cassandra::open(&target(&address), &setup).unwrap_or_else(|failure| panic!("{failure}"));
    let of = |name| database.settings().into_iter().find(|setting| setting.name == name).expect(name).value;
    assert_eq!(of("engine"), format!("Cassandra {}", crate::cassandra::server::VERSION));
    assert_eq!(of("durability"), "buffered: commit log written, synced every 10000ms");
    assert_eq!(of("compression"), "lz4");
    assert_eq!(of("copies"), "1, consistency level quorum");
    assert_eq!(database.used(), StoreUse::Unknown, "the server is another's");
    assert!(matches!(shared().used(), StoreUse::Server(used) if used.nanos > 0), "{:?}", shared().used());
    database.drop_table().unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_table_of_other_columns_is_refused() {
    let address = target(&format!("cassandra://{}", shared().address()));
    let values = Setup { table: "columns".to_owned(), ..Setup::default() };
    let database = Cassandra::open(&address, &values).unwrap_or_else(|failure| panic!("{failure}"));
    let counters = Setup { content: Content::Counters, ..values };
    let failure = Cassandra::open(&address, &counters).err().expect("its columns are others");
    assert!(failure.text.contains("table `columns` of keyspace `scylla_bench` is not one of this driver"), "{failure}");
    database.drop_table().unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn wrong_options_are_refused_before_a_server_is_started() {
    let with = |server| Setup { server, ..Setup::default() };
    let policy = |name: &str| kv::ServerOptions { host_selection_policy: Some(name.to_owned()), ..Default::default() };
    let level = |name: &str| kv::ServerOptions { consistency_level: Some(name.to_owned()), ..Default::default() };
    for (address, setup, said) in [
        ("cassandra:start", with(policy("host-pool")), "write token-aware or round-robin"),
        ("cassandra:start", with(level("most")), "write one of any, one,"),
        ("cassandra:start", Setup { keyspace: "a b".to_owned(), ..Setup::default() }, "a name of Cassandra is"),
        ("cassandra://h/a", Setup { keyspace: "b".to_owned(), ..Setup::default() }, "names another keyspace than `b`"),
    ] {
        let failure = Cassandra::open(&target(address), &setup).err().expect(said);
        assert!(failure.text.contains(said), "{failure}");
        assert_eq!(failure.kind, "target");
    }
    assert_eq!(consistency("LOCAL-QUORUM").ok(), consistency("localquorum").ok());
}

#[test]
fn a_server_that_is_gone_ends_a_request_and_not_the_process() {
    let server = Server::start(&ServerOptions { heap_mib: 384, ..ServerOptions::default() });
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let setup = Setup { timeout: Duration::from_secs(2), ..Setup::default() };
    let database = Cassandra::open(&target(&format!("cassandra://{}", server.address())), &setup);
    let database = database.unwrap_or_else(|failure| panic!("{failure}"));
    let session = database.session(Clock::start()).unwrap_or_else(|failure| panic!("{failure}"));
    let Session::Flights(mut flights) = session else { panic!("it has many requests under way") };
    server.kill().expect("it runs");
    let read = harness::PartitionRequest::Read { pk: 1, rows: harness::PartitionRows::First { limit: 1 }, order: None };
    flights.start(0, &harness::Request::Partition(read)).unwrap_or_else(|failure| panic!("{failure}"));
    let mut failed = None;
    while failed.is_none() {
        flights.wait(None, &mut |served| failed = served.result.err()).unwrap_or_else(|failure| panic!("{failure}"));
    }
    let failure = failed.expect("nobody answered");
    assert_eq!(failure.harm, harness::Harm::Again, "{failure}");
}

#[test]
fn data_of_a_directory_are_there_when_its_server_is_started_again() {
    let scratch = kit::Scratch::new("cassandra-kept");
    let address = target(&format!("cassandra:{}?heap=384MiB", scratch.path().display()));
    let values = {
        let mut values = harness::Strings::new();
        values.push(b"kept");
        values
    };
    for is_again in [false, true] {
        let database = Cassandra::open(&address, &Setup::default()).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(!is_again, database.is_empty().unwrap_or_else(|failure| panic!("{failure}")));
        if !is_again {
            let session = database.session(Clock::start()).unwrap_or_else(|failure| panic!("{failure}"));
            let Session::Flights(mut flights) = session else { panic!("it has many requests under way") };
            let insert = harness::PartitionRequest::Insert { pk: 1, cks: &[2], values: &values };
            flights.start(0, &harness::Request::Partition(insert)).unwrap_or_else(|failure| panic!("{failure}"));
            let mut done = false;
            while !done {
                flights
                    .wait(None, &mut |served| done = served.result.is_ok())
                    .unwrap_or_else(|failure| panic!("{failure}"));
            }
        }
    }
}

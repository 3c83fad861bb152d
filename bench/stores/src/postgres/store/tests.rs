//! Tests of the store on a real server: opening, loading, settling, settings and counters.

use super::*;
use crate::postgres::server::tests::{shared, start};
use harness::{Harm, Reply, Request, Strings};
use std::path::Path;

fn table(name: &str, fields: usize) -> Table {
    Table::numbered(name, "field", fields)
}

/// The store of a table for one test, on the shared server.
fn open_at(url: &str, table: &Table, opening: Opening) -> Result<Postgres, Failure> {
    Postgres::open(Address::parse(url, |_| None).expect("a good address"), table, opening)
}

fn fresh(name: &str, fields: usize) -> Postgres {
    open_at(&shared().url("postgres"), &table(name, fields), Opening::Recreate).expect("the server runs")
}

fn failure_of<T>(result: Result<T, Failure>) -> Failure {
    result.err().expect("it fails")
}

fn loader(store: &Postgres) -> Box<dyn harness::Blocking + '_> {
    match store.loader(Clock::start()).expect("the server runs") {
        Session::Blocking(loader) => loader,
        Session::Flights(_) => panic!("a loader has one thing to do"),
    }
}

fn record(values: &[&[u8]]) -> Strings {
    let mut record = Strings::new();
    values.iter().for_each(|value| record.push(value));
    record
}

fn count(store: &Postgres) -> String {
    let sql = format!("SELECT count(*) FROM {}", store.statements.table());
    store.control().value(&sql).expect("it is counted")
}

#[test]
fn it_keeps_the_promises_of_every_store() {
    for (database, more) in [
        ("plain", ""),
        ("many", "&connections=2&pipeline=3"),
        ("strict", "&default_transaction_isolation=serializable"),
    ] {
        shared().connect().expect("it runs").query(&format!("CREATE DATABASE {database}")).expect("the superuser may");
        let target = format!("{}&synchronous_commit=off{more}", shared().url(database));
        harness::conformance::check(&SCHEME, &target, harness::conformance::Content::Text);
    }
}

/// What the dialects leave out of SQL is left out here, too. Nothing of this shows that those servers work.
#[test]
fn other_dialects_keep_them_on_this_server() {
    for scheme in [COCKROACH, YUGABYTE] {
        let create = format!("CREATE DATABASE {} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'", scheme.name);
        shared().connect().expect("it runs").query(&create).expect("the superuser may");
        let target = shared().url(scheme.name).replace("postgres:", &format!("{}:", scheme.name));
        let target = format!("{target}&synchronous_commit=off");
        harness::conformance::check(&scheme, &target, harness::conformance::Content::Text);
        let target = Target::parse(&target).expect("a good target");
        let store = (scheme.open)(&target, &table("t", 1), Opening::Recreate).expect("it is made");
        let engine = store.settings().swap_remove(0).value;
        assert!(engine.to_lowercase().starts_with(scheme.name), "{engine}");
    }
}

#[test]
fn a_table_is_made_when_it_is_not_there_and_emptied_when_asked() {
    let url = shared().url("postgres");
    let one = table("opened", 2);
    let error = failure_of(open_at(&url, &one, Opening::Existing));
    assert_eq!((error.kind, error.harm), ("undefined_table", Harm::Request));
    assert!(error.text.contains("`opened`") && error.text.contains("load it first"), "{error}");

    let store = open_at(&url, &one, Opening::OrCreate).expect("it is made");
    assert!(store.is_empty().expect("it is there"));
    let mut loader = loader(&store);
    let row = record(&[b"a", b"b"]);
    loader.call(&Request::Insert { key: b"k", record: &row }, &mut Reply::new()).expect("it is gathered");
    loader.finish().expect("it is written");
    drop(loader);
    assert!(!store.is_empty().expect("it is there"));
    let again = open_at(&url, &one, Opening::OrCreate).expect("it is there");
    assert!(!again.is_empty().expect("it is there"));

    let error = failure_of(open_at(&url, &table("opened", 3), Opening::Existing));
    assert!(error.kind == "undefined_column" && error.text.contains("--recreate"), "{error}");
    let emptied = open_at(&url, &one, Opening::Recreate).expect("it is made anew");
    assert!(emptied.is_empty().expect("it is there"));
}

#[test]
fn a_user_without_rights_is_told_which() {
    let ann = shared().loopback_url("ann:pa%25ss", "postgres");
    let error = failure_of(open_at(&ann, &table("of_ann", 1), Opening::OrCreate));
    assert!(error.kind == "insufficient_privilege" && error.text.contains("grant"), "{error}");
    let error = failure_of(open_at(&shared().url("nowhere"), &table("t", 1), Opening::OrCreate));
    assert!(error.kind == "invalid_catalog_name" && error.text.contains("createdb"), "{error}");
    assert_eq!(error.harm, Harm::Session);
}

#[test]
fn a_hundred_thousand_rows_are_loaded_in_batches() {
    let store = fresh("batches", 2);
    let mut loader = loader(&store);
    let mut reply = Reply::new();
    let value = [b'v'; 40];
    for number in 0..100_000_u32 {
        let key = format!("user{number:06}");
        let row = record(&[&value, key.as_bytes()]);
        let outcome = loader.call(&Request::Insert { key: key.as_bytes(), record: &row }, &mut reply);
        assert_eq!(outcome.expect("no batch fails"), harness::Outcome::Batched);
    }
    loader.finish().expect("no batch fails");
    assert_eq!(count(&store), "100000");
    let right = "SELECT count(*) FROM batches WHERE field1 = ycsb_key AND length(field0) = 40";
    assert_eq!(store.control().value(right).expect("it is counted"), "100000");
}

#[test]
fn a_batch_that_fails_says_how_many_rows_it_cost_and_is_the_end_of_a_load() {
    let store = fresh("failing_batches", 1);
    let mut loader = loader(&store);
    let mut reply = Reply::new();
    let value = vec![b'v'; 100_000];
    let row = record(&[&value]);
    let mut failures = Vec::new();
    // Eleven rows fill a batch. The second batch repeats a key of the first.
    for key in (0..11).chain([3]).chain(11..50) {
        let key = format!("{key:03}");
        if let Err(failure) = loader.call(&Request::Insert { key: key.as_bytes(), record: &row }, &mut reply) {
            failures.push(failure);
        }
    }
    loader.finish().expect("the other batches are written");
    let [failure] = failures.as_slice() else { panic!("one batch fails: {failures:?}") };
    assert_eq!((failure.kind, failure.harm), ("unique_violation", Harm::Session));
    assert!(failure.text.starts_with("a batch of 11 rows was not written"), "{failure}");
    assert_eq!(count(&store), (51 - 11).to_string());
    let not_insert = loader.call(&Request::Delete { key: b"k" }, &mut reply);
    assert_eq!(failure_of(not_insert).kind, "not_an_insert");
}

struct Count {
    next: u32,
    end: u32,
    value: Vec<u8>,
}

impl Rows for Count {
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
        key.clear();
        key.extend_from_slice(format!("{:06}", self.next).as_bytes());
        record.clear();
        record.push(&self.value);
        self.next += 1;
        self.next <= self.end
    }
}

#[test]
fn a_bulk_load_is_all_or_nothing() {
    let store = fresh("bulk", 1);
    let rows = store.bulk_load(&mut Count { next: 0, end: 20_000, value: b"value".to_vec() });
    assert_eq!(rows.expect("it fits"), Some(20_000));
    assert_eq!(count(&store), "20000");
    let error = failure_of(store.bulk_load(&mut Count { next: 19_990, end: 60_000, value: vec![b'x'; 100] }));
    assert_eq!(error.kind, "unique_violation");
    assert_eq!(count(&store), "20000");
}

#[test]
fn a_store_says_how_the_server_is_set() {
    let store = fresh("set", 1);
    let settings = store.settings();
    let value = |name: &str| {
        let setting = settings.iter().find(|setting| setting.name == name);
        setting.unwrap_or_else(|| panic!("no setting {name}")).value.as_str()
    };
    assert!(value("engine").starts_with("PostgreSQL "), "{}", value("engine"));
    assert!(value("durability").contains("synchronous_commit on"), "{}", value("durability"));
    assert!(value("cache").contains("shared_buffers"), "{}", value("cache"));
    assert_eq!(value("page size"), "8192 bytes");
    assert_eq!(value("key order"), "bytes");
    assert_eq!(value("isolation"), "read committed");

    let url = format!("{}&synchronous_commit=off&connections=7", shared().url("postgres"));
    let store = open_at(&url, &table("set", 1), Opening::Existing).expect("it is there");
    let durability = &store.settings()[1].value;
    assert!(durability.starts_with("buffered"), "{durability}");
    assert!(store.settings().iter().any(|setting| setting.value.contains("7 connections")));
}

#[test]
fn a_table_of_another_program_shows_its_order_of_keys() {
    let url = shared().url("postgres");
    let sql = "DROP TABLE IF EXISTS theirs; CREATE TABLE theirs (YCSB_KEY VARCHAR(255) PRIMARY KEY, FIELD0 TEXT)";
    shared().connect().expect("it runs").query(sql).expect("it is SQL");
    let store = open_at(&url, &table("theirs", 1), Opening::Existing).expect("it is as ours");
    let order = store.settings().into_iter().find(|setting| setting.name == "key order").map(|setting| setting.value);
    assert_eq!(order.as_deref(), Some("of the database: C"));
}

#[test]
fn counters_count_what_was_done_since_the_store_was_opened() {
    let server = start(&[], None);
    let store = open_at(&server.url("postgres"), &table("counted", 1), Opening::Recreate).expect("it runs");
    let rows = store.bulk_load(&mut Count { next: 0, end: 5_000, value: vec![b'x'; 100] });
    assert_eq!(rows.expect("it fits"), Some(5_000));
    store.settle().expect("the superuser may");
    // The loading session has ended, and a session reports its work at its end.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'larch bench'";
    while store.control().value(sessions).expect("it is counted") != "1" {}
    let counters = store.counters();
    let value = |name: &str| {
        let counter = counters.iter().find(|counter| counter.name == name);
        counter.unwrap_or_else(|| panic!("no counter {name}: {counters:?}")).value
    };
    assert_eq!(value("rows inserted"), 5_000);
    assert!(value("log bytes written") > 500_000, "{counters:?}");
    assert!(value("bytes on disk") > 500_000, "{counters:?}");
    // The server reports the writes of its background processes some time later.
    value("bytes written");
    assert!(value("cache hits") > 0 && value("commits") > 0, "{counters:?}");
}

#[test]
fn what_a_server_of_this_machine_uses_is_counted_and_of_another_is_not_known() {
    let server = start(&[], None);
    let store = open_at(&server.url("postgres"), &table("used", 1), Opening::Recreate).expect("it runs");
    let before = store.used();
    // The query takes some hundred milliseconds of processor time, mostly in a process that has ended when its time
    // is read.
    let work = "SELECT sum(i) FROM generate_series(1, 2000000) AS i";
    let mut connection = server.connect().expect("it runs");
    connection.value(work).expect("it is SQL");
    let process = connection.value("SELECT pg_backend_pid()").expect("it is SQL");
    drop(connection);
    while Path::new(&format!("/proc/{process}")).exists() {
        std::thread::yield_now();
    }
    let StoreUse::Server(used) = store.used().since(before) else { panic!("it is on this machine") };
    assert!(used.nanos >= 20_000_000, "{used:?}");

    let mut away = Address::parse("postgres://me@192.0.2.1/bench", |_| None).expect("a good address");
    assert_eq!(first_process(&mut store.control(), &away), None, "another machine has other processes");
    away.place = Place::Tcp { host: "127.0.0.1".to_owned(), port: 5432 };
    assert_eq!(first_process(&mut store.control(), &away), store.server);
}

#[test]
fn the_scheme_opens_what_its_address_says() {
    let target = Target::parse(&shared().url("postgres")).expect("a target");
    let store = (SCHEME.open)(&target, &table("by_scheme", 1), Opening::Recreate).expect("it runs");
    assert!(store.is_empty().expect("it is there"));
    let Session::Flights(session) = store.session(Clock::start()).expect("it runs") else { panic!("it has flights") };
    assert_eq!(session.depth(), 1);
    drop(session);
    store.settle().expect("the superuser may");
    store.close().expect("nothing is left to do");

    let target = Target::parse("postgres://u@h/d?connections=0").expect("a target");
    let error = (SCHEME.open)(&target, &table("t", 1), Opening::Existing).err().expect("it is no number of them");
    assert!(error.kind == "target" && error.text.contains("connections=0"), "{error}");
}

use super::*;
use crate::redis::server;
use crate::redis::server::tests::shared;
use harness::conformance::{Content, check};

#[test]
fn redis_conforms() {
    for target in [shared().target(0), format!("{}?pipeline=16", shared().target(1))] {
        check(&SCHEME, &target, Content::Bytes);
    }
}

fn opened(target: &str, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    (SCHEME.open)(&Target::parse(target).expect("a good target"), table, opening)
}

fn refused(target: &str, table: &Table, opening: Opening) -> Failure {
    opened(target, table, opening).map(|_| ()).expect_err("it should have been refused")
}

fn kind_of(target: &str, table: &Table, opening: Opening) -> &'static str {
    refused(target, table, opening).kind
}

#[test]
fn a_table_that_is_not_there_or_has_other_fields_is_refused() {
    let target = shared().target(2);
    let (five, six) = (Table::numbered("t", "f", 5), Table::numbered("t", "f", 6));
    assert_eq!(kind_of(&target, &five, Opening::Existing), "no_store");
    opened(&target, &five, Opening::OrCreate).expect("it is made").close().expect("it closes");
    opened(&target, &five, Opening::Existing).expect("it is there, without rows").close().expect("it closes");
    assert_eq!(kind_of(&target, &six, Opening::Existing), "other_fields");
    assert_eq!(kind_of(&target, &six, Opening::OrCreate), "other_fields");
    opened(&target, &six, Opening::Recreate).expect("it is made anew").close().expect("it closes");
}

#[test]
fn other_tables_and_keys_stay_when_a_table_is_made_anew() {
    let target = shared().target(3);
    let address = Address::parse(&Target::parse(&target).expect("a good target")).expect("a good address");
    let mut others = Connection::open(&address).expect("the server is there");
    others.done(&[b"SET", b"letter", b"dear"]).expect("there is room");
    let store = opened(&target, &Table::numbered("t", "f", 1), Opening::OrCreate).expect("it is made");
    let Session::Flights(mut session) = store.loader(Clock::start()).expect("a session") else { panic!("no flights") };
    let mut record = Strings::new();
    record.push(b"v");
    for number in 0..2500_u32 {
        session.start(0, &Request::Insert { key: &number.to_be_bytes(), record: &record }).expect("it is taken");
        session
            .wait(None, &mut |served| assert!(served.result.is_ok(), "{:?}", served.result))
            .expect("it is answered");
    }
    drop(session);
    drop(store);
    // The mark, the sorted set, the rows, and the letter.
    assert_eq!(others.number(&[b"DBSIZE"]).expect("it counts"), 2503);
    opened(&target, &Table::numbered("t", "f", 1), Opening::Recreate).expect("it is made anew");
    assert_eq!(others.number(&[b"DBSIZE"]).expect("it counts"), 2);
    assert_eq!(others.number(&[b"EXISTS", b"letter"]).expect("it looks"), 1);
}

#[test]
fn a_server_that_wants_a_password_gets_it() {
    let server = server::Server::start(&[("requirepass", "secret")]).unwrap_or_else(|why| panic!("{why}"));
    let table = Table::numbered("t", "f", 1);
    let without = refused(&server.target(0), &table, Opening::OrCreate);
    assert_eq!(without.kind, "refused", "{without}");
    let with = server.target(0).replace("redis://", "redis://:secret@");
    let store = opened(&with, &table, Opening::OrCreate).expect("it is let in");
    assert!(!format!("{:?}", store.settings()).contains("secret"));
    let wrong = refused(&server.target(0).replace("redis://", "redis://:other@"), &table, Opening::OrCreate);
    assert_eq!(wrong.kind, "refused", "{wrong}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let why = refused("redis://127.0.0.1:1", &Table::numbered("t", "f", 1), Opening::OrCreate);
    assert!(why.kind == "connection" && why.text.contains("127.0.0.1:1"), "{why}");
}

#[test]
fn the_server_is_measured_and_says_how_it_is_set() {
    let table = Table::numbered("t", "f", 1);
    for (settings, durability) in [
        (&[][..], "buffered: in memory only"),
        (&[("appendonly", "yes"), ("appendfsync", "always")], "synced"),
        (&[("appendonly", "yes"), ("appendfsync", "everysec")], "buffered: log written, synced once a second"),
    ] {
        let server = server::Server::start(settings).unwrap_or_else(|why| panic!("{why}"));
        let store = opened(&server.target(0), &table, Opening::OrCreate).expect("it is made");
        let settings = store.settings();
        let told = settings.iter().find(|setting| setting.name == "durability").expect("it is said");
        assert!(told.value.starts_with(durability), "{told:?}");
        assert!(matches!(store.used(), StoreUse::Server(_)), "{:?}", store.used());
        let commands = store.counters().iter().find(|counter| counter.name == "commands").expect("it is counted").value;
        assert!((1..1000).contains(&commands), "{commands} commands since it was opened");
    }
}

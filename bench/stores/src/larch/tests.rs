use super::SCHEME;
use harness::conformance::{self, Content, Scratch};
use harness::{Clock, Opening, Session, Strings, Table, Target};

fn check(options: &str) {
    let scratch = Scratch::new("larch");
    let target = format!("larch:{}{options}", scratch.path().join("database").display());
    conformance::check(&SCHEME, &target, Content::Bytes);
}

#[test]
fn it_does_what_stores_promise() {
    check("");
}

#[test]
fn it_does_so_with_every_option() {
    check(
        "?cache=4MiB&write_buffer=1MiB&durability=synced&compression=lz4&page=4KiB&index=both&filters=none,12&settle=compact",
    );
}

#[test]
fn it_does_so_with_fields_in_groups_and_each_index() {
    check("?cache=1MiB&write_buffer=1MiB&page=4KiB&node=1KiB&groups=1&index=both&read_index=flat");
    check("?groups=3&read_index=btree&compression=zstd:9");
}

#[test]
fn options_that_make_no_sense_are_refused_with_what_is_allowed() {
    let scratch = Scratch::new("larch-refused");
    let table = Table::numbered("t", "f", 3);
    for (options, part) in [
        ("?groups=17", "option `groups` is `17` and should be 0 to 16"),
        ("?groups=2&flights=8", "option `flights` is `set` and should be left out where the fields are in groups"),
        ("?read_index=tree", "option `read_index` is `tree` and should be one of btree, flat"),
        ("?node=8GiB", "option `node` is `8589934592` and should be at most 256KiB"),
        (
            "?compression=zstd:20",
            "option `compression` is `zstd:20` and should be none, lz4, zstd, or zstd:LEVEL with a level from 1 to 19",
        ),
        ("?node=100", "an index node of 100 bytes is not within"),
    ] {
        let target = Target::parse(&format!("larch:{}{options}", scratch.path().join("db").display()));
        let refused = (SCHEME.open)(&target.expect("a good target"), &table, Opening::OrCreate).err();
        let refused = refused.expect("it makes no sense");
        assert_eq!(refused.kind, "target", "{refused}");
        assert!(refused.text.contains(part), "{refused}");
    }
}

#[test]
fn a_read_of_one_field_reads_nothing_of_the_other_groups() {
    let scratch = Scratch::new("larch-groups");
    let table = Table::numbered("t", "f", 4);
    let open = |cache: &str| {
        let place = scratch.path().join("db");
        let target =
            format!("larch:{}?cache={cache}&page=4KiB&groups=2&settle=compact&compression=none", place.display());
        (SCHEME.open)(&Target::parse(&target).expect("a good target"), &table, Opening::OrCreate).expect("opened")
    };
    let store = open("16MiB");
    let mut record = Strings::new();
    for number in 0..1000_u32 {
        record.clear();
        (0..4).for_each(|field| record.push(format!("{field} of {number}").repeat(20).as_bytes()));
        let Session::Blocking(mut session) = store.loader(Clock::start()).expect("a session") else {
            panic!("it waits")
        };
        let request = harness::Request::Insert { key: &number.to_be_bytes(), record: &record };
        session.call(&request, &mut harness::Reply::new()).expect("the disk works");
    }
    store.settle().expect("settled");
    store.close().expect("closed");
    let bytes_of = |fields| {
        let store = open("16MiB");
        let bytes = || store.counters().iter().find(|it| it.name == "bytes read").expect("it is counted").value;
        let before = bytes();
        let Session::Blocking(mut session) = store.session(Clock::start()).expect("a session") else {
            panic!("it waits")
        };
        let mut reply = harness::Reply::new();
        let request = harness::Request::Scan { start: &[], rows: u64::MAX, fields };
        session.call(&request, &mut reply).expect("the disk works");
        assert_eq!(reply.rows(), 1000);
        drop(session);
        let read = bytes() - before;
        store.close().expect("closed");
        read
    };
    let (one, all) = (bytes_of(harness::Fields::One(1)), bytes_of(harness::Fields::All));
    assert!(one * 10 < all * 7, "{one} of {all} bytes");
}

#[test]
fn it_does_so_with_many_requests_under_way() {
    check("?cache=1MiB&write_buffer=1MiB&page=4KiB&flights=16");
}

#[test]
fn its_transactions_do_what_stores_promise() {
    let scratch = Scratch::new("larch-transactions");
    let target = format!("larch:{}", scratch.path().join("database").display());
    conformance::check_transactions(&SCHEME, &target);
}

#[test]
fn its_commits_in_flight_are_durable_once_they_have_landed() {
    let scratch = Scratch::new("larch-commits");
    let target = format!("larch:{}?durability=synced", scratch.path().join("database").display());
    conformance::check_commits(&SCHEME, &target, &[0, 1, 8, 1000]);
    let buffered = Target::parse(&target.replace("synced", "buffered")).expect("a good target");
    let store = (SCHEME.open)(&buffered, &Table::numbered("t", "f", 1), Opening::Existing).expect("opened");
    assert!(store.commits(0).is_none(), "its commits are not durable");
}

#[test]
fn it_refuses_what_it_cannot_open() {
    conformance::check_directory(&SCHEME, "");
}

#[test]
fn a_table_keeps_the_options_it_was_made_with() {
    let scratch = Scratch::new("larch-options");
    let table = Table::numbered("t", "f", 1);
    let open = |options: &str, opening| {
        let target = Target::parse(&format!("larch:{}{options}", scratch.path().join("db").display()));
        (SCHEME.open)(&target.expect("a good target"), &table, opening)
    };
    open("?page=4KiB&filters=none", Opening::OrCreate).expect("made").close().expect("closed");
    let store = open("", Opening::Existing).expect("as it is");
    let value = |name| store.settings().into_iter().find(|setting| setting.name == name).expect("it is set").value;
    assert_eq!((value("page"), value("filters")), ("4 KiB".to_owned(), "none bits".to_owned()));
    store.close().expect("closed");
    let refused = open("?page=8KiB", Opening::Existing).err().expect("not what it has");
    assert_eq!(refused.kind, "other_options");
    assert!(refused.text.contains("page 4 KiB"), "{refused}");
    open("?page=8KiB", Opening::Recreate).expect("made anew").close().expect("closed");
}

#[test]
fn a_database_that_somebody_has_open_can_be_read_beside_them() {
    let scratch = Scratch::new("larch-read-only");
    let table = Table::numbered("t", "f", 1);
    let open = |options: &str, opening| {
        let target = Target::parse(&format!("larch:{}{options}", scratch.path().join("db").display()));
        (SCHEME.open)(&target.expect("a good target"), &table, opening)
    };
    let owner = open("", Opening::OrCreate).expect("made");
    assert_eq!(open("", Opening::Existing).err().expect("locked").kind, "locked");
    let reader = open("?read_only=1", Opening::Existing).expect("it takes no lock");
    assert!(reader.set_cache_bytes(1 << 20).expect("it can"));
    reader.close().expect("closed");
    assert_eq!(open("?read_only=1", Opening::OrCreate).err().expect("nothing to make").kind, "target");
    owner.close().expect("closed");
}

#[test]
fn an_index_is_built_compared_and_dropped() {
    let scratch = Scratch::new("larch-index");
    let table = Table::numbered("t", "f", 1);
    let target = Target::parse(&format!("larch:{}", scratch.path().join("db").display())).expect("a good target");
    let store = (SCHEME.open)(&target, &table, Opening::OrCreate).expect("made");
    assert_eq!(store.check_and_drop_index().expect_err("there is none").kind, "larch");
    let Session::Blocking(mut session) = store.loader(Clock::start()).expect("it loads") else {
        panic!("calls of it wait");
    };
    let (mut record, mut reply) = (Strings::new(), harness::Reply::new());
    record.push(b"a value that has eight bytes at its end");
    for key in [b"a", b"b", b"c"] {
        session.call(&harness::Request::Insert { key, record: &record }, &mut reply).expect("it is taken");
    }
    session.finish().expect("it is taken");
    drop(session);
    for _ in 0..2 {
        assert_eq!(store.build_index().expect("it is built"), Some(3));
        assert_eq!(store.check_and_drop_index().expect("it is whole"), 3);
    }
    store.close().expect("closed");
}

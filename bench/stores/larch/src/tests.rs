use super::SCHEME;
use harness::conformance::{self, Content, Scratch};
use harness::{Opening, Table, Target};

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
        "?cache=4MiB&write_buffer=1MiB&durability=synced&compression=lz4&page=4KiB&index=both&filters=none,8&settle=compact",
    );
}

#[test]
fn it_does_so_with_many_requests_under_way() {
    check("?cache=1MiB&write_buffer=1MiB&page=4KiB&flights=16");
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

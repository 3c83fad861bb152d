use super::SCHEME;
use harness::conformance::{self, Content, Scratch};
use harness::{Opening, Table, Target};

fn check(options: &str) {
    let scratch = Scratch::new("rocksdb");
    let target = format!("rocksdb:{}{options}", scratch.path().join("store").display());
    conformance::check(&SCHEME, &target, Content::Bytes);
}

#[test]
fn it_does_what_stores_promise() {
    check("");
}

#[test]
fn it_does_so_with_partitions() {
    check("?index=partitioned&cache=4MiB&write_buffer=1MiB&page=4KiB&compression=lz4&settle=compact&direct=1");
}

#[test]
fn it_does_so_synced_without_filters() {
    check("?durability=synced&filter_bits=0&compression=zstd&statistics=1&row_cache=1MiB");
}

#[test]
fn it_does_so_as_a_database_of_transactions() {
    check("?transactions=optimistic");
}

#[test]
fn its_transactions_do_what_stores_promise() {
    let scratch = Scratch::new("rocksdb-transactions");
    let target = format!("rocksdb:{}?transactions=optimistic", scratch.path().join("store").display());
    conformance::check_transactions(&SCHEME, &target);
    conformance::check_commits(&SCHEME, &format!("{target}&durability=synced"), &[0]);
}

#[test]
fn it_refuses_what_it_cannot_open() {
    conformance::check_directory(&SCHEME, "");
}

#[test]
fn its_version_is_that_of_the_library() {
    let scratch = Scratch::new("rocksdb-version");
    let target = Target::parse(&format!("rocksdb:{}", scratch.path().display())).expect("a good target");
    let store = (SCHEME.open)(&target, &Table::numbered("t", "f", 1), Opening::OrCreate).expect("opened");
    let engine = store.settings().into_iter().find(|setting| setting.name == "engine").expect("it is set").value;
    assert!(engine.strip_prefix("RocksDB ").is_some_and(|version| version.split('.').count() == 3), "{engine}");
    store.close().expect("closed");
}

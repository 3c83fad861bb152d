use super::SCHEME;
use harness::conformance::{self, Content, Scratch};

fn check(options: &str) {
    let scratch = Scratch::new("lmdb");
    let target = format!("lmdb:{}{options}", scratch.path().join("store").display());
    conformance::check(&SCHEME, &target, Content::Bytes);
}

#[test]
fn it_does_what_stores_promise() {
    check("");
}

#[test]
fn it_does_so_synced_and_through_the_map() {
    check("?durability=synced&map=64MiB&readahead=0&writemap=1&batch=1&cache=8MiB&compression=none");
}

#[test]
fn it_refuses_what_it_cannot_open() {
    conformance::check_directory(&SCHEME, "");
}

use super::SCHEME;
use harness::conformance::{self, Content, Scratch};

fn check(options: &str) {
    let scratch = Scratch::new("redb");
    let target = format!("redb:{}{options}", scratch.path().join("store").display());
    conformance::check(&SCHEME, &target, Content::Bytes);
}

#[test]
fn it_does_what_stores_promise() {
    check("");
}

#[test]
fn it_does_so_synced_with_little_memory() {
    check("?durability=synced&cache=1MiB&batch=1&compression=none");
}

#[test]
fn it_refuses_what_it_cannot_open() {
    conformance::check_directory(&SCHEME, "");
}

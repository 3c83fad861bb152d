use super::SCHEME;
use harness::conformance::{self, Content, Scratch};

fn check(options: &str) {
    let scratch = Scratch::new("surrealkv");
    let target = format!("surrealkv:{}{options}", scratch.path().join("store").display());
    conformance::check(&SCHEME, &target, Content::Bytes);
}

#[test]
fn it_does_what_stores_promise() {
    check("");
}

#[test]
fn it_does_so_synced_with_little_memory() {
    check("?durability=synced&write_buffer=1MiB&batch=7&page=4KiB&compression=snappy&settle=compact");
}

#[test]
fn it_refuses_what_it_cannot_open() {
    conformance::check_directory(&SCHEME, "");
}

use super::SCHEME;
use harness::conformance::{self, Content, Scratch};

fn check(options: &str) {
    let scratch = Scratch::new("fjall");
    let target = format!("fjall:{}{options}", scratch.path().join("store").display());
    conformance::check(&SCHEME, &target, Content::Bytes);
}

#[test]
fn it_does_what_stores_promise() {
    check("");
}

#[test]
fn it_does_so_synced_and_compressed() {
    check("?durability=synced&cache=1MiB&write_buffer=64KiB&page=1KiB&compression=lz4&settle=compact");
}

#[test]
fn it_refuses_what_it_cannot_open() {
    conformance::check_directory(&SCHEME, "");
}

use super::SCHEME;
use harness::conformance::{self, Content, Scratch};

fn check(options: &str) {
    let scratch = Scratch::new("bf-tree");
    let target = format!("bf-tree:{}{options}", scratch.path().join("store").display());
    conformance::check(&SCHEME, &target, Content::Bytes);
}

#[test]
fn it_does_what_stores_promise() {
    check("");
}

#[test]
fn it_does_so_with_little_memory() {
    check("?cache=1MiB&page=8KiB");
}

#[test]
fn it_refuses_what_it_cannot_open() {
    conformance::check_directory(&SCHEME, "");
}

use super::*;
use harness::conformance::Scratch;

#[test]
fn it_keeps_the_promises_of_every_database() {
    let directory = Scratch::new("row-access");
    ::row_access::conformance::check(&SCHEME, &format!("sqlite:{}", directory.join("rows.sqlite").display()));
}

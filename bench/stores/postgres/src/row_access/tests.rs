//! Tests of row access on a real server.

use super::*;
use crate::server::tests::shared;

#[test]
fn it_keeps_the_promises_of_every_database() {
    shared().connect().expect("it runs").query("CREATE DATABASE row_access").expect("the superuser may");
    ::row_access::conformance::check(&SCHEME, &format!("{}&synchronous_commit=off", shared().url("row_access")));
}

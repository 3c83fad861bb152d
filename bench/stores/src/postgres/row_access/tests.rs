//! Tests of row access on a real server.

use super::*;
use crate::postgres::server::tests::shared;

#[test]
fn it_keeps_the_promises_of_every_database() {
    shared().connect().expect("it runs").query("CREATE DATABASE row_access").expect("the superuser may");
    ::row_access::conformance::check(&SCHEME, &format!("{}&synchronous_commit=off", shared().url("row_access")));
}

#[test]
fn other_dialects_keep_them_on_this_server() {
    for scheme in [COCKROACH, YUGABYTE] {
        let database = format!("row_access_{}", scheme.name);
        shared().connect().expect("it runs").query(&format!("CREATE DATABASE {database}")).expect("the superuser may");
        let target = shared().url(&database).replace("postgres:", &format!("{}:", scheme.name));
        ::row_access::conformance::check(&scheme, &format!("{target}&synchronous_commit=off"));
    }
}

//! Tests of sessions with a real server.

use super::*;
use crate::postgres::server::tests::{shared as server, start};

fn open(url: &str) -> Result<Connection, Error> {
    Connection::open(&Address::parse(url, |_| None)?)
}

fn refusal(url: &str) -> Error {
    open(url).err().expect("it is refused")
}

#[test]
fn rows_of_a_query_come_back() {
    let mut connection = server().connect().expect("it runs");
    let rows = connection.query("SELECT 1, NULL, 'a''b'; SELECT '' WHERE false").expect("it is SQL");
    assert_eq!(rows, [[Some("1".to_owned()), None, Some("a'b".to_owned())]]);
    assert!(connection.parameter("server_version").is_some_and(|version| !version.is_empty()));
}

#[test]
fn a_session_goes_on_after_an_error() {
    let mut connection = server().connect().expect("it runs");
    let error = connection.query("SELECT 1; SELECT * FROM no_such_table").expect_err("there is no such table");
    assert_eq!(error.sqlstate(), Some(SqlState::UNDEFINED_TABLE));
    assert!(!error.is_lost() && error.to_string().contains("no_such_table"), "{error}");
    assert_eq!(connection.value("SELECT 2").expect("the session lives"), "2");
}

#[test]
fn a_statement_that_cannot_be_prepared_is_named() {
    let mut connection = server().connect().expect("it runs");
    let error = connection.prepare([("1", "SELECT 1"), ("2", "SELEKT"), ("3", "SELECT 3")]);
    let error = error.expect_err("the second is not SQL").to_string();
    assert!(error.contains("SELEKT"), "{error}");
    connection.prepare([("4", "SELECT 4")]).expect("the session lives");
}

#[test]
fn a_password_is_proved_by_scram() {
    let mut connection = open(&server().loopback_url("ann:pa%25ss", "postgres")).expect("the password is right");
    assert_eq!(connection.value("SELECT current_user").expect("it is SQL"), "ann");
}

#[test]
fn a_password_is_proved_by_md5_and_in_the_clear() {
    for method in ["md5", "password"] {
        let server = start(&[], Some(method));
        let role = "SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'secret'";
        server.connect().expect("it runs").query(role).expect("the superuser may");
        open(&server.loopback_url("old:secret", "postgres")).expect("the password is right");
        let error = refusal(&server.loopback_url("old:wrong", "postgres"));
        assert_eq!(error.sqlstate(), Some(SqlState::INVALID_PASSWORD), "{method}: {error}");
    }
}

#[test]
fn who_is_not_let_in_is_told_why() {
    let server = server();
    for (url, sqlstate, what) in [
        (server.loopback_url("ann:wrong", "postgres"), b"28P01", "PGPASSWORD"),
        (server.loopback_url("ann", "postgres"), b"28P01", "wants a password"),
        (server.url("no_such_database"), b"3D000", "createdb"),
        (server.url("postgres").replace("postgres@", "stranger@"), b"28000", "stranger"),
        (format!("{}&no_such_setting=1", server.url("postgres")), b"42704", "no_such_setting"),
    ] {
        let error = refusal(&url);
        assert_eq!(error.sqlstate(), Some(SqlState(*sqlstate)), "{error}");
        assert!(error.is_lost() && error.to_string().contains(what), "{error}");
    }
}

#[test]
fn settings_of_an_address_hold_for_its_session() {
    let url = format!("{}&synchronous_commit=off&application_name=us", server().url("postgres"));
    let mut connection = open(&url).expect("they are settings");
    assert_eq!(connection.value("SHOW synchronous_commit").expect("it is a setting"), "off");
    assert_eq!(connection.value("SHOW application_name").expect("it is a setting"), "us");
}

#[test]
fn an_absent_server_is_told_with_its_place() {
    let error = refusal("postgres://u@/d?host=/nonexistent").to_string();
    assert!(error.contains("/nonexistent/.s.PGSQL.5432") && error.contains("?host="), "{error}");
    let unused = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = unused.expect("there is a port").port();
    let error = refusal(&format!("postgres://u@127.0.0.1:{port}/d")).to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}")) && error.contains("start the server"), "{error}");
}

#[test]
fn another_service_is_not_taken_for_a_server() {
    use std::io::{Read, Write};
    let answer = |mode: &str, bytes: &'static [u8]| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = listener.local_addr().expect("it is bound").port();
        let other = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("we come");
            socket.read_exact(&mut [0; 8]).expect("we speak first");
            socket.write_all(bytes).expect("we listen");
        });
        let error = refusal(&format!("postgres://u@127.0.0.1:{port}/d?sslmode={mode}"));
        other.join().expect("it answered");
        error
    };
    let error = answer("disable", b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(matches!(error, Error::Protocol { .. } | Error::Lost { .. }), "{error}");
    let error = answer("disable", b"R\0\0\0\x08\0\0\0\x63");
    assert!(matches!(error, Error::Authentication { .. }), "{error}");
    let error = answer("disable", b"R\0\0\0\x06\0\0");
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
    let error = answer("disable", b"");
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    for mode in ["prefer", "require"] {
        let error = answer(mode, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        assert!(matches!(error, Error::Protocol { .. }), "{error}");
    }
    // A server that agrees to TLS but then does not speak it.
    let error = answer("require", b"SHTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}

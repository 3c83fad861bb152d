//! Tests that a server starts and ends with its owner.

use super::*;
use std::sync::OnceLock;

/// One server for all tests that do not harm it. The watchdog removes it after the last test. Over the loopback,
/// `ann`, who owns nothing, may log in with the password `pa%ss`.
pub fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = start(&[], Some("scram-sha-256"));
        let ann = "CREATE ROLE ann LOGIN PASSWORD 'pa%ss'; REVOKE CREATE ON SCHEMA public FROM PUBLIC";
        server.connect().expect("it runs").query(ann).expect("the superuser may");
        server
    })
}

/// Starts a server for one test.
pub fn start(settings: &[(&str, &str)], loopback: Option<&'static str>) -> Server {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Server::start(&ServerOptions { settings, loopback, ..ServerOptions::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_server_answers_and_is_gone_when_dropped() {
    let server = start(&[], None);
    let directory = server.socket_directory().to_owned();
    let mut connection = server.connect().expect("it runs");
    assert_eq!(connection.value("SELECT 6 * 7").expect("it counts"), "42");
    let pid = server.server.id();
    drop(server);
    assert!(!directory.exists(), "{} is left", directory.display());
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is left");
    let error = connection.query("SELECT 1").expect_err("nobody is there");
    assert!(error.is_lost(), "{error}");
}

#[test]
fn a_server_is_gone_when_its_owner_was_killed() {
    // Closing the pipe has the same effect on the watchdog as the end of its owner.
    let mut server = start(&[], None);
    let directory = server.socket_directory().to_owned();
    drop(server.watchdog.stdin.take());
    let ended = server.watchdog.wait().expect("it is our child");
    assert!(ended.success(), "{ended}");
    server.server.wait().expect("it is our child");
    assert!(!directory.exists(), "{} is left", directory.display());
}

#[test]
fn settings_reach_the_server() {
    let server = start(&[("shared_buffers", "16MB"), ("fsync", "off")], None);
    let mut connection = server.connect().expect("it runs");
    assert_eq!(connection.value("SHOW shared_buffers").expect("it is a setting"), "16MB");
    assert_eq!(connection.value("SHOW fsync").expect("it is a setting"), "off");
}

#[test]
fn commits_wait_for_their_replicas() {
    // The server keeps its log for replicas that fall behind.
    let server = start(&[("synchronous_commit", "remote_apply"), ("wal_keep_size", "256MB")], None);
    let mut connection = server.connect().expect("it runs");
    connection.query("CREATE TABLE notes (number int)").expect("there is room");
    let replicas =
        ["one", "two"].map(|name| Server::start_replica(&server, name).unwrap_or_else(|error| panic!("{error}")));
    server.wait_for_replicas(&["one", "two"]).expect("it runs");
    connection.query("INSERT INTO notes VALUES (7)").expect("there is room");
    for replica in &replicas {
        let mut connection = replica.connect().expect("it runs");
        assert_eq!(connection.value("SELECT number FROM notes").expect("it has the table"), "7");
        assert_eq!(connection.value("SELECT pg_is_in_recovery()").expect("it answers"), "t");
    }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let settings = vec![("no_such_setting".to_owned(), "1".to_owned())];
    let error =
        Server::start(&ServerOptions { settings, ..ServerOptions::default() }).err().expect("there is no such setting");
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[test]
fn a_missing_server_is_told_with_its_package() {
    let error = StartError::NotInstalled { missing: "no initdb".to_owned() }.to_string();
    assert!(error.contains("apt-get install postgresql"), "{error}");
}

#[test]
fn the_user_of_the_server_is_found_in_the_list_of_users() {
    let owner = owner_of_line("postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash");
    assert_eq!(owner.map(|owner| (owner.user, owner.group)), Some((101, 104)));
    assert!(owner_of_line("postgresql:x:1:2::/:/bin/sh").is_none());
    assert!(owner_of_line("").is_none());
}

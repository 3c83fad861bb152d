//! Tests that a server starts and ends with its owner.

use super::*;
use std::sync::OnceLock;

/// One server for all tests that do not harm it. The watchdog removes it after the last test.
pub fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&small()).unwrap_or_else(|error| panic!("{error}")))
}

/// A heap that is large enough for tests.
fn small() -> ServerOptions {
    ServerOptions { heap_mib: 384, ..ServerOptions::default() }
}

fn answers(server: &Server) -> bool {
    TcpStream::connect(server.address()).is_ok()
}

#[test]
fn a_server_is_gone_when_dropped_and_when_its_owner_was_killed() {
    for owner_is_killed in [false, true] {
        let mut server = Server::start(&small()).unwrap_or_else(|error| panic!("{error}"));
        let (address, directory) = (server.address(), server.directory().to_owned());
        assert!(answers(&server) && directory.join("data").is_dir());
        if owner_is_killed {
            // Closing the pipe has the same effect on the watchdog as the end of its owner.
            drop(server.watchdog.stdin.take());
            let ended = server.watchdog.wait().expect("it is our child");
            assert!(ended.success(), "{ended}");
        } else {
            drop(server);
        }
        assert!(TcpStream::connect(address).is_err(), "something listens at {address}");
        assert!(!directory.exists(), "{} is left", directory.display());
    }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let options = ServerOptions { heap_mib: 1, ..ServerOptions::default() };
    let error = Server::start(&options).expect_err("a heap of a mebibyte is too small").to_string();
    assert!(error.contains("has ended") && error.contains("heap"), "{error}");
}

#[test]
fn a_directory_of_something_else_is_not_used() {
    let scratch = Scratch::new("cassandra-not-ours");
    assert_eq!(
        directory_of_ours(&scratch.join("new")).expect("it is made"),
        fs::canonicalize(scratch.join("new")).expect("it is there")
    );
    fs::write(scratch.join("diary"), "today").expect("the disk has room");
    let error = directory_of_ours(scratch.path()).expect_err("a diary is in it").to_string();
    assert!(error.contains("name another directory"), "{error}");
    fs::write(scratch.join("cassandra.yaml"), settings_text(scratch.path(), 1, 2, false)).expect("the disk has room");
    directory_of_ours(scratch.path()).expect("it is marked as ours");
}

#[test]
fn the_version_of_java_is_read() {
    assert_eq!(version_of_java("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime"), Some("17"));
    assert_eq!(version_of_java("java version \"21\" 2023-09-19 LTS"), Some("21"));
    assert_eq!(version_of_java("openjdk version \"25-ea\" 2025-09-16"), Some("25"));
    assert_eq!(version_of_java("java: not found"), None);
}

#[test]
fn what_is_missing_is_reported_with_how_to_get_it() {
    let error = StartError::NotFetched { missing: "there is no folder x".to_owned() }.to_string();
    assert!(
        error.contains("cargo x bench --with cassandra") && error.contains("bench/stores/cassandra/fetch"),
        "{error}"
    );
    let error = StartError::NoJava { found: "/usr/bin/java has version 21".to_owned() }.to_string();
    assert!(error.contains("apt-get install openjdk-17-jre-headless") && error.contains("version 21"), "{error}");
}

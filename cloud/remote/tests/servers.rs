//! Tests the promises of a store on S3 servers on this machine: `cargo x remote --check` with moto, `cargo x remote
//! --servers` with all. If a server is not installed, its test fails and says how to install it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "processes and real time, outside of the engine"
)]

mod commands;
mod processes;
mod promises;

use larch_remote::{Counts, Patience, Place, RemoteStore};
use object_store::aws::AmazonS3Builder;
use processes::Server;
use std::io::ErrorKind;
use std::sync::{Arc, mpsc};

fn place(server: &Server, prefix: &str) -> Place {
    let store = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_bucket_name(server.bucket())
        .with_access_key_id(processes::KEY)
        .with_secret_access_key(processes::SECRET);
    Place::within(Arc::new(store.build().expect("it is all there is to say")), prefix)
}

fn store(server: &Server, prefix: &str) -> RemoteStore {
    RemoteStore::new(place(server, prefix), Patience::default()).expect("the system has threads")
}

fn check(server: &Server) {
    promises::check(&store(server, "promises"));
    one_of_many_puts_succeeds(server);
    errors_show_no_secret(server);
}

/// Sixteen threads put the same name at once, and exactly one must succeed.
fn one_of_many_puts_succeeds(server: &Server) {
    use os::Store;
    for round in 0..10 {
        let name = format!("journal/{round}");
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (store, name, sender) = (store(server, "race"), name.clone(), sender.clone());
                scope.spawn(move || {
                    let mine = format!("thread {thread}");
                    let outcome = store.put_if_absent(&name, mine.as_bytes());
                    sender.send((mine, outcome)).expect("the test waits");
                });
            }
        });
        drop(sender);
        let (won, lost): (Vec<_>, Vec<_>) = receiver.iter().partition(|(_, outcome)| outcome.is_ok());
        assert!(won.len() <= 1, "round {round}: {won:?}");
        let found = store(server, "race").get(&name).expect("one has put it");
        assert!(won.iter().all(|(mine, _)| mine.as_bytes() == found), "round {round}");
        let kinds = lost.iter().map(|(_, outcome)| outcome.as_ref().expect_err("it has lost").kind());
        assert!(kinds.into_iter().all(|kind| kind == ErrorKind::AlreadyExists), "round {round}: {lost:?}");
    }
}

fn errors_show_no_secret(server: &Server) {
    use os::Store;
    let wrong = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_allow_http(true)
        .with_bucket_name("no-such-bucket")
        .with_access_key_id(processes::KEY)
        .with_secret_access_key(processes::SECRET);
    let place = Place::within(Arc::new(wrong.build().expect("it is all there is to say")), "p");
    let store = RemoteStore::new(place, Patience::default()).expect("the system has threads");
    let put = store.put_if_absent("journal/1", b"x").expect_err("there is no such bucket");
    let listed = store.list("journal").expect_err("there is no such bucket");
    for (error, key) in [(put, "p/journal/1"), (listed, "p/journal")] {
        let text = error.to_string();
        assert!(text.contains("no-such-bucket") && text.contains(key), "{text}");
        assert!(!text.contains(processes::SECRET), "{text}");
        // That the bucket does not exist is a final answer, so the request is not repeated.
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
    }
    assert_eq!(store.counts().retries, 0);
}

/// A wrong address is reported at once, with what to correct.
#[test]
#[ignore = "cargo x remote --check runs it"]
fn moto_a_wrong_address_is_reported_with_its_cause() {
    let server = Server::moto();
    let set = |name: &'static str, value: &str| -> Vec<(&'static str, String)> {
        let mut variables = server.variables().to_vec();
        variables.retain(|(other, _)| *other != name);
        variables.push((name, value.to_owned()));
        variables
    };
    let get = |bucket: &str| ["get".to_owned(), format!("s3://{bucket}/db"), "t".to_owned(), "k".to_owned()];
    for (variables, bucket, expected) in [
        (set("AWS_REGION", "us-east-1"), "no-such-bucket", "no-such-bucket"),
        (set("AWS_ENDPOINT", ""), server.bucket(), "AWS_ENDPOINT"),
        (set("AWS_ENDPOINT", "localhost:9000"), server.bucket(), "no address of a server"),
        (set("AWS_ALLOW_HTTP", "false"), server.bucket(), "AWS_ALLOW_HTTP=true"),
    ] {
        let arguments = get(bucket);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        commands::expect(&variables, &[(&arguments, Err(expected))]);
    }
}

#[test]
#[ignore = "cargo x remote --check runs it"]
fn moto_is_a_store() {
    check(&Server::moto());
}

#[test]
#[ignore = "cargo x remote --servers runs it"]
fn minio_is_a_store() {
    check(&Server::minio());
}

/// Counts exactly the requests that are sent, for a URL as users write it.
#[test]
#[ignore = "cargo x remote --check runs it"]
fn moto_by_url_with_the_environment_of_the_process() {
    use os::Store;
    const VARIABLE: &str = "LARCH_REMOTE_TEST_INNER";
    if std::env::var_os(VARIABLE).is_none() {
        // Runs in another process, because all tests of this one share its environment variables.
        let server = Server::moto();
        let itself = std::env::current_exe().expect("the test has a file");
        let status = std::process::Command::new(itself)
            .args(["--ignored", "--exact", "moto_by_url_with_the_environment_of_the_process", "--nocapture"])
            .env(VARIABLE, server.bucket())
            .envs(server.variables())
            .status();
        assert!(status.expect("the test can be run").success());
        return;
    }
    let bucket = std::env::var(VARIABLE).expect("it was set");
    let store = RemoteStore::of_url(&format!("s3://{bucket}/by-url")).expect("the environment says all");
    store.put_if_absent("journal/1", b"one").expect("the name is free");
    assert_eq!(store.get("journal/1").expect("it is there"), b"one");
    assert_eq!(store.list("journal").expect("the server works").len(), 1);
    store.remove("journal/1").expect("it is there");
    let Counts { requests, read_bytes, written_bytes, .. } = store.counts();
    assert_eq!((requests.puts, requests.gets, requests.lists, requests.deletes), (1, 1, 1, 1));
    assert_eq!((read_bytes, written_bytes), (3, 3));
}

//! Writers, real processes, are killed at any point, and others take over. No acknowledged commit may be lost. The
//! store is a directory; `cargo x remote --servers` also tests MinIO.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "processes, outside of the engine")]

mod processes;

use larch::Database;
use larch_remote::{Connection, Near};
use processes::Server;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// The environment variable that tells a writing process the URL of the database.
const URL: &str = "LARCH_REMOTE_TEST_WRITER";

/// How many writers are killed or fenced.
const ROUNDS: u64 = 20;

/// The rounds on moto, which takes ten times as long for each request.
const MOTO_ROUNDS: u64 = 4;

fn open(url: &str) -> Database {
    let connection = Connection::of_url(url, &Near::default()).expect("it is a URL of a store");
    let builder = connection.builder().write_buffer_bytes(256 << 10);
    builder.open().unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// The numbers in the database, which must run from 0 without gaps in the order in which they were written.
fn numbers(db: &Database) -> Vec<u64> {
    let table = db.table("t").expect("a table");
    let mut numbers = Vec::new();
    for row in table.range(..) {
        let (key, value) = row.expect("the store works");
        assert_eq!(value.len(), 1000);
        numbers.push(u64::from_be_bytes(key.as_ref().try_into().expect("keys are numbers")));
    }
    numbers
}

/// Appended to the URL for a process that only reads the numbers.
const LOOK: &str = "#look";

/// Writes numbers until this process is killed, and prints each once it is durable. If the URL ends with `LOOK`,
/// only reads the numbers.
fn write_until_killed(url: &str) {
    if let Some(url) = url.strip_suffix(LOOK) {
        let db = open(url);
        let found = numbers(&db);
        assert!(found.iter().copied().eq(0..found.len() as u64), "there are no gaps");
        db.check(|_| {}).expect("nothing is damaged");
        writeln!(std::io::stderr(), "rows {}", found.len()).expect("the test reads");
        return;
    }
    let db = open(url);
    let table = db.table("t").expect("a table");
    let first = numbers(&db).len() as u64;
    for number in first.. {
        if table.insert(number.to_be_bytes(), [number as u8; 1000]).is_err() {
            return;
        }
        writeln!(std::io::stderr(), "durable {number}").expect("the test reads");
    }
}

/// Starts this test program as another process, in which the test `name` writes.
fn writer(name: &str, url: &str, variables: &[(&str, String)]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("the test has a file"));
    command.args(["--include-ignored", "--exact", name, "--nocapture"]).env(URL, url);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the test can be run")
}

/// The number of rows that another process finds, which must be numbered from 0 without gaps.
fn reader(name: &str, url: &str, variables: &[(&str, String)]) -> u64 {
    let mut process = writer(name, &format!("{url}{LOOK}"), variables);
    let lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
    let seen = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("rows ")?.parse().ok());
    assert!(process.wait().expect("it is our process").success(), "the look failed");
    seen.expect("it says how many")
}

/// Kills writers. After each kill, another process must find everything that was acknowledged. In every second
/// round, another writer takes over while the first still runs.
fn check(name: &str, url: &str, variables: &[(&str, String)], rounds: u64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(17);
    let mut acknowledged = 0;
    for round in 0..rounds {
        let mut process = writer(name, url, variables);
        let lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let mut numbers =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
        let many = rng.random_range(1..60);
        let last = numbers.by_ref().take(many).last().unwrap_or_else(|| panic!("round {round}: it wrote nothing"));
        let mut other = (round % 2 == 0).then(|| writer(name, url, variables));
        if let Some(other) = &mut other {
            // Once the other process has taken over, the first one stops by itself, which ends its output.
            let lines = BufReader::new(other.stderr.take().expect("it is piped")).lines();
            let first = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
            let last_of_first = numbers.last().unwrap_or(last);
            let first = first.unwrap_or_else(|| panic!("round {round}: the second wrote nothing"));
            assert!(first > last_of_first, "round {round}: {first} was written again after {last_of_first}");
            assert!(process.wait().expect("it is our process").code().is_some(), "it ended by itself");
            other.kill().expect("it runs");
            other.wait().expect("it is our process");
            acknowledged = first + 1;
        } else {
            process.kill().expect("it runs");
            process.wait().expect("it is our process");
            acknowledged = acknowledged.max(last + 1);
        }
    }
    // Read by another process, because environment variables apply to a whole process.
    let seen = reader(name, url, variables);
    assert!(seen >= acknowledged, "{seen} of {acknowledged} were acknowledged");
    println!("{rounds} writers were killed or fenced; {seen} rows, of which {acknowledged} were surely acknowledged");
}

#[test]
fn no_commit_is_lost_when_writers_are_killed_on_a_directory() {
    const NAME: &str = "no_commit_is_lost_when_writers_are_killed_on_a_directory";
    if let Ok(url) = std::env::var(URL) {
        return write_until_killed(&url);
    }
    let directory = tempfile::tempdir().expect("there is room");
    check(NAME, &format!("file://{}/db", directory.path().display()), &[], ROUNDS);
}

/// [`check`] on a server.
fn check_on(name: &str, server: fn() -> Server, rounds: u64) {
    if let Ok(url) = std::env::var(URL) {
        return write_until_killed(&url);
    }
    let server = server();
    check(name, &format!("s3://{}/killed", server.bucket()), &server.variables(), rounds);
}

#[test]
#[ignore = "cargo x remote --check runs it"]
fn no_commit_is_lost_when_writers_are_killed_on_moto() {
    check_on("no_commit_is_lost_when_writers_are_killed_on_moto", Server::moto, MOTO_ROUNDS);
}

#[test]
#[ignore = "cargo x remote --servers runs it"]
fn no_commit_is_lost_when_writers_are_killed_on_minio() {
    check_on("no_commit_is_lost_when_writers_are_killed_on_minio", Server::minio, ROUNDS);
}

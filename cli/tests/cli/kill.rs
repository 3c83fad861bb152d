//! Kills the program at random moments. Every row that the program acknowledged must be there afterwards, and no
//! import may be half done.

use crate::bench_stops::{interrupt, wait_for};
use crate::session::Session;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;

const KILLS: u32 = 20;
/// After this many bytes, the import has certainly made its table: it reads at most 64 KiB, the size of a pipe,
/// before that, and as many bytes may wait in the pipe.
const SURELY_BEGUN: usize = 160 << 10;

/// A random generator for this run, and the seed to repeat the run.
fn seeded(test: &str) -> (u64, Xoshiro256PlusPlus) {
    let seed = match std::env::var("LARCH_SEED") {
        Ok(text) => text.parse().expect("LARCH_SEED is a number"),
        Err(_) => RandomState::new().hash_one(0),
    };
    eprintln!("seed {seed}; to run it again: LARCH_SEED={seed} cargo test -p larch-cli --test cli {test}");
    (seed, Xoshiro256PlusPlus::seed_from_u64(seed))
}

/// Row `number` of an endless input. There are few keys, so that rows replace earlier rows. The values tell these
/// rows apart.
fn row(seed: u64, number: u64) -> (String, String) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ number);
    let key = format!("key {:04}", rng.random_range(0..2_000));
    let filler = "x".repeat(rng.random_range(0..1_500));
    (key, format!("{number} {filler}"))
}

/// The rows in key order, as `scan` prints them.
fn text(rows: &BTreeMap<String, String>) -> String {
    rows.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect()
}

#[test]
fn every_acknowledged_row_survives_a_kill() {
    let (seed, mut rng) = seeded("every_acknowledged_row_survives_a_kill");
    let session = Session::new();
    session.run_with(&["load", "db", "t"], "").ok();
    let mut rows = BTreeMap::new();
    let mut held = 0;
    for _ in 0..KILLS {
        let batch = [1, 1, 1, 7, 30][rng.random_range(0..5)];
        let enough = rng.random_range(0..300);
        // With the following options, a flush comes after every few dozen rows, and a compaction after every few
        // hundred.
        let batch_text = batch.to_string();
        let args = ["load", "db", "t", "--batch", &batch_text, "--write-buffer", "128KiB", "--cache", "256KiB"];
        let (fed, acknowledged) = load_and_kill(session.start(&args), seed, held, enough);

        let scanned = session.scan(&[]);
        // The newest row is always visible, and its value tells how many rows were taken.
        let numbers = scanned.lines().map(|line| line.split(['\t', ' ']).nth(2).expect("a value has a number"));
        let newest = numbers.map(|number| number.parse::<u64>().expect("it was written as one")).max();
        let taken = newest.map_or(0, |newest| newest + 1);
        assert!(
            taken >= held + acknowledged,
            "rows {held}.. were begun, {acknowledged} acknowledged, {taken} are there"
        );
        let whole_batches = (taken - held).is_multiple_of(batch) || taken == held + fed;
        assert!(whole_batches, "rows {held}.. came in batches of {batch}, {taken} are there: a part of a batch");
        rows.extend((held..taken).map(|number| row(seed, number)));
        assert!(scanned == text(&rows), "{taken} rows were taken, but they are not those that were written");
        session.is_sound();
        held = taken;
    }
    assert!(held > 0, "no row was ever acknowledged");
}

/// Sends the program rows, starting with number `first`. Kills the program as soon as `enough` rows are
/// acknowledged. Returns how many rows were sent and how many were acknowledged.
fn load_and_kill(mut child: Child, seed: u64, first: u64, enough: u64) -> (u64, u64) {
    let mut stdin = child.stdin.take().expect("it was asked for");
    let feeder = std::thread::spawn(move || {
        for fed in 0.. {
            let (key, value) = row(seed, first + fed);
            if stdin.write_all(format!("{key}\t{value}\n").as_bytes()).is_err() {
                return fed + 1;
            }
        }
        unreachable!("the input is endless")
    });
    let mut keys = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut acknowledged = 0;
    let mut line = String::new();
    loop {
        if acknowledged == enough {
            child.kill().expect("it runs until it is killed");
        }
        line.clear();
        keys.read_line(&mut line).expect("keys are text");
        if !line.ends_with('\n') {
            break;
        }
        assert_eq!(line.trim_end(), row(seed, first + acknowledged).0, "rows are acknowledged in their order");
        acknowledged += 1;
    }
    let status = child.wait().expect("it was started");
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "it ended by itself");
    drop(keys);
    (feeder.join().expect("the feeder counts"), acknowledged)
}

/// A row for every key. The value of each row says which import has made the row.
fn generation(number: u32) -> BTreeMap<String, String> {
    (0..8_000).map(|key| (format!("key {key:05}"), format!("import {number} {}", "y".repeat(key % 200)))).collect()
}

/// The rows in the order of the input file, which is not the order of their keys.
fn unsorted(rows: &BTreeMap<String, String>, rng: &mut Xoshiro256PlusPlus) -> String {
    let mut lines: Vec<String> = rows.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect();
    for at in (1..lines.len()).rev() {
        lines.swap(at, rng.random_range(0..=at));
    }
    lines.concat()
}

#[test]
fn an_import_that_is_killed_never_was() {
    let (_, mut rng) = seeded("an_import_that_is_killed_never_was");
    let session = Session::new();
    let mut there = generation(0);
    session.import(&["--format", "tsv"], text(&there)).ok();
    let args = ["import", "db", "t", "-", "--format", "tsv", "--write-buffer", "512KiB", "--cache", "256KiB"];
    let mut undone = 0;
    for kill in 1..=KILLS {
        let rows = generation(kill);
        let input = unsorted(&rows, &mut rng);
        let mut child = session.start(&args);
        if rng.random() {
            kill_while_fed(&mut child, input.as_bytes(), rng.random_range(0..=input.len()));
        } else {
            kill_while_finishing(&session, &mut child, input.as_bytes(), rng.random_range(0..9));
        }
        session.is_sound();
        let scanned = session.scan(&[]);
        if scanned == text(&rows) {
            // In this case, the program was killed only after the import had ended.
            there = rows;
        } else {
            assert!(scanned == text(&there), "the rows are neither those before the import nor those after");
            undone += 1;
        }
    }
    assert!(undone > 0, "no kill ever came in time");
    let rows = generation(KILLS + 1);
    session.run_with(&args, unsorted(&rows, &mut rng)).ok();
    assert!(session.scan(&[]) == text(&rows), "the last import did not do it");
    session.is_sound();
}

/// Kills the program after it has got `bytes` bytes. The input was not closed, so the import cannot have ended.
fn kill_while_fed(child: &mut Child, input: &[u8], bytes: usize) {
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(&input[..bytes]).expect("larch reads");
    child.kill().expect("it waits for more");
    child.wait().expect("it was started");
}

/// Kills the program after the end of its input: at once if `changes` is 0, and otherwise when the list of the
/// database's files has changed `changes` times.
fn kill_while_finishing(session: &Session, child: &mut Child, input: &[u8], changes: u32) {
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(input).expect("larch reads");
    let mut files = session.files("");
    drop(stdin);
    let mut seen = 0;
    while seen < changes && child.try_wait().expect("it was started").is_none() {
        let now = session.files("");
        if now != files {
            files = now;
            seen += 1;
        }
        std::thread::yield_now();
    }
    child.kill().expect("it was started");
    child.wait().expect("it was started");
}

#[test]
fn control_c_ends_an_import_and_leaves_the_table_as_it_was() {
    let (_, mut rng) = seeded("control_c_ends_an_import_and_leaves_the_table_as_it_was");
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    let mut child = session.start(&["import", "db", "t", "-", "--format", "tsv", "--write-buffer", "256KiB"]);
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(unsorted(&generation(1), &mut rng).as_bytes()).expect("larch reads");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it waits for more");
    let status = child.wait().expect("it was started");
    assert!(status.signal() == Some(Signal::INT.as_raw()) || status.code() == Some(130), "{status}");
    assert_eq!(session.scan(&[]), "a\t1\n");
    session.is_sound();
}

#[test]
fn an_import_that_was_stopped_is_not_in_the_way_of_another() {
    let session = Session::new();
    let mut child = session.start(&["import", "db", "t", "-", "--format", "tsv", "--key", "2", "--page", "8KiB"]);
    let line = b"1\tkey\n";
    kill_while_fed(&mut child, &line.repeat(SURELY_BEGUN / line.len()), SURELY_BEGUN / line.len() * line.len());
    let left = session.run(&["tables", "db"]).ok();
    assert!(left.contains("t: tsv rows, key column 2; pages of 8.0 KiB"), "{left}");

    session.import(&["--format", "csv", "--key", "id:int"], "id,name\n7,x\n").ok();
    assert_eq!(session.scan(&[]), "7\tx\n");
    let tables = session.run(&["tables", "db"]).ok();
    assert!(tables.contains("key id:int; pages of 16.0 KiB"), "{tables}");
}

#[test]
fn an_import_that_is_interrupted_leaves_neither_rows_nor_files() {
    let session = Session::new();
    let there = generation(0);
    session.import(&["--format", "tsv"], text(&there)).ok();
    let files = session.files(".sst");
    let rows = text(&generation(1));
    let (first, rest) = rows.split_at(rows.len() / 2);
    let mut child = session.start(&["import", "db", "t", "-", "--format", "tsv"]);
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(first.as_bytes()).expect("larch reads");
    // The program catches ^C before it writes its first file.
    while session.files(".sst") == files {
        assert!(child.try_wait().expect("it was started").is_none(), "it waits for more");
        std::thread::yield_now();
    }
    interrupt(&child);
    let wait = wait_for(&mut child, "giving up; once more ends at once");
    // The program may end before it has read all bytes.
    stdin.write_all(rest.as_bytes()).ok();
    drop(stdin);
    let ran = wait(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(ran.err.contains("the import was cancelled"), "{}", ran.err);
    assert_eq!(session.files(".sst"), files, "what was written is removed before the process ends");
    session.is_sound();
    assert!(session.scan(&[]) == text(&there));
}

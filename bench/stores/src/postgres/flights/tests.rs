//! Tests of many requests under way on a real server.

use super::*;
use crate::postgres::address::Address;
use crate::postgres::server::Server;
use crate::postgres::server::tests::{shared, start};
use crate::postgres::store::Postgres;
use crate::postgres::tls::tests::{encrypted, url};
use harness::{Fields, Harm, Opening, Store, Strings, Table};

/// The result of a request, with its rows.
#[derive(Debug)]
struct Answer {
    result: Result<Outcome, Failure>,
    rows: Vec<(Vec<u8>, Strings)>,
    sent: u64,
    served: u64,
}

/// A table of `fields` fields for one test, used over `connections` connections with `pipeline` requests each.
fn open(server: &Server, table: &str, fields: usize, connections: u32, pipeline: u32, more: &str) -> Postgres {
    open_at(&server.url("postgres"), table, fields, connections, pipeline, more)
}

/// The same, with an address of the server.
fn open_at(url: &str, table: &str, fields: usize, connections: u32, pipeline: u32, more: &str) -> Postgres {
    let url = format!("{url}&connections={connections}&pipeline={pipeline}{more}");
    let address = Address::parse(&url, |_| None).expect("a good address");
    Postgres::open(address, &Table::numbered(table, "field", fields), Opening::Recreate).expect("the server runs")
}

/// A session like those of the store, but with replies that keep all their rows.
fn session(store: &Postgres) -> Session<'_> {
    let mut session = store.flights(Clock::start()).expect("the server runs");
    session.lines.iter_mut().for_each(|line| line.reply = Reply::keeping());
    session
}

/// Starts all requests, in slots from 0, and waits for their answers.
fn ask(session: &mut Session<'_>, requests: &[Request<'_>]) -> Vec<Answer> {
    for (slot, request) in requests.iter().enumerate() {
        session.start(slot as u32, request).expect("the session lives");
    }
    collect(session, requests.len()).expect("the session lives")
}

fn collect(session: &mut Session<'_>, count: usize) -> Result<Vec<Answer>, Failure> {
    let mut answers: Vec<Option<Answer>> = (0..count).map(|_| None).collect();
    let mut missing = count;
    while missing > 0 {
        session.wait(None, &mut |served| {
            let rows = served.reply.kept().to_vec();
            let answer = Answer { result: served.result, rows, sent: served.sent, served: served.served };
            let before = answers[served.slot as usize].replace(answer);
            assert!(before.is_none(), "slot {} was answered twice", served.slot);
            missing -= 1;
        })?;
    }
    Ok(answers.into_iter().map(|answer| answer.expect("none is missing")).collect())
}

fn record(values: &[&[u8]]) -> Strings {
    let mut record = Strings::new();
    values.iter().for_each(|value| record.push(value));
    record
}

fn rows(rows: &[(&str, &[&[u8]])]) -> Vec<(Vec<u8>, Strings)> {
    rows.iter().map(|(key, values)| (key.as_bytes().to_vec(), record(values))).collect()
}

fn outcome(answer: &Answer) -> Outcome {
    answer.result.clone().expect("it did not fail")
}

fn kind(answer: &Answer) -> &'static str {
    match &answer.result {
        Ok(_) => "",
        Err(failure) => failure.kind,
    }
}

#[test]
fn every_request_does_what_it_says() {
    for (number, (connections, pipeline)) in [(1, 1), (1, 6), (3, 1), (3, 4)].into_iter().enumerate() {
        let store = open(shared(), &format!("requests{number}"), 2, connections, pipeline, "");
        let mut session = session(&store);
        assert_eq!(session.depth(), (connections * pipeline) as usize);
        let mut one = |request: Request<'_>| {
            let answer = ask(&mut session, &[request]).pop().expect("there is one answer");
            assert!(answer.sent <= answer.served);
            (answer.result.expect("it did not fail"), answer.rows)
        };
        let all = Fields::All;
        for (key, first, second) in [("b", "b0", "b1"), ("a", "", "a1"), ("c", "c0", ""), ("B", "B0", "B1")] {
            let row = record(&[first.as_bytes(), second.as_bytes()]);
            assert_eq!(one(Request::Insert { key: key.as_bytes(), record: &row }), (Outcome::Ok, Vec::new()));
        }
        assert_eq!(one(Request::Read { key: b"a", fields: all }), (Outcome::Ok, rows(&[("a", &[b"", b"a1"])])));
        let second = Fields::One(1);
        assert_eq!(one(Request::Read { key: b"b", fields: second }), (Outcome::Ok, rows(&[("b", &[b"b1"])])));
        assert_eq!(one(Request::Read { key: b"d", fields: all }), (Outcome::NotFound, Vec::new()));

        let keys = record(&[b"c", b"d", b"a", b"c"]);
        let (many, mut found) = one(Request::ReadMany { keys: &keys, fields: second });
        found.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!((many, found), (Outcome::Ok, rows(&[("a", &[b"a1"]), ("c", &[b""]), ("c", &[b""])])));

        // Keys are in byte order, so capital letters come first.
        let scan = |start, rows| Request::Scan { start, rows, fields: Fields::One(0) };
        assert_eq!(one(scan(b"", 2)), (Outcome::Ok, rows(&[("B", &[b"B0"]), ("a", &[b""])])));
        assert_eq!(one(scan(b"aa", 9)), (Outcome::Ok, rows(&[("b", &[b"b0"]), ("c", &[b"c0"])])));
        assert_eq!(one(scan(b"x", 9)), (Outcome::Ok, Vec::new()));

        assert_eq!(one(Request::Update { key: b"a", field: 0, value: b"new" }).0, Outcome::Ok);
        assert_eq!(one(Request::Update { key: b"d", field: 0, value: b"new" }).0, Outcome::NotFound);
        let other = record(&[b"x", b"y"]);
        assert_eq!(one(Request::Replace { key: b"b", record: &other }).0, Outcome::Ok);
        assert_eq!(one(Request::Replace { key: b"d", record: &other }).0, Outcome::NotFound);
        assert_eq!(one(Request::Delete { key: b"c" }).0, Outcome::Ok);
        assert_eq!(one(Request::Delete { key: b"c" }).0, Outcome::NotFound);
        let left = Request::Scan { start: b"a", rows: 9, fields: all };
        assert_eq!(one(left), (Outcome::Ok, rows(&[("a", &[b"new", b"a1"]), ("b", &[b"x", b"y"])])));
    }
}

#[test]
fn an_error_among_others_is_of_its_request_alone() {
    for (number, more) in ["", "&default_transaction_isolation=serializable"].into_iter().enumerate() {
        let store = open(shared(), &format!("errors{number}"), 1, 1, 16, more);
        let mut session = session(&store);
        let value = record(&[b"v"]);
        let insert = |key| Request::Insert { key, record: &value };
        let read = |key| Request::Read { key, fields: Fields::All };
        // PostgreSQL's text cannot contain a zero byte.
        let bad: &[u8] = b"\0";
        ask(&mut session, &[insert(b"1"), insert(b"2")]);
        let answers = ask(
            &mut session,
            &[
                read(b"1"),
                read(bad),
                read(b"2"),
                read(bad),
                read(b"3"),
                insert(b"4"),
                insert(b"1"),
                insert(b"5"),
                read(b"1"),
                read(bad),
                Request::Update { key: b"2", field: 0, value: b"w" },
                read(bad),
            ],
        );
        let kinds: Vec<&str> = answers.iter().map(kind).collect();
        let refused = "character_not_in_repertoire";
        let expected = ["", refused, "", refused, "", "", "unique_violation", "", "", refused, "", refused];
        assert_eq!(kinds, expected);
        assert!(answers.iter().all(|answer| answer.result.as_ref().err().is_none_or(|e| e.harm == Harm::Request)));
        assert_eq!(outcome(&answers[4]), Outcome::NotFound);
        assert_eq!(answers[0].rows, rows(&[("1", &[b"v"])]));
        assert_eq!(answers[8].rows, rows(&[("1", &[b"v"])]));
        let there = ask(&mut session, &[Request::Scan { start: b"", rows: 9, fields: Fields::All }]);
        let expected = rows(&[("1", &[b"v"]), ("2", &[b"w"]), ("4", &[b"v"]), ("5", &[b"v"])]);
        assert_eq!(there[0].rows, expected);
    }
}

/// The expected answer to a request: the kind of failure (empty for success), the outcome, and the value of the row
/// that was read.
type Expected = (&'static str, Outcome, Option<Vec<u8>>);

#[test]
fn no_answer_goes_astray_among_random_requests() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    println!("to run this again: SEED={seed} cargo test -p larch-bench-stores astray");
    let mut state = seed;
    let mut random = move |below: u64| {
        // Xorshift (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let plain = shared().url("postgres");
    let encrypted = format!("{}&sslmode=require", url(&encrypted().0));
    let places = [(&plain, 1, 9), (&plain, 4, 3), (&plain, 5, 1), (&encrypted, 1, 9), (&encrypted, 4, 3)];
    for (number, (place, connections, pipeline)) in places.into_iter().enumerate() {
        let store = open_at(place, &format!("astray{number}"), 1, connections, pipeline, "&synchronous_commit=off");
        let mut session = session(&store);
        let depth = session.depth();
        // Each slot has a key of its own, so the expected row is known.
        let mut model: Vec<Option<Vec<u8>>> = vec![None; depth];
        let mut expected: Vec<Option<Expected>> = vec![None; depth];
        let mut left = 3_000;
        let mut under_way = 0;
        while left > 0 || under_way > 0 {
            for slot in 0..depth {
                if expected[slot].is_some() || left == 0 || random(3) == 0 {
                    continue;
                }
                let key = format!("key{slot}");
                let key = key.as_bytes();
                let value = vec![b'a' + random(26) as u8; random(200) as usize];
                let row = record(&[&value]);
                let found = if model[slot].is_some() { Outcome::Ok } else { Outcome::NotFound };
                let (request, answer) = match random(8) {
                    0..3 => (Request::Read { key, fields: Fields::All }, ("", found, model[slot].clone())),
                    3 => {
                        let kind = if model[slot].is_some() { "unique_violation" } else { "" };
                        model[slot].get_or_insert_with(|| value.clone());
                        (Request::Insert { key, record: &row }, (kind, Outcome::Ok, None))
                    }
                    4 => {
                        model[slot].iter_mut().for_each(|old| old.clone_from(&value));
                        (Request::Update { key, field: 0, value: &value }, ("", found, None))
                    }
                    5 => {
                        model[slot] = None;
                        (Request::Delete { key }, ("", found, None))
                    }
                    6 => {
                        let bad = Request::Read { key: b"\0", fields: Fields::All };
                        (bad, ("character_not_in_repertoire", Outcome::Ok, None))
                    }
                    _ => {
                        let bad = Request::Update { key, field: 0, value: b"\xff" };
                        (bad, ("character_not_in_repertoire", Outcome::Ok, None))
                    }
                };
                session.start(slot as u32, &request).expect("the session lives");
                expected[slot] = Some(answer);
                under_way += 1;
                left -= 1;
            }
            let waited = session.wait(None, &mut |served| {
                let slot = served.slot as usize;
                let (kind, outcome, value) = expected[slot].take().expect("it is under way");
                match served.result {
                    Ok(found) => assert_eq!((kind, found), ("", outcome), "seed {seed}"),
                    Err(failure) => assert_eq!(failure.kind, kind, "seed {seed}: {failure}"),
                }
                let found = served.reply.kept().first().map(|(key, row)| {
                    assert_eq!(key, format!("key{slot}").as_bytes(), "seed {seed}");
                    row.get(0).expect("a row has a field").to_vec()
                });
                assert_eq!(found, value, "seed {seed}");
                under_way -= 1;
            });
            waited.expect("the session lives");
        }
    }
}

#[test]
fn keys_and_values_come_back_as_they_were_or_are_refused() {
    keys_and_values_come_back(&open(shared(), "odd", 1, 2, 4, ""));
    let encrypted = format!("{}&sslmode=require", url(&encrypted().0));
    // One connection waits in another way than several.
    for (connections, pipeline) in [(1, 4), (2, 4)] {
        keys_and_values_come_back(&open_at(&encrypted, "odd", 1, connections, pipeline, ""));
    }
}

fn keys_and_values_come_back(store: &Postgres) {
    let mut session = session(store);
    // An incompressible value that is too long for an index entry.
    let mut state = 1_u32;
    let mut letter = || {
        // A linear congruential generator (Knuth).
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'!' + (state >> 24) as u8 % 90
    };
    let long: Vec<u8> = (0..8_000).map(|_| letter()).collect();
    let large = vec![b'v'; 3 << 20];
    for (key, value, expected) in [
        (b"".as_slice(), b"empty key".as_slice(), ""),
        (b"empty", b"", ""),
        (b"quotes'\"\\", b"'; DROP TABLE odd; --", ""),
        ("schl\u{fc}ssel \u{1f333}".as_bytes(), "\u{e4}".as_bytes(), ""),
        (b"large", &large, ""),
        (&long, b"x", "program_limit_exceeded"),
        (b"zero", b"a\0b", "character_not_in_repertoire"),
        (b"\xff\xfe", b"no utf-8", "character_not_in_repertoire"),
    ] {
        let row = record(&[value]);
        let insert = ask(&mut session, &[Request::Insert { key, record: &row }]);
        assert_eq!(kind(&insert[0]), expected, "{:?}", insert[0].result);
        if expected.is_empty() {
            let read = ask(&mut session, &[Request::Read { key, fields: Fields::One(0) }]);
            assert_eq!(read[0].rows, [(key.to_vec(), row)]);
        }
    }
}

#[test]
fn more_than_a_socket_holds_goes_through_in_pieces() {
    for (table, connections) in [("choked1", 1), ("choked2", 2)] {
        let store = open(shared(), table, 1, connections, 20, "&synchronous_commit=off");
        let mut session = session(&store);
        let depth = session.depth();
        let values: Vec<Strings> = (0..depth).map(|at| record(&[&vec![b'a' + (at % 26) as u8; 500_000]])).collect();
        let keys: Vec<String> = (0..depth).map(|at| format!("{at:03}")).collect();
        let insert = |at: usize| Request::Insert { key: keys[at].as_bytes(), record: &values[at] };
        let inserts: Vec<Request<'_>> = (0..depth).map(insert).collect();
        assert!(ask(&mut session, &inserts).iter().all(|answer| answer.result.is_ok()));
        // The answers arrive together. If one is an error, the session repeats the requests that got no answer
        // because of it.
        let read = |at: usize| {
            let key = if at == depth / 2 { b"\0" } else { keys[at].as_bytes() };
            Request::Read { key, fields: Fields::All }
        };
        let reads: Vec<Request<'_>> = (0..depth).map(read).collect();
        for (at, answer) in ask(&mut session, &reads).iter().enumerate() {
            if at == depth / 2 {
                assert_eq!(kind(answer), "character_not_in_repertoire");
            } else {
                assert_eq!(answer.rows, [(keys[at].as_bytes().to_vec(), values[at].clone())]);
            }
        }
    }
}

#[test]
fn a_wait_ends_at_its_time_with_or_without_answers() {
    for (table, connections) in [("until1", 1), ("until2", 2)] {
        let store = open(shared(), table, 1, connections, 1, "");
        let mut session = session(&store);
        let nobody = &mut |served: Served<'_>| panic!("nothing can be answered: {served:?}");
        session.wait(None, nobody).expect("the session lives");
        session.wait(Some(0), nobody).expect("the session lives");
        for micros in [300, 3_000] {
            let until = session.clock.nanos() + micros * 1_000;
            session.wait(Some(until), nobody).expect("the session lives");
            assert!(session.clock.nanos() >= until);
        }

        let mut other = shared().connect().expect("it runs");
        other.query(&format!("BEGIN; LOCK TABLE {table}")).expect("it is SQL");
        session.start(0, &Request::Read { key: b"k", fields: Fields::All }).expect("the session lives");
        for micros in [0, 300, 3_000, 150_000] {
            let until = session.clock.nanos() + micros * 1_000;
            session.wait(Some(until), nobody).expect("the session lives");
            assert!(session.clock.nanos() >= until);
        }
        other.query("COMMIT").expect("it is SQL");
        let answers = collect(&mut session, 1).expect("the session lives");
        assert_eq!(outcome(&answers[0]), Outcome::NotFound);
        assert!(answers[0].served - answers[0].sent > 150_000_000, "it waited for the lock: {answers:?}");
    }
}

#[test]
fn a_conflict_may_be_tried_again() {
    let store = open(shared(), "conflict", 1, 1, 1, "&default_transaction_isolation=repeatable%20read");
    let mut session = session(&store);
    let row = record(&[b"v"]);
    ask(&mut session, &[Request::Insert { key: b"k", record: &row }]);
    let mut other = shared().connect().expect("it runs");
    other.query("BEGIN; UPDATE conflict SET field0 = 'theirs'").expect("it is SQL");
    let update = Request::Update { key: b"k", field: 0, value: b"ours" };
    session.start(0, &update).expect("the session lives");
    session.wait(Some(0), &mut |_| panic!("it waits for the other")).expect("the session lives");
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%\"conflict\"%'";
    let mut observer = shared().connect().expect("it runs");
    while observer.value(waits).expect("it is counted") == "0" {}
    other.query("COMMIT").expect("it is SQL");
    let answers = collect(&mut session, 1).expect("the session lives");
    let failure = answers[0].result.as_ref().expect_err("the other was first");
    assert_eq!((failure.kind, failure.harm), ("serialization_failure", Harm::Again));
    assert_eq!(outcome(&ask(&mut session, &[update])[0]), Outcome::Ok);
}

#[test]
fn a_server_that_dies_loses_the_session_and_says_so() {
    for (connections, pipeline) in [(1, 1), (1, 4), (3, 2)] {
        let mut server = start(&[], None);
        let store = open(&server, "t", 1, connections, pipeline, "");
        let mut session = session(&store);
        let mut other = server.connect().expect("it runs");
        other.query("BEGIN; LOCK TABLE t").expect("it is SQL");
        for slot in 0..session.depth() as u32 {
            session.start(slot, &Request::Read { key: b"k", fields: Fields::All }).expect("the session lives");
        }
        session.wait(Some(0), &mut |_| panic!("the table is locked")).expect("the session lives");
        server.kill().expect("it runs");
        let depth = session.depth();
        let failure = collect(&mut session, depth).expect_err("nobody answers");
        assert_eq!(failure.harm, Harm::Session);
        assert!(["connection_lost", "crash_shutdown", "admin_shutdown"].contains(&failure.kind), "{failure:?}");
        assert!(failure.text.contains(&server.socket_directory().display().to_string()), "{failure}");
        let next = session.start(0, &Request::Read { key: b"k", fields: Fields::All });
        assert_eq!(next.expect_err("the session is lost").kind, failure.kind);
        assert_eq!(store.is_empty().expect_err("nobody answers").harm, Harm::Session);
    }
}

#[test]
fn a_session_that_the_server_ends_says_who_ended_it() {
    let store = open(shared(), "ended", 1, 2, 1, "&application_name=ended");
    let mut session = session(&store);
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
               WHERE application_name = 'ended' AND query LIKE 'SELECT ycsb_key%'";
    let mut other = shared().connect().expect("it runs");
    ask(&mut session, &[Request::Scan { start: b"", rows: 1, fields: Fields::All }]);
    other.query(end).expect("the superuser may");
    for slot in 0..2 {
        session.start(slot, &Request::Read { key: b"k", fields: Fields::All }).expect("not seen yet");
    }
    let failure = collect(&mut session, 2).expect_err("one of them is gone");
    assert_eq!((failure.kind, failure.harm), ("admin_shutdown", Harm::Session));
}

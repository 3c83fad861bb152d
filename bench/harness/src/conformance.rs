//! Tests what every store promises. Each store runs these tests on itself. [`check`] tests rows,
//! [`check_transactions`] tests stores that have transactions, and [`check_commits`] tests stores that have commits
//! in flight. [`check_directory`] tests stores that keep their files in a directory. The tests panic if a promise
//! is broken.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests of stores on the machine's own files")]

use crate::clock::Clock;
use crate::failure::{Failure, Harm};
use crate::partitions::PartitionRequest;
use crate::reply::Reply;
use crate::request::{Fields, Request, Table};
use crate::store::{Outcome, Rows, Session, Store};
use crate::strings::Strings;
use crate::target::{Opening, Scheme, Target};
use crate::transactions::{Checked, Ended};
pub use kit::Scratch;
use std::collections::BTreeMap;
use std::path::Path;

/// The rows by key, as the store should have them.
type Model = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// The bytes that a store allows in keys and fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Any bytes.
    Bytes,
    /// Letters and digits.
    Text,
}

/// Checks the store that `target` names: every request, with rows of one field and of ten, bulk load, and several
/// threads. Also checks that the rows are still there when the store is opened again. All earlier contents of the
/// store are lost.
pub fn check(scheme: &Scheme, target: &str, content: Content) {
    for fields in [1, 10] {
        let test = Test {
            scheme,
            target: Target::parse(target).expect("a good target"),
            table: Table::numbered("conformance", "field", fields),
            content,
        };
        test.describes_itself();
        test.each_request_does_what_it_says();
        test.random_requests_agree_with_a_map();
        test.threads_see_what_others_wrote();
        test.loads_and_bulk_loads();
    }
}

/// Checks that a store refuses a directory that it cannot open, and says why. `options` follow the directory's name,
/// and begin with a question mark.
pub fn check_directory(scheme: &Scheme, options: &str) {
    let scratch = Scratch::new(&format!("{}-directory", scheme.name));
    let table = Table::numbered("conformance", "field", 1);
    let open = |place: &Path, options: &str, opening| {
        let target = Target::parse(&format!("{}:{}{options}", scheme.name, place.display())).expect("a good target");
        (scheme.open)(&target, &table, opening)
    };
    let refused = |place: &Path, options: &str, opening, kind: &str| match open(place, options, opening) {
        Ok(_) => panic!("{} opened {opening:?} {} should have been refused: {kind}", scheme.name, place.display()),
        Err(why) => {
            assert_eq!(why.kind, kind, "{why}");
            assert!(kind == "target" || why.text.contains(&*place.to_string_lossy()), "names no place: {why}");
        }
    };

    let unknown = format!("{}no_such_option=1", if options.is_empty() { "?" } else { "&" });
    refused(scratch.path(), &format!("{options}{unknown}"), Opening::OrCreate, "target");
    refused(&scratch.path().join("none"), options, Opening::Existing, "no_store");
    let foreign = scratch.path().join("foreign");
    std::fs::create_dir(&foreign).expect("made");
    std::fs::write(foreign.join("letter"), "dear").expect("written");
    for opening in [Opening::Existing, Opening::OrCreate, Opening::Recreate] {
        refused(&foreign, options, opening, "not_a_store");
    }
    assert_eq!(std::fs::read_to_string(foreign.join("letter")).expect("still there"), "dear");
    let file = scratch.path().join("file");
    std::fs::write(&file, "not a directory").expect("written");
    refused(&file, options, Opening::OrCreate, "io");

    let place = scratch.path().join("store");
    let store = open(&place, options, Opening::OrCreate).expect("opened");
    refused(&place, options, Opening::Existing, "locked");
    refused(&place, options, Opening::Recreate, "locked");
    store.close().expect("closed");
    open(&place, options, Opening::Existing).expect("opened again").close().expect("closed");
}

/// Opens stores of `scheme` as `target` says, and checks their transactions.
pub fn check_transactions(scheme: &Scheme, target: &str) {
    const THREADS: u64 = 4;
    const INCREMENTS: u64 = 200;
    let target = Target::parse(target).expect("a good target");
    let store = (scheme.open)(&target, &Table::numbered("t", "f", 1), Opening::Recreate).expect("opened");
    for (checked, counter) in [(Checked::Writes, b"a"), (Checked::ReadsAndWrites, b"b")] {
        let begin = || store.transactions(checked).expect("the store has transactions");
        let mut session = begin();
        let missing = session.together(counter, b"1").expect_err("there is no such row");
        assert_eq!(missing.kind, "missing", "{missing}");
        assert_eq!(session.count(counter).expect("a counter"), 0, "a transaction that fails writes nothing");
        assert_eq!(session.apart(counter, b"1").expect_err("there is no such row").kind, "missing");

        assert_eq!(session.increment(counter).expect("nothing else happens"), 1);
        assert_eq!(session.together(counter, &7_u64.to_le_bytes()).expect("it is there"), Ended::Committed);
        assert_eq!(session.count(counter).expect("a counter"), 7);
        session.apart(counter, b"text").expect("it is there");
        assert_eq!(session.count(counter).expect_err("it is a text").kind, "not_a_number");
        assert_eq!(session.increment(counter).expect_err("it is a text").kind, "not_a_number");
        session.apart(counter, &0_u64.to_le_bytes()).expect("it is there");

        let increment = || {
            let mut session = begin();
            (0..INCREMENTS).for_each(|_| assert!(session.increment(counter).expect("it gets through") >= 1));
        };
        std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(increment))));
        assert_eq!(session.count(counter).expect("a counter"), THREADS * INCREMENTS, "none is lost");
    }
    store.close().expect("closed");
}

/// Opens stores of `scheme` as `target` says, and checks their commits. For each number in `depths`, makes commits
/// of which at most this number are in flight, and checks that no commit is lost.
pub fn check_commits(scheme: &Scheme, target: &str, depths: &[usize]) {
    const PUTS: u64 = 100;
    let target = Target::parse(target).expect("a good target");
    let table = Table::numbered("t", "f", 1);
    let store = (scheme.open)(&target, &table, Opening::Recreate).expect("opened");
    let key = |depth: usize, number: u64| [&depth.to_be_bytes()[..], &(number % 70).to_be_bytes()].concat();
    for &depth in depths {
        let mut commits = store.commits(depth).expect("the store has such commits");
        for number in 0..PUTS {
            commits.put(&key(depth, number), &number.to_le_bytes()).expect("it takes a row");
        }
        commits.finish().expect("they become durable");
    }
    store.close().expect("closed");
    let store = (scheme.open)(&target, &table, Opening::Existing).expect("opened again");
    let mut session = store.transactions(Checked::Writes).expect("the store has transactions");
    for &depth in depths {
        for number in PUTS - 70..PUTS {
            assert_eq!(session.count(&key(depth, number)).expect("a number"), number, "{depth} in flight");
        }
    }
    drop(session);
    store.close().expect("closed");
}

struct Test<'t> {
    scheme: &'t Scheme,
    target: Target,
    table: Table,
    content: Content,
}

/// The answer to a request.
struct Answered {
    outcome: Outcome,
    /// All rows of the answer, if the reply can keep them. Otherwise only the last row.
    rows: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    count: u64,
}

impl Test<'_> {
    fn open(&self, opening: Opening) -> Box<dyn Store> {
        (self.scheme.open)(&self.target, &self.table, opening)
            .unwrap_or_else(|why| panic!("{} does not open {opening:?}: {why}", self.target.text))
    }

    fn fields(&self) -> usize {
        self.table.fields.len()
    }

    /// The key of row `number`. The keys have the same order as their numbers.
    fn key(&self, number: u64) -> Vec<u8> {
        format!("key{number:08}").into_bytes()
    }

    /// A row that only `number` has. Its fields have several lengths.
    fn record(&self, number: u64) -> Vec<Vec<u8>> {
        let field = |field: usize| match self.content {
            Content::Text => format!("value{number}of{field}").repeat(1 + field % 3).into_bytes(),
            Content::Bytes => (0..(number as usize * 7 + field * 13) % 300)
                .map(|at| (number as usize + field + at * (field + 1)) as u8)
                .collect(),
        };
        (0..self.fields()).map(field).collect()
    }

    fn describes_itself(&self) {
        let store = self.open(Opening::Recreate);
        let settings = store.settings();
        let networked: &[&str] = if self.scheme.networked { &[] } else { &["cache", "compression"] };
        for wanted in ["engine", "durability"].iter().chain(networked) {
            let found = settings.iter().filter(|setting| setting.name == *wanted);
            let found: Vec<&str> = found.map(|setting| setting.value.as_str()).collect();
            assert!(found.len() == 1 && !found[0].is_empty(), "setting `{wanted}`: {found:?}");
        }
        let counters = store.counters();
        for (at, counter) in counters.iter().enumerate() {
            assert!(counters[..at].iter().all(|before| before.name != counter.name), "twice: {}", counter.name);
        }
        assert_eq!(
            store.counters().iter().map(|counter| counter.name).collect::<Vec<_>>(),
            counters.iter().map(|counter| counter.name).collect::<Vec<_>>(),
            "the same counters each time, in the same order"
        );
        store.close().expect("closed");
    }

    fn each_request_does_what_it_says(&self) {
        let store = self.open(Opening::Recreate);
        assert!(store.is_empty().expect("asked"), "made anew");
        let mut session = store.session(Clock::start()).expect("a session");
        let (ada, alan) = (self.record(1), self.record(2));
        let read = |session: &mut Session<'_>, key: &[u8], fields| call(session, &Request::Read { key, fields });
        let absent = read(&mut session, b"ada", Fields::All);
        assert_eq!((absent.outcome, absent.count), (Outcome::NotFound, 0));

        let insert = Request::Insert { key: b"ada", record: &strings(&ada) };
        assert_eq!(call(&mut session, &insert).outcome, Outcome::Ok);
        assert!(!store.is_empty().expect("asked"), "a row is in it");
        assert_eq!(read(&mut session, b"ada", Fields::All).rows, [(b"ada".to_vec(), ada.clone())]);
        for (number, field) in ada.iter().enumerate() {
            let one = read(&mut session, b"ada", Fields::One(number as u32));
            assert_eq!(one.rows, [(b"ada".to_vec(), vec![field.clone()])], "field {number}");
        }
        for near in [&b"ad"[..], b"ada0", b"adb"] {
            assert_eq!(read(&mut session, near, Fields::All).outcome, Outcome::NotFound, "{near:?}");
        }

        let replace = Request::Replace { key: b"ada", record: &strings(&alan) };
        assert_eq!(call(&mut session, &replace).outcome, Outcome::Ok);
        assert_eq!(read(&mut session, b"ada", Fields::All).rows, [(b"ada".to_vec(), alan.clone())]);

        let mut changed = alan;
        for number in 0..self.fields() {
            changed[number] = self.record(100 + number as u64).swap_remove(number);
            let update = Request::Update { key: b"ada", field: number as u32, value: &changed[number] };
            assert_eq!(call(&mut session, &update).outcome, Outcome::Ok);
            assert_eq!(read(&mut session, b"ada", Fields::All).rows, [(b"ada".to_vec(), changed.clone())]);
        }
        if self.fields() > 1 {
            let update = Request::Update { key: b"nobody", field: 1, value: b"x" };
            assert_eq!(call(&mut session, &update).outcome, Outcome::NotFound);
        }

        self.refuses_what_it_was_not_opened_for(&mut session);
        assert_eq!(call(&mut session, &Request::Delete { key: b"ada" }).outcome, Outcome::Ok);
        assert_eq!(read(&mut session, b"ada", Fields::All).outcome, Outcome::NotFound);
        let again = call(&mut session, &Request::Delete { key: b"ada" }).outcome;
        assert!(matches!(again, Outcome::Ok | Outcome::NotFound), "{again:?}");
        finish(&mut session);
        drop(session);
        assert!(store.is_empty().expect("asked"), "its only row was deleted");
        store.close().expect("closed");
    }

    /// The session of a store that was opened for the rows of one table must refuse other requests, and say what the
    /// store was not opened for. After that, the session still works.
    fn refuses_what_it_was_not_opened_for(&self, session: &mut Session<'_>) {
        let scan = PartitionRequest::Scan { part: 0, parts: 1 };
        for (request, kind) in
            [(Request::Partition(scan), "no_partitions"), (Request::Transaction(b"any"), "no_transactions")]
        {
            match try_call(session, &request) {
                Ok(_) => panic!("{} has taken {request:?}", self.scheme.name),
                Err(why) => assert_eq!((why.kind, why.harm), (kind, Harm::Request), "{why}"),
            }
        }
    }

    /// Makes 3,000 requests on few keys. Some keys are prefixes of other keys, and some keys have bytes of all
    /// kinds.
    fn random_requests_agree_with_a_map(&self) {
        let store = self.open(Opening::Recreate);
        let mut keys: Vec<Vec<u8>> = (0..40).map(|number| self.key(number)).collect();
        for key in [&b"k"[..], b"key", b"key00000003x", b"l"] {
            keys.push(key.to_vec());
        }
        if self.content == Content::Bytes {
            for key in [&b"\0"[..], b"\0\0", b"key\0", b"key\xff", b"\xff", b"\xff\xff\xff"] {
                keys.push(key.to_vec());
            }
            keys.push((0..=255).collect());
        }
        let seed = 1;
        let mut random = Random(seed);
        let mut model = Model::new();
        let mut session = store.session(Clock::start()).expect("a session");
        for step in 0..3000 {
            let key = &keys[random.below(keys.len())];
            let record = match self.content {
                Content::Bytes if random.below(20) == 0 => vec![(0..=255).collect(); self.fields()],
                _ => self.record(step),
            };
            match random.below(10) {
                0 | 1 if !model.contains_key(key) => {
                    call(&mut session, &Request::Insert { key, record: &strings(&record) });
                    model.insert(key.clone(), record);
                }
                0..=2 if model.contains_key(key) => {
                    call(&mut session, &Request::Replace { key, record: &strings(&record) });
                    model.insert(key.clone(), record);
                }
                3 if model.contains_key(key) => {
                    let field = random.below(self.fields());
                    call(&mut session, &Request::Update { key, field: field as u32, value: &record[field] });
                    model.get_mut(key).expect("it is there")[field].clone_from(&record[field]);
                }
                4 => {
                    call(&mut session, &Request::Delete { key });
                    model.remove(key);
                }
                5 | 6 => {
                    let rows = random.below(12) as u64;
                    let start: &[u8] = if random.below(5) == 0 { b"" } else { key };
                    let fields = self.some_fields(&mut random);
                    let answer = call(&mut session, &Request::Scan { start, rows, fields });
                    let expected = model.range(start.to_vec()..).take(rows as usize);
                    let expected: Vec<_> = expected.map(|row| asked(row, fields)).collect();
                    self.agree(&answer, &expected, &format!("step {step}: scan {rows} from {start:?}"));
                }
                7 => {
                    let fields = self.some_fields(&mut random);
                    let wanted: Vec<&[u8]> =
                        (0..random.below(20)).map(|_| keys[random.below(keys.len())].as_slice()).collect();
                    let mut list = Strings::new();
                    wanted.iter().for_each(|key| list.push(key));
                    let answer = call(&mut session, &Request::ReadMany { keys: &list, fields });
                    let mut expected: Vec<_> = wanted.iter().filter_map(|key| model.get_key_value(*key)).collect();
                    expected.sort();
                    let expected: Vec<_> = expected.into_iter().map(|row| asked(row, fields)).collect();
                    assert_eq!(answer.count, expected.len() as u64, "step {step}: read of many");
                    if answer.rows.len() == expected.len() {
                        let mut rows = answer.rows;
                        rows.sort();
                        assert_eq!(rows, expected, "step {step}: read of many, in any order");
                    }
                }
                _ => {
                    let fields = self.some_fields(&mut random);
                    let answer = call(&mut session, &Request::Read { key, fields });
                    let expected: Vec<_> = model.get_key_value(key).into_iter().map(|row| asked(row, fields)).collect();
                    assert_eq!(answer.outcome == Outcome::Ok, !expected.is_empty(), "step {step}: read {key:?}");
                    self.agree(&answer, &expected, &format!("step {step}: read {key:?}"));
                }
            }
        }
        finish(&mut session);
        drop(session);
        store.settle().expect("settled");
        self.has(&*store, &model);
        store.close().expect("closed");
        let store = self.open(Opening::Existing);
        self.has(&*store, &model);
        store.close().expect("closed");
        let store = self.open(Opening::OrCreate);
        self.has(&*store, &model);
        store.close().expect("closed");
    }

    fn threads_see_what_others_wrote(&self) {
        const THREADS: u64 = 4;
        const ROWS: u64 = 100;
        let store = self.open(Opening::Recreate);
        let mut session = store.session(Clock::start()).expect("a session");
        let last = self.key(THREADS * ROWS);
        // Some stores can replace only rows that exist.
        call(&mut session, &Request::Insert { key: &last, record: &strings(&self.record(0)) });
        finish(&mut session);
        drop(session);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (store, last) = (&*store, &last);
                scope.spawn(move || {
                    let mut session = store.session(Clock::start()).expect("a session");
                    for number in (0..ROWS).map(|row| row * THREADS + thread) {
                        let (key, record) = (self.key(number), strings(&self.record(number)));
                        until_done(&mut session, &Request::Insert { key: &key, record: &record });
                        until_done(&mut session, &Request::Read { key: &key, fields: Fields::All });
                        // All threads write the same row.
                        until_done(&mut session, &Request::Replace { key: last, record: &record });
                    }
                    finish(&mut session);
                });
            }
        });
        let mut session = store.session(Clock::start()).expect("a session");
        let answer = call(&mut session, &Request::Read { key: &last, fields: Fields::All });
        let possible = (0..THREADS).map(|thread| self.record((ROWS - 1) * THREADS + thread));
        assert!(possible.into_iter().any(|record| answer.rows == [(last.clone(), record)]), "one of the last writes");
        call(&mut session, &Request::Delete { key: &last });
        finish(&mut session);
        drop(session);
        self.has(&*store, &(0..THREADS * ROWS).map(|number| (self.key(number), self.record(number))).collect());
        store.close().expect("closed");
    }

    fn loads_and_bulk_loads(&self) {
        const ROWS: u64 = 1000;
        let model: Model = (0..ROWS).map(|number| (self.key(number), self.record(number))).collect();
        let store = self.open(Opening::Recreate);
        let mut session = store.loader(Clock::start()).expect("a session");
        for number in (0..ROWS).map(|number| number * 7 % ROWS) {
            let (key, record) = (self.key(number), strings(&self.record(number)));
            let outcome = call(&mut session, &Request::Insert { key: &key, record: &record }).outcome;
            assert!(matches!(outcome, Outcome::Ok | Outcome::Batched), "{outcome:?}");
        }
        finish(&mut session);
        drop(session);
        store.settle().expect("settled");
        self.has(&*store, &model);
        store.close().expect("closed");

        let store = self.open(Opening::Recreate);
        assert!(store.is_empty().expect("asked"), "made anew");
        struct All<'m>(std::collections::btree_map::Iter<'m, Vec<u8>, Vec<Vec<u8>>>);
        impl Rows for All<'_> {
            fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
                let Some((next, fields)) = self.0.next() else { return false };
                key.clone_from(next);
                record.clear();
                fields.iter().for_each(|field| record.push(field));
                true
            }
        }
        let loaded = store.bulk_load(&mut All(model.iter())).expect("loaded");
        assert!(loaded.is_none_or(|rows| rows == ROWS), "{loaded:?}");
        if loaded.is_some() {
            self.has(&*store, &model);
            let mut session = store.session(Clock::start()).expect("a session");
            let (key, record) = (self.key(5), strings(&self.record(4)));
            call(&mut session, &Request::Replace { key: &key, record: &record });
            call(&mut session, &Request::Delete { key: &self.key(6) });
            finish(&mut session);
            drop(session);
            let mut model = model;
            model.insert(key, self.record(4));
            model.remove(&self.key(6));
            self.has(&*store, &model);
            store.close().expect("closed");
            let store = self.open(Opening::Existing);
            self.has(&*store, &model);
            store.close().expect("closed");
        } else {
            store.close().expect("closed");
        }
    }

    fn some_fields(&self, random: &mut Random) -> Fields {
        match random.below(2) {
            0 => Fields::All,
            _ => Fields::One(random.below(self.fields()) as u32),
        }
    }

    /// Whether the store has exactly the rows of the model.
    fn has(&self, store: &dyn Store, model: &Model) {
        let mut session = store.session(Clock::start()).expect("a session");
        let answer = call(&mut session, &Request::Scan { start: b"", rows: u64::MAX >> 1, fields: Fields::All });
        let expected: Vec<_> = model.iter().map(|row| asked(row, Fields::All)).collect();
        self.agree(&answer, &expected, "all rows");
        for row in model {
            let answer = call(&mut session, &Request::Read { key: row.0, fields: Fields::All });
            self.agree(&answer, &[asked(row, Fields::All)], "each row");
        }
    }

    fn agree(&self, answer: &Answered, expected: &[(Vec<u8>, Vec<Vec<u8>>)], what: &str) {
        assert_eq!(answer.count, expected.len() as u64, "rows of {what}");
        if answer.rows.len() == expected.len() {
            assert_eq!(answer.rows, expected, "{what}");
        } else {
            assert_eq!(answer.rows.last(), expected.last(), "last row of {what}");
        }
    }
}

/// Makes a request that may not fail.
fn call(session: &mut Session<'_>, request: &Request<'_>) -> Answered {
    try_call(session, request).unwrap_or_else(|why| panic!("{request:?}: {why}"))
}

/// Repeats a request as long as the store says that a repetition may help.
fn until_done(session: &mut Session<'_>, request: &Request<'_>) {
    for _ in 0..1000 {
        match try_call(session, request) {
            Ok(answer) => return assert_eq!(answer.outcome, Outcome::Ok, "{request:?}"),
            Err(why) => assert_eq!(why.harm, Harm::Again, "{request:?}: {why}"),
        }
    }
    panic!("{request:?} fails again and again");
}

fn try_call(session: &mut Session<'_>, request: &Request<'_>) -> Result<Answered, Failure> {
    match session {
        Session::Blocking(session) => {
            let mut reply = Reply::keeping();
            let outcome = session.call(request, &mut reply)?;
            let rows = reply.kept().iter().map(|(key, record)| (key.clone(), owned(record))).collect();
            Ok(Answered { outcome, rows, count: reply.rows() })
        }
        Session::Flights(session) => {
            let mut answer = None;
            session.start(0, request)?;
            while answer.is_none() {
                session.wait(None, &mut |served| {
                    let last =
                        (served.reply.rows() > 0).then(|| (served.reply.key().to_vec(), owned(served.reply.record())));
                    let count = served.reply.rows();
                    answer = Some(served.result.map(|outcome| Answered {
                        outcome,
                        rows: last.into_iter().collect(),
                        count,
                    }));
                })?;
            }
            answer.expect("the loop ended")
        }
    }
}

fn finish(session: &mut Session<'_>) {
    match session {
        Session::Blocking(session) => session.finish(),
        Session::Flights(session) => session.finish(),
    }
    .expect("what was gathered is written");
}

fn strings(fields: &[Vec<u8>]) -> Strings {
    let mut strings = Strings::new();
    fields.iter().for_each(|field| strings.push(field));
    strings
}

fn owned(record: &Strings) -> Vec<Vec<u8>> {
    record.iter().map(<[u8]>::to_vec).collect()
}

/// The part of a row that a read of these fields returns.
fn asked((key, record): (&Vec<u8>, &Vec<Vec<u8>>), fields: Fields) -> (Vec<u8>, Vec<Vec<u8>>) {
    let record = match fields {
        Fields::All => record.clone(),
        Fields::One(field) => vec![record[field as usize].clone()],
    };
    (key.clone(), record)
}

/// The generator xorshift64*. Only its high bits are used.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end as u64) as usize
    }
}

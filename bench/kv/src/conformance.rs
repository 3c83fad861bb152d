//! Tests what every database promises to the key-value driver. Each database calls this test.

#![allow(clippy::disallowed_methods, reason = "sessions add at the same time on threads of a real machine")]

use crate::database::{Content, Database, KvScheme, Setup};
use harness::partitions::{COUNTERS, counters_of};
use harness::{
    Clock, Failure, Flights, Order, Outcome, PartitionRequest, PartitionRows, Request, Session, Strings, Target,
};
use std::collections::BTreeMap;

/// The rows of a partition by clustering key, as a reply returns them.
type Given = Vec<(i64, Vec<u8>)>;

/// Checks `scheme` on `target`. The check makes the tables `kv_values` and `kv_counters` in `target`. It drops them
/// at its end.
///
/// # Panics
///
/// Panics if the database does not keep a promise.
pub fn check(scheme: &KvScheme, target: &str) {
    let target = Target::parse(target).expect("a good target");
    for threads in [1, 2] {
        check_values(scheme, &target, threads);
        check_counters(scheme, &target, threads);
    }
}

fn setup(table: &str, content: Content, threads: usize) -> Setup {
    Setup { table: table.to_owned(), content, concurrency: 7, threads, connections: 3, ..Setup::default() }
}

fn open(scheme: &KvScheme, target: &Target, setup: &Setup) -> Box<dyn Database> {
    (scheme.open)(target, setup).unwrap_or_else(|why| panic!("it does not open: {why}"))
}

/// Partition keys and clustering keys. Some lie at the ends of the range of possible keys, and some in between.
const PKS: [i64; 7] = [i64::MIN, -1, 0, 1, 255, 3 << 32 | 1, i64::MAX];
const CKS: [i64; 9] = [i64::MIN, -1_700_000_000_000_000_000, -256, -1, 0, 1, 2, 65_536, i64::MAX];

fn value(pk: i64, ck: i64) -> Vec<u8> {
    // The values have all lengths from 0 on. Their bytes are not valid text.
    let length = (pk ^ ck).rem_euclid(61) as usize;
    (0..length).map(|at| (pk as u8) ^ (ck as u8).wrapping_add(at as u8)).collect()
}

fn check_values(scheme: &KvScheme, target: &Target, threads: usize) {
    let setup = setup("kv_values", Content::Values, threads);
    let database = open(scheme, target, &setup);
    database.truncate().expect("it truncates");
    assert!(!database.settings().is_empty(), "it says what it is");
    assert!(database.is_empty().expect("it looks"), "a table that was truncated is empty");

    let mut session = Flown::new(&*database, &setup);
    for pk in PKS {
        let (some, rest) = CKS.split_at(4);
        session.insert(pk, some);
        for ck in rest {
            session.insert(pk, &[*ck]);
        }
    }
    drop(session);
    assert!(!database.is_empty().expect("it looks"), "there are rows now");
    database.settle().expect("it settles");

    let mut session = Flown::new(&*database, &setup);
    for pk in PKS {
        check_reads(&mut session, pk, &|ck| value(pk, ck));
    }
    assert_eq!(session.read(77, PartitionRows::First { limit: 9 }, None), None, "a partition that is not there");
    check_scans(&mut session, PKS.len() as u64 * CKS.len() as u64);
    check_many_under_way(&mut session);

    // A row is replaced by another row.
    let (values, other) = (Strings::new(), b"another".as_slice());
    let mut values = values;
    values.push(other);
    session.done(PartitionRequest::Insert { pk: 1, cks: &[2], values: &values });
    let rows = session.read(1, PartitionRows::Of(&[2]), None);
    assert_eq!(rows, Some(vec![(2, other.to_vec())]), "the new row is there");
    check_scans(&mut session, PKS.len() as u64 * CKS.len() as u64);
    drop(session);
    database.close().expect("it closes");

    let database = open(scheme, target, &setup);
    let mut session = Flown::new(&*database, &setup);
    check_scans(&mut session, PKS.len() as u64 * CKS.len() as u64);
    drop(session);
    database.truncate().expect("it truncates");
    assert!(database.is_empty().expect("it looks"), "a table that was truncated is empty");
    let mut session = Flown::new(&*database, &setup);
    check_scans(&mut session, 0);
    drop(session);
    database.drop_table().expect("it drops");
    database.close().expect("it closes");
}

/// Reads the rows of a partition in all ways. The partition has the clustering keys [`CKS`].
fn check_reads(session: &mut Flown<'_>, pk: i64, value: &dyn Fn(i64) -> Vec<u8>) {
    let all: Given = CKS.iter().map(|ck| (*ck, value(*ck))).collect();
    for order in [None, Some(Order::Ascending), Some(Order::Descending)] {
        let ordered = |mut rows: Given| {
            if order == Some(Order::Descending) {
                rows.reverse();
            }
            rows
        };
        let mut expect = |rows: PartitionRows<'_>, whole: Given, limit: Option<u64>, text: &str| {
            let limit = limit.map_or(whole.len(), |limit| limit as usize).min(whole.len());
            let mut given = session.read(pk, rows, order).unwrap_or_default();
            let mut expected = ordered(whole.clone());
            match order {
                // If the read asks for no order, a limit may select any of the rows.
                None => {
                    given.sort();
                    assert_eq!(given.len(), limit, "{text} of {pk}, in any order: {rows:?}");
                    assert!(given.iter().all(|row| whole.contains(row)), "{text} of {pk}: {given:?} are no such rows");
                    given.dedup_by_key(|(ck, _)| *ck);
                    assert_eq!(given.len(), limit, "{text} of {pk}: each row is given once");
                }
                Some(_) => {
                    expected.truncate(limit);
                    assert_eq!(given, expected, "{text} of {pk}, {order:?}: {rows:?}");
                }
            }
        };
        let from = |bound: i64| all.iter().filter(|(ck, _)| *ck >= bound).cloned().collect::<Given>();
        for bound in [i64::MIN, -300, -256, 0, 3, i64::MAX] {
            for limit in [1, 2, 100] {
                expect(PartitionRows::From { ck: bound, limit }, from(bound), Some(limit), "rows from a bound");
            }
            for to in [i64::MIN, 0, 2, i64::MAX] {
                let between = all.iter().filter(|(ck, _)| (bound..to).contains(ck)).cloned().collect();
                expect(PartitionRows::Between { from: bound, to }, between, None, "rows between bounds");
            }
        }
        for limit in [1, 3, 100] {
            expect(PartitionRows::First { limit }, all.clone(), Some(limit), "the first rows");
        }
        let keys = [0, 3, 0, -256, i64::MAX, i64::MIN];
        let asked = all.iter().filter(|(ck, _)| keys.contains(ck)).cloned().collect();
        expect(PartitionRows::Of(&keys), asked, None, "rows of keys");
        expect(PartitionRows::Of(&[5]), Vec::new(), None, "a row that is not there");
    }
}

/// Checks that the parts of a scan together return each row once.
fn check_scans(session: &mut Flown<'_>, rows: u64) {
    for parts in [1, 2, 3, 64] {
        let scanned: u64 = (0..parts).map(|part| session.scan(part, parts)).sum();
        assert_eq!(scanned, rows, "a scan in {parts} parts has each row once");
    }
}

/// Starts a request in every slot of a session, and checks that each request is answered with its own rows.
fn check_many_under_way(session: &mut Flown<'_>) {
    let depth = session.flights.depth();
    let asked = |slot: u32| PKS[slot as usize % PKS.len()];
    for slot in 0..depth.min(64) as u32 {
        let rows = PartitionRows::From { ck: i64::from(slot % 3), limit: 1 };
        let read = PartitionRequest::Read { pk: asked(slot), rows, order: Some(Order::Ascending) };
        session.flights.start(slot, &Request::Partition(read)).expect("it starts");
    }
    let mut answered = BTreeMap::new();
    while answered.len() < depth.min(64) {
        let waited = session.flights.wait(None, &mut |served| {
            let rows: Given = served.reply.partition_rows().map(|(ck, value)| (ck, value.to_vec())).collect();
            assert!(answered.insert(served.slot, rows).is_none(), "slot {} is answered once", served.slot);
            assert_eq!(served.result.expect("it is answered"), Outcome::Ok);
        });
        waited.expect("it waits");
    }
    for (slot, rows) in answered {
        let ck = i64::from(slot % 3);
        assert_eq!(rows, [(ck, value(asked(slot), ck))], "slot {slot} has its own answer");
    }
}

fn check_counters(scheme: &KvScheme, target: &Target, threads: usize) {
    let setup = setup("kv_counters", Content::Counters, threads);
    let database = open(scheme, target, &setup);
    database.truncate().expect("it truncates");
    let mut session = Flown::new(&*database, &setup);
    let by = |ck: i64| -> [i64; COUNTERS] { std::array::from_fn(|number| (ck >> 8).wrapping_add(number as i64)) };
    for _ in 0..3 {
        for ck in CKS {
            session.done(PartitionRequest::Add { pk: -5, ck, by: by(ck) });
        }
    }
    let sums = |ck: i64| by(ck).map(|one| one.wrapping_mul(3));
    check_reads(&mut session, -5, &|ck| harness::partitions::counters_value(sums(ck)).to_vec());
    let rows = session.read(-5, PartitionRows::Of(&[2]), None).expect("the row is there");
    assert_eq!(counters_of(&rows[0].1), Some([0, 3, 6, 9, 12]));
    check_scans(&mut session, CKS.len() as u64);
    drop(session);

    // If several sessions add to one row at the same time, no addition is lost.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = Flown::new(&*database, &setup);
                for _ in 0..100 {
                    session.until_done(PartitionRequest::Add { pk: 9, ck: 1, by: [1, 2, 3, 4, 5] });
                }
            });
        }
    });
    let mut session = Flown::new(&*database, &setup);
    let rows = session.read(9, PartitionRows::First { limit: 10 }, None).expect("the row is there");
    assert_eq!(counters_of(&rows[0].1), Some([200, 400, 600, 800, 1000]), "no addition is lost");
    drop(session);
    database.truncate().expect("it truncates");
    assert!(database.is_empty().expect("it looks"), "a table that was truncated is empty");
    database.drop_table().expect("it drops");
    database.close().expect("it closes");
}

/// A session that makes one request after the other.
struct Flown<'d> {
    flights: Box<dyn Flights + 'd>,
}

impl<'d> Flown<'d> {
    fn new(database: &'d dyn Database, setup: &Setup) -> Self {
        let session = database.session(Clock::start()).unwrap_or_else(|why| panic!("there is no session: {why}"));
        let Session::Flights(flights) = session else { panic!("a session has many requests under way") };
        let (depth, asked) = (flights.depth(), setup.requests_a_session());
        assert!(depth >= asked, "a session has {depth} requests under way, and {asked} were asked for");
        Self { flights }
    }

    fn call(&mut self, request: PartitionRequest<'_>) -> (Result<Outcome, Failure>, u64, Given) {
        self.flights.start(0, &Request::Partition(request)).unwrap_or_else(|why| panic!("{request:?}: {why}"));
        let mut answer = None;
        while answer.is_none() {
            let waited = self.flights.wait(None, &mut |served| {
                let rows = served.reply.partition_rows().map(|(ck, value)| (ck, value.to_vec())).collect();
                answer = Some((served.result, served.reply.rows(), rows));
            });
            waited.unwrap_or_else(|why| panic!("{request:?}: {why}"));
        }
        answer.expect("the loop ended")
    }

    fn done(&mut self, request: PartitionRequest<'_>) {
        let (result, _, _) = self.call(request);
        assert_eq!(result.unwrap_or_else(|why| panic!("{request:?}: {why}")), Outcome::Ok);
    }

    /// Repeats the request as long as the database says that a repetition may help.
    fn until_done(&mut self, request: PartitionRequest<'_>) {
        for _ in 0..1000 {
            match self.call(request).0 {
                Ok(outcome) => return assert_eq!(outcome, Outcome::Ok, "{request:?}"),
                Err(why) => assert_eq!(why.harm, harness::Harm::Again, "{request:?}: {why}"),
            }
        }
        panic!("{request:?} fails again and again");
    }

    fn insert(&mut self, pk: i64, cks: &[i64]) {
        let mut values = Strings::new();
        cks.iter().for_each(|ck| values.push(&value(pk, *ck)));
        self.done(PartitionRequest::Insert { pk, cks, values: &values });
    }

    /// Reads rows; `None` if the partition has none.
    fn read(&mut self, pk: i64, rows: PartitionRows<'_>, order: Option<Order>) -> Option<Given> {
        let (result, count, given) = self.call(PartitionRequest::Read { pk, rows, order });
        let outcome = result.unwrap_or_else(|why| panic!("{rows:?} of {pk}: {why}"));
        assert_eq!(count, given.len() as u64, "{rows:?} of {pk}: rows of a partition stay in the reply");
        let expected = if given.is_empty() { Outcome::NotFound } else { Outcome::Ok };
        assert_eq!(outcome, expected, "{rows:?} of {pk}");
        (!given.is_empty()).then_some(given)
    }

    fn scan(&mut self, part: u32, parts: u32) -> u64 {
        let (result, count, _) = self.call(PartitionRequest::Scan { part, parts });
        assert_eq!(result.unwrap_or_else(|why| panic!("part {part} of {parts}: {why}")), Outcome::Ok);
        count
    }
}

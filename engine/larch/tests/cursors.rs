//! Tests how many pages of the cache ranges keep pinned between two rows. However many ranges are open, they pin
//! only a part of the cache. A range that has lost its pages goes on from its last key.

use larch::rows::Direction;
use larch::{Database, Range, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const CACHE_BYTES: u64 = 4 << 20;
const ROWS: u32 = 50_000;
const RANGES: u32 = 5_000;

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

fn value(i: u32) -> Vec<u8> {
    vec![i as u8; 200]
}

/// Makes a table two and a half times as large as the cache, with its rows in one level. Every tenth row is also in a
/// newer file.
fn rows() -> (Database, Table) {
    let machine = Machine::simulated_on(SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).cache_bytes(CACHE_BYTES).open().expect("the disk works");
    let table = db.table_with("t", TableOptions { page_bytes: 8 << 10, ..TableOptions::default() });
    let table = table.expect("the disk works");
    let mut import = table.import().expect("the disk works");
    (0..ROWS).for_each(|i| import.add(&key(i), &value(i)).expect("the disk works"));
    import.finish(|_| {}).expect("the disk works");
    let mut batch = db.batch();
    (0..ROWS).step_by(10).for_each(|i| batch.insert(&table, key(i), value(i)));
    batch.commit().expect("the disk works");
    db.flush().expect("the disk works");
    (db, table)
}

/// A range, and the rows that it still has to return.
struct Open {
    range: Range,
    left: std::ops::Range<u32>,
}

impl Open {
    fn new(table: &Table, from: u32) -> Self {
        Self { range: table.range(key(from)..), left: from..ROWS }
    }

    #[track_caller]
    fn take(&mut self, direction: Direction) {
        let (row, expected) = match direction {
            Direction::Forward => (self.range.next(), self.left.next()),
            Direction::Backward => (self.range.next_back(), self.left.next_back()),
        };
        let row = row.transpose().expect("the disk works").map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(row, expected.map(|i| (key(i).to_vec(), value(i))));
    }
}

/// Checks how many bytes of the cache the ranges pin. The limit is a little higher than a quarter, because pinned
/// bytes are not counted after every row.
#[track_caller]
fn check_usage(db: &Database) {
    let usage = db.metrics().cache;
    assert!(usage.used_bytes <= usage.budget_bytes, "{usage:?}");
    assert!(usage.pinned_bytes <= CACHE_BYTES / 4 + (128 << 10), "{usage:?}");
    assert!(usage.cursor_bytes <= CACHE_BYTES / 4 + (128 << 10), "{usage:?}");
    assert_eq!(usage.queued, 0);
}

#[test]
fn thousands_of_idle_ranges_keep_a_quarter_of_the_cache_and_go_on_from_their_keys() {
    for taken in [1, 3] {
        let (db, table) = rows();
        let mut open: Vec<Open> = (0..RANGES).map(|i| Open::new(&table, i * (ROWS / RANGES))).collect();
        for (i, open) in open.iter_mut().enumerate() {
            (0..taken.min(open.left.len())).for_each(|_| open.take(Direction::Forward));
            if i % 500 == 0 {
                check_usage(&db);
            }
        }
        check_usage(&db);
        assert!(db.metrics().cache.cursor_bytes > 0, "it is counted");

        // Pages that other reads load stay in the cache. If ranges pinned too many pages, these would be evicted.
        for i in (0..ROWS).step_by(997) {
            assert_eq!(table.get(key(i)).expect("the disk works").as_deref(), Some(&value(i)[..]));
            let reads = db.metrics().page_reads;
            assert!(table.get(key(i)).expect("the disk works").is_some());
            assert_eq!(db.metrics().page_reads, reads, "row {i} with {taken} rows of each range taken");
        }
        check_usage(&db);

        let rng = &mut StdRng::seed_from_u64(taken as u64);
        for _ in 0..10_000 {
            let open = &mut open[rng.random_range(0..RANGES as usize)];
            let direction = [Direction::Forward, Direction::Backward][rng.random_range(0..2)];
            (0..rng.random_range(1..6)).for_each(|_| open.take(direction));
        }
        check_usage(&db);
        drop(open);
        let usage = db.metrics().cache;
        assert_eq!((usage.cursor_bytes, usage.pinned_bytes), (0, 0));
    }
}

/// How many pages `work` asks for, in memory or not.
fn requests(db: &Database, work: impl FnOnce()) -> u64 {
    let asked = || db.metrics().page_hits + db.metrics().page_reads;
    let before = asked();
    work();
    asked() - before
}

/// A range that is being read asks for each page once, and not again for each row, even if thousands of ranges are
/// idle, or if several ranges are read in turns.
#[test]
fn ranges_that_are_read_do_not_seek_row_by_row_because_others_are_open() {
    let (db, table) = rows();
    let scan = || assert_eq!(table.iter().count(), ROWS as usize);
    scan();
    let alone = requests(&db, scan);
    let mut idle: Vec<Open> = (0..RANGES).map(|i| Open::new(&table, i * (ROWS / RANGES))).collect();
    idle.iter_mut().for_each(|open| open.take(Direction::Forward));
    let among_idle = requests(&db, scan);
    drop(idle);
    let mut few: Vec<Open> = (0..8).map(|_| Open::new(&table, 0)).collect();
    let in_turns = requests(&db, || {
        for _ in 0..ROWS {
            few.iter_mut().for_each(|open| open.take(Direction::Forward));
        }
    }) / 8;
    println!("{alone} requests alone, {among_idle} among idle ranges, {in_turns} each in turns");
    assert!(alone < u64::from(ROWS) / 4, "{alone} requests for {ROWS} rows");
    assert!(among_idle < alone * 2 && in_turns < alone * 3 / 2, "{alone}, {among_idle}, {in_turns}");
}

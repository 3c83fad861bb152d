//! Scans of random tables with a cache that evicts a few pages all the time, or all pages now and then. The tables
//! have column groups, older versions, range erases and rows in memory.

use larch::{Database, Key, Result};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::VecDeque;
use testkit::history::History;
use testkit::history::reader::{Reader, Seen, Wanted};
use testkit::options::TinyOptions;
use testkit::touched::Touched;

const STEPS: usize = 300;

/// What happens between two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Nothing,
    /// Evicts every page that is not pinned.
    Forgetting,
    /// The same, and also flushes and compacts.
    Moving,
}

fn forget(db: &Database) {
    let cache = db.cache();
    let budget = cache.budget_bytes();
    cache.set_budget_bytes(0);
    cache.set_budget_bytes(budget);
}

fn between_rows(rng: &mut Xoshiro256PlusPlus, db: &Database, between: Between) {
    if between != Between::Nothing && rng.random_range(0..3) > 0 {
        forget(db);
    }
    if between == Between::Moving {
        match rng.random_range(0..60) {
            0 => db.flush().expect("the disk does not fail"),
            1 => db.compact().expect("the disk does not fail"),
            _ => {}
        }
    }
}

/// Takes all rows of a scan, each from the front or the back as `forward` decides. Each expected row must come
/// exactly once, and in the right order.
fn expect_each_row_once(
    rng: &mut Xoshiro256PlusPlus,
    (db, reader): (&Database, &Reader),
    expected: &[(&[u8], &[u8])],
    between: Between,
    mut forward: impl FnMut(&mut Xoshiro256PlusPlus) -> bool,
) {
    let mut rows = reader.all();
    let mut left: VecDeque<_> = expected.iter().collect();
    loop {
        let forward = forward(rng);
        let expected = if forward { left.pop_front() } else { left.pop_back() };
        let row: Option<Result<(Key, Seen)>> = if forward { rows.next() } else { rows.next_back() };
        let row = row.transpose().expect("the disk does not fail");
        let same = match (&row, expected) {
            (Some((key, seen)), Some((expected, value))) => key[..] == **expected && reader.shows(seen, value),
            (row, expected) => row.is_none() && expected.is_none(),
        };
        let key = |key: &[u8]| key.escape_ascii().to_string();
        assert!(
            same,
            "forward {forward}, {between:?}: {:?}, expected {:?}, read by {reader:?}",
            row.map(|(at, _)| key(&at)),
            expected.map(|(at, _)| key(at))
        );
        if row.is_none() {
            return;
        }
        between_rows(rng, db, between);
    }
}

/// Scans all tables at all readable versions, four times each. Returns the number of rows and the pages touched.
fn scan_everything(seed: u64, cache_bytes: u64, between: Between) -> (u64, Touched) {
    println!("seed {seed}, {cache_bytes} bytes of memory, {between:?} between rows");
    let mut options = TinyOptions::of(seed);
    options.cache_bytes = cache_bytes;
    for table in &mut options.tables {
        table.page_bytes = 256;
        table.groups = ["a", "b", "c"].map(str::to_owned).to_vec();
    }
    let mut history = History::with_options(seed, options);
    history.run(STEPS).expect("the disk does not fail");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let rng = &mut rng;
    let db = history.database();
    let mut scanned = 0;
    let before = Touched::so_far(db);
    for name in db.tables() {
        let table = db.existing_table(&name).expect("the disk does not fail").expect("it is listed");
        let views = std::iter::once(None).chain(history.snapshots().iter().map(Some));
        for snapshot in views {
            let wanted = Wanted::any(rng, table.options().groups.len());
            let reader = Reader::new(&table, snapshot, wanted);
            let at = reader.at(history.model().newest());
            let expected: Vec<_> = history.model().rows(&name, at).collect();
            let of = (db, &reader);
            expect_each_row_once(rng, of, &expected, between, |_| true);
            expect_each_row_once(rng, of, &expected, between, |_| false);
            expect_each_row_once(rng, of, &expected, between, |rng| rng.random());
            // Turns only now and then, so that pages are read ahead at both ends.
            let mut forward = true;
            expect_each_row_once(rng, of, &expected, between, |rng| {
                forward ^= rng.random_range(0..8) == 0;
                forward
            });
            scanned += 4 * expected.len() as u64;
        }
    }
    (scanned, Touched::so_far(db) - before)
}

fn scan_many(cache_bytes: u64, between: Between) {
    let (mut scanned, mut touched) = (0, Touched::default());
    for seed in 0..25 {
        let (rows, by_seed) = scan_everything(seed, cache_bytes, between);
        scanned += rows;
        touched += by_seed;
    }
    println!("{scanned} rows, {touched:?}");
    let reads: u64 = larch::stats::PageKind::ALL.into_iter().map(|kind| touched.of(kind).reads).sum();
    assert!(scanned > 5000 && reads > scanned / 2, "{scanned} rows took {reads} reads");
}

#[test]
fn a_memory_of_a_few_pages_gives_every_row_once() {
    scan_many(2 << 10, Between::Nothing);
}

#[test]
fn a_memory_that_is_emptied_between_rows_gives_every_row_once() {
    scan_many(1 << 20, Between::Forgetting);
}

#[test]
fn a_memory_that_is_emptied_while_files_move_gives_every_row_once() {
    scan_many(1 << 20, Between::Moving);
}

//! Tests the replay of rows on gets that are short enough to follow by hand, and the whole comparison on small tables.

use super::*;
use crate::cache::policies::Kind;
use crate::cache::replay::replay;
use ::pages::policy::Tuning;

/// Gets of rows that are letters, each of 50 bytes. Two rows that follow one another in the alphabet, such as a and b,
/// are in one page of 100 bytes. The gets before `|` are the warm-up.
fn streams(text: &str) -> Streams {
    let (warm_up, counted) = text.split_once('|').expect("a text has a warm-up");
    let letters = |text: &str| text.bytes().filter(u8::is_ascii_lowercase).collect::<Vec<u8>>();
    let (warm_up, counted) = (letters(warm_up), letters(counted));
    let gets = counted.len() as u64;
    let all = [warm_up.clone(), counted].concat();
    let numbered = |of: fn(u8) -> u8| {
        let mut asked = Asked::default();
        all.iter().for_each(|letter| asked.add(&[of(*letter)]));
        asked.rows
    };
    let rows = rows("rows", &numbered(|letter| letter), 50, warm_up.len());
    let pages = super::rows("pages", &numbered(|letter| (letter - b'a') / 2), 100, warm_up.len());
    Streams { name: "letters", gets, rows, pages }
}

/// Replays gets with caches of two pages or four rows. `expected` has the hits of LRU and of OPT, for pages and rows.
fn check(text: &str, expected: [[u64; 2]; 2]) {
    let Streams { rows, pages, .. } = streams(text);
    let hits = |recorded: &Recorded| [Kind::Lru, Kind::Opt].map(|kind| replay(recorded, kind, 200).points[1]);
    assert_eq!([&pages, &rows].map(hits), expected, "{text}");
}

#[test]
fn hot_rows_on_cold_pages_are_hits_of_a_cache_of_rows_only() {
    // Four rows on four pages, in a loop. LRU has evicted a page whenever it is needed again. OPT keeps the pages of a
    // and c, and those of e and g pass.
    check("aceg | aceg", [[0, 2], [4, 4]]);
    // Five rows are too many for LRU. OPT lets i pass as well, and keeps the others.
    check("acegi | acegi", [[0, 2], [0, 4]]);
}

#[test]
fn neighbours_are_hits_of_a_cache_of_pages_only() {
    // Each page is read once, for its first row.
    check("| ab cd ef", [[3, 3], [0, 0]]);
    // The warm-up fills the caches, and none of its own misses and hits is counted.
    check("ab cd | ab cd", [[4, 4], [4, 4]]);
    check("ab | cd ab cd", [[5, 5], [4, 4]]);
}

#[test]
fn the_table_says_what_was_answered_and_what_was_read() {
    let counted = Counted { reads: [1, 2], excerpts: 3 };
    let compared = Compared::new(&streams("aceg | aceg"), &[(200, counted)]);
    let [::page::Block::Table(table), ::page::Block::Chart(chart)] = compared.blocks() else {
        panic!("it is a table and a chart");
    };
    assert_eq!(table.caption, "letters: 4 gets after 4, of 4 rows of 50 bytes with their keys, in 4 pages of 0.0 MiB");
    let lines: Vec<String> = table.rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(lines[1], "pages LRU 0.0 MiB = 50.0 % 0.0 - 1.0000");
    assert_eq!(lines[2], "pages OPT 0.0 MiB = 50.0 % 50.0 - 0.5000");
    assert_eq!(lines[4], "rows LRU 0.0 MiB = 50.0 % 100.0 - 0.0000");
    assert_eq!(lines[6], "both Larch 0.0 MiB = 50.0 % 50.0 75.0 0.7500");
    assert_eq!((lines.len(), chart.lines.len()), (7, 7));
    assert_eq!(chart.lines[2].points, [(200.0 / f64::from(1 << 20), 0.5)]);
}

#[test]
fn the_same_gets_ask_for_one_row_and_one_page_each() {
    let made = Made::new(&GETS[3], 3000).expect("the disk works");
    let Streams { gets, rows, pages, .. } = made.record("gets").expect("the disk works");
    assert_eq!((gets, rows.warm_up, rows.events.len()), (3000, 6000, 9000));
    let everything = 1 << 30;
    for recorded in [&rows, &pages] {
        let tally = replay(recorded, Kind::Lru, everything);
        assert_eq!(tally.points[0], gets, "each get needs one row or data page");
    }
    // Ten fields of ten bytes, and a key of four letters and twenty digits.
    assert!(rows.pages.iter().all(|row| row.bytes == made.row_bytes && row.bytes > 124), "{}", made.row_bytes);
    let again = made.record("gets").expect("the disk works");
    assert_eq!((again.rows.events, again.pages.events), (rows.events, pages.events));
}

#[test]
fn larch_reads_what_the_replay_of_its_policy_expects_where_it_has_no_excerpts() {
    let made = Made::new(&GETS[2], 2000).expect("the disk works");
    let pages = made.record("gets").expect("the disk works").pages;
    assert!(pages.data_bytes() > 2 << 20, "{}", pages.data_bytes());
    // A budget of less than 1 MiB has no excerpts.
    let counted = made.count(1020 << 10).expect("the disk works");
    assert_eq!(counted.excerpts, 0);
    let replayed = replay(&pages, Kind::Larch(Tuning::DEFAULT), 1020 << 10).all_reads();
    let read: u64 = counted.reads.iter().sum();
    assert!(read.abs_diff(replayed) * 20 < replayed, "{read} pages were read, and {replayed} in the replay");
    assert_eq!(made.count(1020 << 10).expect("the disk works"), counted, "the counts are the same each time");
}

#[test]
fn excerpts_answer_gets_that_pages_of_the_same_memory_do_not() {
    let made = Made::new(&GETS[1], 20_000).expect("the disk works");
    let pages = made.record("gets").expect("the disk works").pages;
    let budget = 4 << 20;
    let counted = made.count(budget).expect("the disk works");
    let pages_only = replay(&pages, Kind::Larch(Tuning::DEFAULT), budget).all_reads();
    assert!(counted.excerpts > 0, "{counted:?}");
    assert!(counted.reads.iter().sum::<u64>() < pages_only, "{counted:?}, and {pages_only} reads without excerpts");
    assert_eq!(made.count(budget).expect("the disk works"), counted, "the counts are the same each time");
}

//! Tests each policy on traces short enough to follow by hand, and compares all policies with OPT.

use super::*;
use crate::cache::recorded::{Event, Page};
use ::pages::policy::Tuning;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{HashMap, HashSet};

/// A trace of 100-byte pages, one per letter; capital letters are index pages. `+` before a letter reads the page
/// ahead, `-` kills its file.
fn recorded(text: &str) -> Recorded {
    let mut numbers: HashMap<char, u32> = HashMap::new();
    let mut pages = Vec::new();
    let mut events = Vec::new();
    let mut what = What::Needed;
    for letter in text.chars().filter(|letter| *letter != ' ') {
        match letter {
            '+' => what = What::Ahead,
            '-' => what = What::Dead,
            _ => {
                let page = *numbers.entry(letter).or_insert_with(|| {
                    let class = if letter.is_uppercase() { Class::Index } else { Class::Data };
                    let key = u64::from(u32::from(letter)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    pages.push(Page { key, class, bytes: 100 });
                    pages.len() as u32 - 1
                });
                events.push(Event { page, what: std::mem::replace(&mut what, What::Needed), is_point: true });
            }
        }
    }
    let live_bytes = [0, pages.len() as u64 * 100];
    Recorded { name: text.to_owned(), operations: 1, pages, events, warm_up: 0, live_bytes }
}

/// Replays `text` with a cache of `pages` pages. `expected` has a `.` for each miss, and the page's letter for each
/// hit.
fn check(kind: Kind, pages: u64, text: &str, expected: &str) {
    let letters: Vec<char> = text.chars().filter(|letter| *letter != ' ').collect();
    let mut answers = String::new();
    let mut hits_before = 0;
    for end in 1..=letters.len() {
        let part: String = letters[..end].iter().collect();
        let hits = replay(&recorded(&part), kind, pages * 100).hits.iter().sum();
        answers.push(if hits > hits_before { letters[end - 1] } else { '.' });
        hits_before = hits;
    }
    assert_eq!(answers, expected.replace(' ', ""), "{} with {pages} pages on {text}", kind.name());
}

#[test]
fn lru_lets_go_what_was_not_used_for_the_longest_time() {
    check(Kind::Lru, 3, "abc a d b a d", "... a . . a d");
    // A loop over more pages than fit has no hits.
    check(Kind::Lru, 3, "abcd abcd abcd", "............");
    // From Silberschatz et al., Operating System Concepts: 12 faults with 3 frames.
    let book = recorded("h a b c a d a e c d a d c b c a b h a b");
    assert_eq!(replay(&book, Kind::Lru, 300).all_reads(), 12);
}

#[test]
fn the_clock_takes_heat_and_index_pages_have_more_of_it() {
    // Each needed page comes in with heat. The hand takes the heat of a, b and c, and then a is evicted, because it
    // came first.
    check(Kind::Clock, 3, "abc d a", "... . .");
    // b was used again, so it still has heat when a and c are evicted.
    check(Kind::Clock, 3, "abc b d e b", "... b . . b");
    // An index page stays longer than data pages that were needed once.
    check(Kind::Clock, 3, "Abc d e A", "... . . A");
    check(Kind::Clock, 3, "abc d e a", "... . . .");
}

#[test]
fn s3_fifo_keeps_out_what_is_used_once_and_brings_back_what_it_remembers() {
    // a was used twice, so it is in the main line when b to m pass through the small line.
    check(Kind::S3Fifo, 10, "aaa bcdefghijklm a", ".aa ............ a");
    // a was used once and was evicted. When a is needed again, it enters the main line and stays there.
    check(Kind::S3Fifo, 10, "abcdefghijk a lmnopqrstuv a", "........... . ........... a");
}

#[test]
fn w_tiny_lfu_lets_nothing_in_that_was_used_less_than_what_would_go() {
    // The window is smaller than a page, so a new page enters only if it was used more often than the oldest page
    // on probation.
    check(Kind::TinyLfu, 10, "abcdefghij abcdefghij k a b", ".......... abcdefghij . a b");
    // k enters as soon as it was needed more often than a, which is the oldest page.
    check(Kind::TinyLfu, 10, "abcdefghij k k k", ".......... . . k");
}

#[test]
fn opt_keeps_what_is_needed_soonest_and_lets_pass_what_is_needed_last() {
    check(Kind::Opt, 2, "a b c a b", ". . . a b");
    check(Kind::Opt, 2, "abcd abcd abcd", ".... ab.. ab..");
}

#[test]
fn larch_keeps_what_is_used_twice_beside_what_is_used_once() {
    check(Kind::Larch(Tuning::DEFAULT), 10, "aaa bcdefghijklm a", ".aa ............ a");
    check(Kind::Larch(Tuning::DEFAULT), 10, "abcdefghijk a lmnopqrstuv a", "........... . ........... a");
}

#[test]
fn a_page_that_was_read_ahead_is_no_hit_when_it_is_first_needed() {
    for kind in Kind::ALL {
        let tally = replay(&recorded("+a a a +a b"), kind, 300);
        assert_eq!((tally.needed, tally.hits, tally.reads), ([0, 3], [0, 1], [0, 2]), "{}", kind.name());
    }
}

#[test]
fn the_pages_of_a_dead_file_leave_their_room() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::TinyLfu) {
        // When a is gone, there is room for b and c.
        let tally = replay(&recorded("ab -a c b c"), kind, 200);
        assert_eq!(tally.hits, [0, 2], "{}", kind.name());
        // The file of a page may be dead although the page is not in memory.
        replay(&recorded("abc -a -b -c abc"), kind, 200);
    }
}

/// A random trace. All pages have the same size, and some are needed far more often than others.
fn random(random: &mut StdRng, pages: u32, events: usize) -> Recorded {
    let page = |_| Page { key: random.random(), class: Class::Data, bytes: 100 };
    let pages: Vec<Page> = (0..pages).map(page).collect();
    let event = |_| {
        let page = (random.random::<f64>().powi(2) * pages.len() as f64) as u32;
        let what = if random.random_ratio(1, 8) { What::Ahead } else { What::Needed };
        Event { page, what, is_point: true }
    };
    let events = (0..events).map(event).collect();
    let live_bytes = [0, pages.len() as u64 * 100];
    Recorded { name: "random".to_owned(), operations: 1, pages, events, warm_up: 0, live_bytes }
}

#[test]
fn nobody_reads_less_or_hits_more_than_opt() {
    for seed in 0..20 {
        println!("seed {seed}");
        let recorded = random(&mut StdRng::seed_from_u64(seed), 300, 5000);
        for pages in [1, 3, 10, 50, 150, 300] {
            let best = replay(&recorded, Kind::Opt, pages * 100);
            for kind in Kind::ALL {
                let tally = replay(&recorded, kind, pages * 100);
                let name = kind.name();
                assert!(tally.hits <= best.hits, "{name}, {pages} pages: {:?} of {:?}", tally.hits, best.hits);
                assert!(tally.all_reads() >= best.all_reads(), "{name}, {pages} pages");
                assert_eq!(tally.read_bytes, tally.all_reads() * 100);
            }
        }
    }
}

#[test]
fn opt_has_as_many_hits_as_the_best_of_all_choices() {
    for seed in 0..50 {
        println!("seed {seed}");
        let recorded = random(&mut StdRng::seed_from_u64(seed), 6, 14);
        let needed = recorded.events.iter().filter(|event| event.what == What::Needed).map(|event| event.page);
        // The most hits of any policy that now has a given set of pages in memory. A set is a number with a bit for
        // each page.
        let mut best: HashMap<u32, u64> = HashMap::from([(0, 0)]);
        for page in needed {
            let mut next: HashMap<u32, u64> = HashMap::new();
            for (held, hits) in best {
                let hits = hits + u64::from(held & 1 << page != 0);
                let all = held | 1 << page;
                let kept: HashSet<u32> =
                    (0..1 << 6).map(|kept: u32| kept & all).filter(|kept| kept.count_ones() <= 2).collect();
                for kept in kept {
                    let known = next.entry(kept).or_default();
                    *known = hits.max(*known);
                }
            }
            best = next;
        }
        let most = best.into_values().max().expect("there is nothing to keep at least");
        assert_eq!(replay(&recorded, Kind::Opt, 200).hits, [0, most]);
    }
}

use super::*;
use crate::random::Constants;

fn rules(mode: Mode) -> Rules {
    Rules { mode, drawing: Drawing { constants: Constants::of(1), warehouses: 1 } }
}

fn drawn(mode: Mode, count: usize) -> Vec<Transaction> {
    let (rules, mut stream, mut left) = (rules(mode), Stream::of(4, &[]), [0; 5]);
    (0..count).map(|_| rules.next(&mut stream, &mut left)).collect()
}

fn counts(drawn: &[Transaction]) -> [usize; 5] {
    Transaction::ALL.map(|transaction| drawn.iter().filter(|one| **one == transaction).count())
}

#[test]
fn a_deck_has_its_cards_in_every_23_transactions() {
    let drawn = drawn(Mode::Spec, 23 * 50);
    for deck in drawn.chunks(23) {
        assert_eq!(counts(deck), [10, 10, 1, 1, 1]);
    }
    assert_ne!(drawn[..23], drawn[23..46], "each deck is shuffled");
}

#[test]
fn weights_have_their_shares_on_average() {
    let near = |counts: [usize; 5], wanted: [usize; 5]| {
        counts.iter().zip(wanted).all(|(count, wanted)| count.abs_diff(wanted) < wanted / 20 + 100)
    };
    let ydb = counts(&drawn(Mode::Ydb, 100_000));
    assert!(near(ydb, [45_000, 43_000, 4_000, 4_000, 4_000]), "{ydb:?}");
    let hammerdb = counts(&drawn(Mode::Hammerdb, 115_000));
    assert!(near(hammerdb, [50_000, 50_000, 5_000, 5_000, 5_000]), "{hammerdb:?}");
}

#[test]
fn thinking_takes_its_mean_and_at_most_ten_times_as_long() {
    let (rules, mut stream) = (rules(Mode::Spec), Stream::of(8, &[]));
    let times: Vec<u64> = (0..100_000).map(|_| rules.thinking(Transaction::NewOrder, &mut stream)).collect();
    let mean = times.iter().sum::<u64>() / times.len() as u64;
    assert!(mean.abs_diff(12_000_000_000) < 150_000_000, "{mean}");
    assert!(times.iter().all(|time| *time <= 120_000_000_000));
    assert_eq!(rules.keying(Transaction::NewOrder), 18_000_000_000);
}

#[test]
fn terminals_that_do_not_wait_wait_for_nothing() {
    for mode in [Mode::NoWait, Mode::Benchbase, Mode::Hammerdb] {
        for transaction in Transaction::ALL {
            let waits = (rules(mode).keying(transaction), rules(mode).thinking(transaction, &mut Stream::of(1, &[])));
            assert_eq!(waits, (0, 0));
        }
    }
}

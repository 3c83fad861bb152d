//! For each named anomaly, a history written by hand, and the anomalies that the checker must find in it at each
//! level. The modules below have random histories.

mod played;
mod serial;

use super::anomaly::Anomaly;
use super::anomaly::Kind::{self, *};
use super::transaction::{Isolation, Transaction};
use super::{check, check_as, check_with_unknown, lose_after, parse};
use larch::Version;

/// The seeds of a random test. Each is printed before it runs, so the last one printed is the one that fails.
/// `SEED=n cargo test -p larch-testkit name_of_test` runs one seed alone.
pub(super) fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let seeds = only_seed().map_or(0..count, |seed| seed..seed + 1);
    seeds.inspect(|seed| println!("seed {seed}; to run it alone: SEED={seed} cargo test -p larch-testkit"))
}

/// The single seed to run, if the user named one. Then a test must not expect what only many seeds find.
fn only_seed() -> Option<u64> {
    std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"))
}

fn shown(anomalies: &[Anomaly], history: &[Transaction]) -> String {
    let lines = anomalies.iter().map(ToString::to_string).chain(history.iter().map(ToString::to_string));
    lines.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn expect_clean(history: &[Transaction]) {
    let anomalies = check(history);
    assert!(anomalies.is_empty(), "{}", shown(&anomalies, history));
}

/// The kinds of anomalies in a history, without duplicates.
fn kinds(isolation: Isolation, history: &str) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = check_as(isolation, &parse(history)).iter().map(|anomaly| anomaly.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Checks a history twice, as if all transactions were serializable and as if all had snapshot isolation, and
/// compares the anomalies with the expected ones.
#[track_caller]
fn expect(history: &str, serializable: &[Kind], snapshot: &[Kind]) {
    assert_eq!(kinds(Isolation::Serializable, history), serializable, "serializable");
    assert_eq!(kinds(Isolation::Snapshot, history), snapshot, "snapshot isolation");
}

#[test]
fn transactions_one_after_the_other_are_clean() {
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 r(x)=1 w(x)=3 scan[..]=x:3,y:2 e(y) c@2
        T2: b@2 r(x)=3 r(y)=- back[..]=x:3 c
        T3: b@2 w(y)=4 a
        T4: b@2 e[..] scan[..]=- c@3
        T5: b@3 r(x)=- scan[..]=- c";
    expect(history, &[], &[]);
}

#[test]
fn two_increments_of_one_value_are_a_lost_update() {
    let history = "
        T0: b@0 w(x)=1 c@1
        T1: b@1 r(x)=1 w(x)=2 c@2
        T2: b@1 r(x)=1 w(x)=3 c@3";
    expect(history, &[LostUpdate], &[OverlappingWrites, LostUpdate]);
}

#[test]
fn blind_writes_that_overlap_are_serializable() {
    let history = "
        T1: b@0 w(x)=2 c@2
        T2: b@0 w(x)=3 c@3";
    expect(history, &[], &[OverlappingWrites]);
}

#[test]
fn each_reading_what_the_other_writes_is_write_skew() {
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 r(x)=1 r(y)=2 w(x)=3 c@2
        T2: b@1 r(x)=1 r(y)=2 w(y)=4 c@3";
    expect(history, &[WriteSkew], &[]);
}

#[test]
fn absent_keys_that_are_read_make_write_skew() {
    let history = "
        T1: b@0 r(y)=- w(x)=1 c@1
        T2: b@0 r(x)=- w(y)=2 c@2";
    expect(history, &[WriteSkew], &[]);
}

#[test]
fn an_erase_of_a_row_that_was_read_makes_write_skew() {
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 r(x)=1 e(y) c@2
        T2: b@1 r(y)=2 e[x..x] c@3";
    expect(history, &[WriteSkew], &[]);
}

#[test]
fn an_old_row_beside_a_new_one_is_read_skew() {
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 w(x)=3 w(y)=4 c@2
        T2: b@1 r(x)=1 r(y)=4 c";
    expect(history, &[FutureRead, ReadSkew], &[FutureRead, ReadSkew]);
    // The client of T2 believes its snapshot to be newer than it is, so T2 seems to see an old value of x.
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 w(x)=3 w(y)=4 c@2
        T2: b@2 r(x)=1 r(y)=4 c";
    expect(history, &[NotOfSnapshot, ReadSkew], &[NotOfSnapshot, ReadSkew]);
}

#[test]
fn rows_that_come_into_ranges_are_phantoms() {
    let history = "
        T0: b@0 w(a)=1 c@1
        T1: b@1 scan[a..m)=a:1 w(x)=2 c@2
        T2: b@1 back[n..]=- w(b)=3 c@3";
    expect(history, &[Phantom], &[]);
}

#[test]
fn rows_that_change_in_ranges_are_items() {
    let history = "
        T0: b@0 w(a)=1 w(x)=4 c@1
        T1: b@1 scan[a..m)=a:1 w(x)=2 c@2
        T2: b@1 scan[n..]=x:4 w(a)=3 c@3";
    expect(history, &[WriteSkew], &[]);
}

#[test]
fn rows_that_go_out_of_ranges_are_phantoms() {
    let history = "
        T0: b@0 w(a)=1 w(x)=4 c@1
        T1: b@1 scan[a..m)=a:1 e(x) c@2
        T2: b@1 scan[n..]=x:4 e(a) c@3";
    expect(history, &[Phantom], &[]);
}

#[test]
fn a_range_that_was_stopped_was_not_read_to_its_end() {
    // In the first history, T1 stops its read before c. In the second one, T1 reads the whole range.
    let forward = |rows: &str| {
        format!(
            "T0: b@0 w(a)=1 w(b)=2 c@1
             T1: b@1 scan[a..z]={rows} w(x)=3 c@2
             T2: b@1 r(x)=- w(c)=4 c@3"
        )
    };
    expect(&forward("a:1,b:2.."), &[], &[]);
    expect(&forward("a:1,b:2"), &[Phantom], &[]);
    let backward = |rows: &str| {
        format!(
            "T0: b@0 w(y)=1 w(z)=2 c@1
             T1: b@1 back[a..z]={rows} w(0)=3 c@2
             T2: b@1 r(0)=- w(x)=4 c@3"
        )
    };
    expect(&backward("z:2,y:1.."), &[], &[]);
    expect(&backward("z:2,y:1"), &[Phantom], &[]);
    // A read that was stopped before the first row has read no key of the range.
    expect(&backward("-.."), &[], &[]);
}

#[test]
fn bounds_of_ranges_count_as_they_are_written() {
    let of = |range: &str| {
        format!(
            "T1: b@0 scan{range}=- w(x)=3 c@1
             T2: b@0 r(x)=- w(b)=4 c@2"
        )
    };
    for range in ["[b..c)", "[a..b]", "(a..b]", "[b..b]", "[..b]", "[b..w]", "(a..c)", "[..c)"] {
        expect(&of(range), &[Phantom], &[]);
    }
    for range in ["(b..c)", "[a..b)", "(b..b]", "[..b)", "(b..w]", "[c..a]", "1/[..]"] {
        expect(&of(range), &[], &[]);
    }
}

#[test]
fn readers_that_see_two_writers_in_different_orders_are_a_long_fork() {
    // T3 sees only the write of T1, and T4 sees only the write of T2. No order of these two writes fits both
    // readers.
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 w(x)=3 c@2
        T2: b@1 w(y)=4 c@3
        T3: b@2 r(x)=3 r(y)=2 c
        T4: b@3 r(x)=1 r(y)=4 c";
    expect(history, &[NotOfSnapshot, LongFork], &[NotOfSnapshot, LongFork]);
}

#[test]
fn a_reader_of_one_half_of_each_dirty_write_finds_it() {
    // T1 has the last write to x, and T2 has the last write to y (G0). By the order of versions, T3 reads an old
    // value of x.
    let history = "
        T1: b@0 w(x)=1 w(y)=2 c@1
        T2: b@1 w(x)=3 w(y)=4 c@2
        T3: b@2 r(x)=1 r(y)=4 c";
    expect(history, &[NotOfSnapshot, ReadSkew], &[NotOfSnapshot, ReadSkew]);
}

#[test]
fn writes_against_real_time_are_a_cycle_of_writes() {
    let history = "
        T1: b@0#1 w(x)=1 c@2#2
        T2: b@0#3 w(x)=2 c@1#4";
    expect(history, &[DirtyWrite], &[OverlappingWrites, DirtyWrite]);
}

#[test]
fn commits_without_a_place_of_their_own_are_found() {
    let same = "
        T1: b@0 w(x)=1 c@1
        T2: b@0 w(y)=2 c@1";
    expect(same, &[CommitOrder], &[CommitOrder]);
    expect("T1: b@1 w(x)=1 c@1", &[CommitOrder], &[CommitOrder]);
    expect("T1: b@1 w(x)=1 c", &[CommitOrder], &[CommitOrder]);
}

#[test]
fn values_of_aborted_transactions_are_not_read() {
    let aborted = "
        T1: b@0 w(x)=1 a
        T2: b@0 r(x)=1 c";
    expect(aborted, &[AbortedRead], &[AbortedRead]);
    let taken_back = "
        T1: b@0 save w(x)=1 undo0 w(y)=2 c@1
        T2: b@1 r(x)=1 a";
    expect(taken_back, &[AbortedRead], &[AbortedRead]);
}

#[test]
fn values_that_were_replaced_before_the_commit_are_not_read() {
    let history = "
        T1: b@0 w(x)=1 w(x)=2 c@1
        T2: b@1 r(x)=1 c";
    expect(history, &[IntermediateRead], &[IntermediateRead]);
}

#[test]
fn transactions_that_see_each_other_are_circular_information() {
    let history = "
        T1: b@0 w(x)=1 r(y)=2 c@1
        T2: b@0 w(y)=2 r(x)=1 c@2";
    expect(history, &[FutureRead, CircularInformation], &[FutureRead, CircularInformation]);
}

#[test]
fn a_range_read_twice_does_not_show_rows_that_came_in_between() {
    let history = "
        T0: b@0 w(a)=1 c@1
        T1: b@1 scan[..]=a:1 scan[..]=a:1,b:2 c
        T2: b@1 w(b)=2 c@2";
    expect(history, &[FutureRead, ReadSkew], &[FutureRead, ReadSkew]);
}

#[test]
fn a_reader_can_show_that_writers_are_not_serializable() {
    // Fekete's accounts: T2 takes money from y, T1 pays money into x, and T3 sees what T1 did but not what T2 did.
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 r(y)=2 w(y)=3 c@2
        T3: b@2 r(x)=1 r(y)=3 c
        T2: b@1 r(x)=1 r(y)=2 w(x)=4 c@3";
    expect(history, &[WriteSkew], &[]);
    let without_the_reader: Vec<&str> = history.lines().filter(|line| !line.contains("T3")).collect();
    expect(&without_the_reader.join("\n"), &[], &[]);
}

#[test]
fn a_pivot_needs_snapshot_isolation_to_be_allowed() {
    // T2 is the pivot: one rw comes from T3, which saw T1 but not T2, and another rw leads to T1.
    let history = |pivot: &str, others: &str| {
        format!(
            "T0: b@0 w(x)=1 w(y)=2 c@1
             T1 {others}: b@1 r(y)=2 w(y)=3 c@2
             T3 {others}: b@2 r(x)=1 r(y)=3 c
             T2 {pivot}: b@1 r(x)=1 r(y)=2 w(x)=4 c@3"
        )
    };
    assert_eq!(check(&parse(&history("snapshot", ""))), []);
    assert_eq!(check(&parse(&history("", "snapshot"))).len(), 1);
}

#[test]
fn who_begins_after_an_acknowledgement_sees_the_commit() {
    let history = |began: u64| {
        format!(
            "T1: b@0#1 w(x)=1 c@1#3
             T2: b@0#{began} r(x)=- c#9"
        )
    };
    expect(&history(2), &[], &[]);
    expect(&history(4), &[ReadSkew], &[ReadSkew]);
    let found = check(&parse(&history(4)));
    assert!(found[0].needs_real_time && found[0].to_string().contains("rt: T1 was acknowledged before T2 began"));
    // Transactions that read and write nothing began and ended between T1 and T4. The cycle has only T1 and T4.
    let history = "
        T1: b@0#1 w(x)=1 c@1#2
        T2: b@1#3 c#4
        T3: b@1#5 c#6
        T4: b@0#7 r(x)=- c#8";
    let found = check(&parse(history));
    assert_eq!((found.len(), found[0].transactions.len()), (1, 2), "{}", found[0]);
}

#[test]
fn a_transaction_sees_its_own_writes() {
    let right = "
        T0: b@0 w(a)=1 w(b)=2 c@1
        T1: b@1 w(a)=3 r(a)=3 e(b) r(b)=- w(c)=4 scan[..]=a:3,c:4 e[a..b] scan[..]=c:4 back[..]=c:4 c@2";
    expect(right, &[], &[]);
    for wrong in ["r(a)=1", "r(b)=2", "r(c)=-", "scan[..]=a:3", "scan[..]=a:3,b:2,c:4", "back[..]=c:4,a:1"] {
        let history = format!(
            "T0: b@0 w(a)=1 w(b)=2 c@1
             T1: b@1 w(a)=3 e(b) w(c)=4 {wrong} a"
        );
        expect(&history, &[MissedOwnWrite], &[MissedOwnWrite]);
    }
}

#[test]
fn writes_that_were_taken_back_are_not_there() {
    let history = |saw: &str| {
        format!(
            "T0: b@0 w(a)=1 c@1
             T1: b@1 w(b)=2 save w(a)=3 save e[..] w(a)=4 undo1 r(a)=3 e(b) undo0 {saw} w(a)=5 undo0 c@2
             T2: b@2 scan[..]=a:1,b:2 c"
        )
    };
    expect(&history("scan[..]=a:1,b:2"), &[], &[]);
    expect(&history("r(a)=3"), &[AbortedRead], &[AbortedRead]);
    expect(&history("r(b)=-"), &[MissedOwnWrite], &[MissedOwnWrite]);
}

#[test]
fn a_read_whose_write_was_taken_back_counts() {
    let history = "
        T1: b@0 save r(y)=- undo0 w(x)=1 c@1
        T2: b@0 r(x)=- w(y)=2 c@2";
    expect(history, &[WriteSkew], &[]);
}

#[test]
fn rows_of_ranges_are_complete_and_in_order() {
    let of = |read: &str| format!("T0: b@0 w(a)=1 w(b)=2 w(c)=3 e(d) c@1\nT1: b@1 {read} a");
    for right in ["scan[a..c)=a:1,b:2", "back(a..c]=c:3,b:2", "scan[..]=a:1..", "back[..]=c:3..", "scan(c..]=-"] {
        expect(&of(right), &[], &[]);
    }
    for missing in ["scan[..]=a:1,c:3", "scan[..]=a:1,b:2", "scan[..]=b:2..", "back[..]=b:2..", "scan[a..a]=-"] {
        expect(&of(missing), &[NotOfSnapshot], &[NotOfSnapshot]);
    }
    for broken in ["scan[..]=b:2,a:1,c:3", "back[..]=a:1,b:2,c:3", "scan[a..b)=a:1,b:2", "scan[a..a]=a:1,a:1"] {
        expect(&of(broken), &[BrokenRange], &[BrokenRange]);
    }
    for unwritten in ["r(a)=7", "r(a)=2", "scan[..]=a:1,b:2,c:3,d:9"] {
        expect(&of(unwritten), &[UnwrittenValue], &[UnwrittenValue]);
    }
}

#[test]
fn an_erase_of_an_absent_key_changes_nothing_for_its_readers() {
    let history = |third: &str| {
        format!(
            "T1: b@0 r(x)=- w(y)=1 c@1
             T2: b@0 r(y)=- e(x) c@2
             T3: b@2 {third} c@3"
        )
    };
    expect(&history("w(z)=2"), &[], &[]);
    // T2 comes before T1, and T1 before T3.
    expect(&history("r(y)=1 w(x)=3"), &[], &[]);
    // T2 erases x, which had no value anyway. T1 must still come before T3, which gives x a value.
    let history = "
        T1: b@0 r(x)=- w(y)=1 c@3
        T2: b@0 e(x) c@1
        T3: b@1 r(y)=- w(x)=2 c@2";
    expect(history, &[WriteSkew], &[]);
}

#[test]
fn an_erase_of_a_range_is_a_write_of_what_it_changes() {
    // T1 read that x is absent, and T2 erased x although it had no value.
    let history = "
        T1: b@0 r(x)=- w(y)=1 c@1
        T2: b@0 r(y)=- e[x..x] c@2";
    expect(history, &[], &[]);
    let history = "
        T1: b@0 r(x)=- w(y)=1 c@1
        T2: b@0 r(y)=- e[x..y] c@2";
    expect(history, &[LostUpdate], &[OverlappingWrites, LostUpdate]);
    let history = "
        T1: b@0 e[a..m) c@1
        T2: b@0 w(b)=1 c@2";
    expect(history, &[], &[]);
}

#[test]
fn a_transaction_of_unknown_outcome_took_place_or_did_not() {
    let history = |saw: &str| {
        parse(&format!(
            "T0: b@0 w(x)=1 c@1
             T1: b@1 r(x)=1 w(x)=2 ?
             T2: b@1 w(y)=3 w(z)=5 ?
             T3: b@1 w(z)=4 c@2
             T4: b@4 {saw} c"
        ))
    };
    let free = |versions: &[u64]| versions.iter().map(|version| Version(*version)).collect::<Vec<_>>();
    let clean = |saw: &str, versions: &[u64]| check_with_unknown(&history(saw), &free(versions)).is_empty();
    assert!(clean("r(x)=1 r(y)=- r(z)=4", &[]));
    assert!(!clean("r(x)=2 r(y)=- r(z)=4", &[]));
    assert!(clean("r(x)=2 r(y)=- r(z)=4", &[3]));
    assert!(!clean("r(x)=1 r(y)=3 r(z)=4", &[3]));
    assert!(clean("r(x)=1 r(y)=3 r(z)=5", &[3]));
    assert!(clean("r(x)=2 r(y)=3 r(z)=5", &[3, 4]));
    assert!(!clean("r(x)=1 r(y)=3 r(z)=5", &[3, 4]));
}

#[test]
fn what_a_crash_lost_is_not_read_afterwards() {
    let mut history = parse(
        "T0: b@0 w(x)=1 c@1
         T1: b@1 w(x)=2 c@2
         T2: b@2 r(x)=2 c",
    );
    assert_eq!(check(&history), []);
    lose_after(&mut history, Version(1));
    let with = |text: &str| [history.clone(), parse(text)].concat();
    assert_eq!(check(&with("T3: b@1 r(x)=1 w(x)=3 c@2")), []);
    assert_eq!(check(&with("T3: b@1 r(x)=2 c"))[0].kind, AbortedRead);
}

#[test]
fn a_history_is_printed_as_it_is_read() {
    let lines = [
        "T2 snapshot: b@1 r(x)=1 r(y)=- w(x)=2 e(y) e[a..c) scan[a..c)=a:1,b:2 back(..c]=-.. save w(x)=3 undo0 c@2",
        "T3: b@1#7 r(1/x)=1 scan1/[..]=- e2/(a..] c#9",
        "T4: b@0 a",
        "T5: b@0 w(x)=8 ?",
    ];
    let shown: Vec<String> = parse(&lines.join("\n")).iter().map(ToString::to_string).collect();
    assert_eq!(shown, [&lines[0].replace("back(..c]", "back[..c]"), lines[1], lines[2], lines[3]]);
}

#[test]
fn the_story_of_a_cycle_names_transactions_keys_and_versions() {
    let history = "
        T0: b@0 w(x)=1 w(y)=2 c@1
        T1: b@1 r(x)=1 w(y)=3 c@2
        T2: b@1 scan[y..y]=y:2 w(x)=4 c@3";
    let found = check(&parse(history));
    let expected = "\
WriteSkew: T2 -> T1 -> T2
  rw: T2 read y, and T1 overwrote it at 2
  rw: T1 read x, and T2 overwrote it at 3
  T2: b@1 scan[y..y]=y:2 w(x)=4 c@3
  T1: b@1 r(x)=1 w(y)=3 c@2
";
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
}

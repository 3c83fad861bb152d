use super::*;

fn parameters() -> RunParameters {
    RunParameters { tab_rows: 100, batch_size: 10, ..RunParameters::default() }
}

fn manner(compat: bool) -> Manner {
    Manner { compat, in_server: false, seed: 1, session: 0, line_every: Duration::ZERO }
}

#[test]
fn every_range_can_be_drawn_and_none_is_outside() {
    let mut ranges = Ranges::new(&parameters(), &manner(false));
    let firsts: Vec<i64> = (0..10_000)
        .map(|_| ranges.draw())
        .map(|(first, last)| {
            assert_eq!(last - first, 9);
            first
        })
        .collect();
    assert_eq!((firsts.iter().min(), firsts.iter().max()), (Some(&1), Some(&91)));

    let whole = RunParameters { batch_size: 1000, ..parameters() };
    assert_eq!(Ranges::new(&whole, &manner(false)).draw(), (1, 100), "a batch has no more rows than there are");
}

#[test]
fn ranges_of_ybio_leave_the_last_rows_out() {
    let mut ranges = Ranges::new(&parameters(), &manner(true));
    let firsts: Vec<i64> = (0..10_000).map(|_| ranges.draw().0).collect();
    assert_eq!((firsts.iter().min(), firsts.iter().max()), (Some(&1), Some(&89)));
}

#[test]
fn updates_are_as_many_as_asked_for_and_in_the_order_of_the_document() {
    for (percent, updates) in [(0, 0), (10, 10), (42, 42), (100, 100)] {
        let parameters = RunParameters { pct_update: percent, ..parameters() };
        let mut ran = Accessed::new();
        let mut first = Vec::new();
        for _ in 0..100 {
            let statement = ran.next_statement(&parameters);
            first.push(statement == Statement::Update);
            ran.add(statement, Seen { rows: 10, max: None }, 10);
        }
        assert_eq!(ran.updated, 10 * updates, "{percent} %");
        if percent == 42 {
            // ybio prints the percentages .0, 50.0, 33.3, 50.0, 40.0, 50.0, 42.9, 37.5, 44.4, 40.0 for "updated".
            let updated = [false, true, false, true, false, true, false, false, true, false];
            assert_eq!(first[..10], updated);
        }
    }
}

#[test]
fn a_line_has_the_columns_of_the_document() {
    let job = Job {
        job_id: 4,
        start_time: Timestamp(0),
        end_time: None,
        num_batches: None,
        num_rows: None,
        pct_update: 42,
        max_scratch: None,
        prepared: true,
        index_only: false,
        tab_rows: 1_000_000,
        batch_size: 100_000,
        table_name: "bench0001".to_owned(),
        table_rows: None,
        table_scratch: None,
        comments: None,
    };
    let ran = Accessed { batches: 2, rows: 200_000, updated: 100_000, ..Accessed::new() };
    let seen = Seen { rows: 100_000, max: None };
    assert_eq!(
        ran.line(&job, seen, (717_054, 817_053), 1_234_971_937, true),
        "NOTICE:    161947 rows/s on bench0001, job:      4 batch#:     2, total:       200000 rows read,   50.0 % updated, \
         last: 100000 rows between  817053 and 717054"
    );
}

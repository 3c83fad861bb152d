use super::*;

/// A filter that removes rows with an odd last byte of the key, and panics at the key "panic".
fn odd() -> Arc<TableFilter> {
    TableFilter::new(Box::new(|row: &JudgedRow<'_>| {
        assert_ne!(row.key, b"panic");
        if row.key.last().is_some_and(|last| last % 2 == 1) { Verdict::Remove } else { Verdict::Keep }
    }))
}

fn row<'r>(key: &'r [u8], parts: &'r [&'r [u8]]) -> JudgedRow<'r> {
    JudgedRow { key, parts, version: Version(7), until: None }
}

#[test]
fn decisions_come_in_order_and_in_batches() {
    let filter = odd();
    let mut judge = Judge::new(filter.clone(), false);
    for i in 0..2 * BATCH_ROWS as u32 + 20 {
        judge.judge(&row(&i.to_be_bytes(), &[b"value"]));
    }
    drop(judge);
    let batches: Vec<Taken> = std::iter::from_fn(|| filter.take()).collect();
    assert_eq!(batches.iter().map(|batch| batch.decisions.len()).collect::<Vec<_>>(), [BATCH_ROWS, 10]);
    let number = |decision: &Decision| u32::from_be_bytes(decision.key[..].try_into().expect("4 bytes"));
    let keys: Vec<u32> = batches.iter().flat_map(|batch| &batch.decisions).map(number).collect();
    assert!(keys.iter().copied().eq((0..2 * BATCH_ROWS as u32 + 20).filter(|i| i % 2 == 1)));
    assert_eq!(filter.counts(), FilterCounts { judged: 2 * BATCH_ROWS as u64 + 20, ..FilterCounts::default() });
    let (bytes, taken) = {
        let state = filter.state.lock();
        (state.bytes, state.taken)
    };
    assert_eq!((bytes, taken), (0, 2));
    drop(batches);
    assert!(!filter.wait_for_others(), "all was taken");
}

#[test]
fn what_waits_is_bounded_and_the_rest_is_counted() {
    let filter = odd();
    let mut judge = Judge::new(filter.clone(), false);
    let key = [&[0; 60_000][..], &[1]].concat();
    for _ in 0..200 {
        judge.judge(&row(&key, &[b""]));
    }
    drop(judge);
    let bytes = filter.state.lock().bytes;
    assert!((MOST_BYTES..MOST_BYTES + 2 * BATCH_BYTES).contains(&bytes), "{bytes} bytes wait");
    let waiting: u64 = std::iter::from_fn(|| filter.take()).map(|batch| batch.decisions.len() as u64).sum();
    assert_eq!((filter.counts().left, filter.counts().judged), (200 - waiting, 200));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test needs threads")]
fn a_compaction_waits_for_room_while_decisions_are_taken() {
    let filter = odd();
    let taken = std::thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut taken = 0;
            while filter.wait() {
                taken += filter.take().map_or(0, |batch| batch.decisions.len());
            }
            taken + std::iter::from_fn(|| filter.take()).map(|batch| batch.decisions.len()).sum::<usize>()
        });
        let mut judge = Judge::new(filter.clone(), true);
        let key = [&[0; 60_000][..], &[1]].concat();
        for _ in 0..2_000 {
            judge.judge(&row(&key, &[b""]));
        }
        drop(judge);
        while filter.wait_for_others() {
            std::thread::yield_now();
        }
        filter.end();
        taking.join().expect("it does not panic")
    });
    assert_eq!(taken as u64 + filter.counts().left, 2_000);
}

#[test]
fn a_filter_that_panics_is_not_asked_again() {
    let filter = odd();
    let mut judge = Judge::new(filter.clone(), false);
    judge.judge(&row(b"1", &[b""]));
    judge.judge(&row(b"panic", &[b""]));
    judge.judge(&row(b"3", &[b""]));
    drop(judge);
    assert!(filter.counts().has_panicked && !filter.wait());
    assert!(filter.take().is_none());
}

#[test]
fn a_value_that_stays_the_same_is_no_decision() {
    let filter = TableFilter::new(Box::new(|row: &JudgedRow<'_>| Verdict::replace(row.value().to_ascii_uppercase())));
    let mut judge = Judge::new(filter.clone(), false);
    judge.judge(&row(b"1", &[b"UP"]));
    judge.judge(&row(b"2", &[b"down"]));
    drop(judge);
    let batch = filter.take().expect("one row changes");
    assert_eq!(batch.decisions.iter().map(|decision| &decision.key[..]).collect::<Vec<_>>(), [b"2"]);
}

#[test]
fn a_filter_that_has_ended_is_not_asked_by_a_compaction_under_way() {
    let filter = odd();
    let mut judge = Judge::new(filter.clone(), false);
    filter.end();
    judge.judge(&row(b"panic", &[b""]));
    assert_eq!(filter.counts(), FilterCounts::default());
}

#[test]
fn a_table_has_one_filter() {
    let (filters, table) = (Filters::default(), TableId(3));
    assert!(filters.add(table, odd()).is_some() && filters.add(table, odd()).is_none());
    filters.remove(table);
    assert!(filters.of(table).is_none() && filters.add(table, odd()).is_some());
}

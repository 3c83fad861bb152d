use super::*;
use harness::Workload as _;
use harness::partitions::counters_value;

fn worker(options: Options) -> (Work, Worker) {
    options.check().expect("the options go together");
    let work = Work::new(options);
    let worker = work.client(0, 1);
    (work, worker)
}

/// Answers the current request.
fn answer(worker: &mut Worker, result: Result<Outcome, Failure>, reply: &Reply) -> (Next, u64, u64) {
    let (mut note, mut retries) = (|_, _, _| {}, 0);
    let mut extra = Extra::new(&mut note, &mut retries);
    let next = worker.served(result.as_ref().copied(), reply, &mut extra);
    let written = extra.written();
    (next, written, retries)
}

fn again() -> Result<Outcome, Failure> {
    Err(Failure::again("busy", "the database is busy"))
}

#[test]
fn a_failed_request_is_made_again_so_often_and_waits_longer_each_time() {
    let options = Options { error_limit: 2, ..Options::new(Mode::Write, Workload::Uniform) };
    let (work, mut worker) = worker(options);
    for operation in 0..2 {
        assert!(worker.begin());
        let asked = format!("{:?}", worker.request());
        let mut waits = Vec::new();
        let next = loop {
            match answer(&mut worker, again(), &Reply::new()) {
                (Next::Wait(nanos), 0, 1) => waits.push(nanos),
                (next, _, _) => break next,
            }
            assert_eq!(format!("{:?}", worker.request()), asked, "it is the same request");
        };
        assert_eq!((waits.len(), next), (10, Next::Failed));
        assert!(waits[0] <= 80_000_000 && waits[9] == 1_000_000_000, "{waits:?}");
        assert_eq!(work.findings().limit.is_some(), operation == 1);
    }
    assert!(!worker.begin(), "the limit of errors ends the run");
    assert_eq!(work.findings().limit.as_deref(), Some("2 operations failed: -error-limit"));
}

#[test]
fn a_request_that_cannot_succeed_is_not_made_again() {
    let options = Options { error_at_row_limit: 2, ..Options::new(Mode::Write, Workload::Uniform) };
    let (work, mut worker) = worker(options);
    let refused = || Err(Failure::request("too_long", "the value is too long"));
    for (result, expected) in [(refused(), Next::Failed), (Ok(Outcome::Ok), Next::Done), (refused(), Next::Failed)] {
        assert!(worker.begin());
        assert_eq!(answer(&mut worker, result, &Reply::new()).0, expected);
    }
    assert_eq!(work.findings().limit, None, "there was one between them that did not fail");
    assert!(worker.begin());
    assert_eq!(answer(&mut worker, refused(), &Reply::new()).0, Next::Failed);
    assert!(work.findings().limit.is_some_and(|why| why.contains("-error-at-row-limit")));
}

#[test]
fn mixed_operations_write_and_read_in_turn() {
    let options = Options { rows_per_request: 3, ..Options::new(Mode::Mixed, Workload::Sequential) };
    let work = Work::new(options);
    for number in 0..2 {
        let mut worker = work.client(number, 2);
        let kinds: Vec<u8> = (0..6)
            .map(|_| {
                assert!(worker.begin());
                let (kind, request) = worker.request();
                let Request::Partition(request) = request else { panic!("rows lie in partitions") };
                assert_eq!(matches!(request, PartitionRequest::Insert { cks, .. } if cks.len() == 3), kind.0 == 0);
                kind.0
            })
            .collect();
        assert_eq!(kinds, if number == 0 { [0, 1, 0, 1, 0, 1] } else { [1, 0, 1, 0, 1, 0] });
    }
}

#[test]
fn rows_that_are_not_as_they_were_written_are_found() {
    let options = Options { filler: Filler::Checked, ..Options::new(Mode::Read, Workload::Uniform) };
    let (work, mut worker) = worker(options);
    assert!(worker.begin());
    let Place::Partition(pk) = worker.place else { panic!("it reads a partition") };
    let mut value = Vec::new();
    value::put(Filler::Checked, pk, 5, 70, &mut value);
    let mut reply = Reply::new();
    reply.partition_row(5, &value);
    assert_eq!(answer(&mut worker, Ok(Outcome::Ok), &reply).0, Next::Done);
    value[30] ^= 1;
    reply.partition_row(5, &value);
    assert!(worker.begin());
    worker.place = Place::Partition(pk);
    assert_eq!(answer(&mut worker, Ok(Outcome::Ok), &reply).0, Next::Failed);
    let findings = work.findings();
    assert_eq!(findings.wrong_rows, 1);
    assert!(findings.first_wrong_row.is_some_and(|text| text.contains(&format!("pk {pk}, ck 5: the checksum"))));
}

#[test]
fn counters_are_sums_of_whole_updates() {
    for ck in [0, 1, -3, i64::MAX] {
        for updates in [0_i64, 1, 5] {
            let mut counters = std::array::from_fn(|number| ck.wrapping_add(number as i64).wrapping_mul(updates));
            assert_eq!(check_counters(ck, &counters_value(counters)), Ok(()));
            counters[3] = counters[3].wrapping_add(1);
            assert!(check_counters(ck, &counters_value(counters)).is_err());
        }
    }
    assert!(check_counters(1, b"short").is_err());
}

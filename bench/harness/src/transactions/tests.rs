use super::*;

#[test]
fn waits_begin_with_the_second_conflict_and_double_up_to_ten_milliseconds() {
    let longest = |conflicts| (0..20_000_000).step_by(1000).map(|random| wait_after(conflicts, random)).max();
    let micros = |micros| Some(Duration::from_micros(micros));
    assert_eq!([0, 1].map(longest), [micros(0), micros(0)]);
    for (conflicts, bound) in
        [(2, 20), (3, 40), (7, 640), (11, 10_000), (12, 10_000), (100, 10_000), (u64::MAX, 10_000)]
    {
        let longest = longest(conflicts).expect("there are random numbers");
        let bound = Duration::from_micros(bound);
        assert!(longest <= bound && longest >= bound - Duration::from_micros(1), "{conflicts}: {longest:?}");
    }
}

#[test]
fn a_counter_is_a_number_of_eight_bytes_or_nothing() {
    assert_eq!(number(None).expect("no value is 0"), 0);
    assert_eq!(number(Some(&[1, 2, 0, 0, 0, 0, 0, 0])).expect("it is a number"), 513);
    assert_eq!(number(Some(b"seven")).expect_err("five bytes").kind, "not_a_number");
}

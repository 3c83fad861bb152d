use super::*;

#[test]
fn files_and_page_have_every_number_of_the_text() {
    let run = crate::results::tests::run("kv mixed", &["WRITE", "READ"], &[]);
    crate::results::tests::check(&run, &results(&run, true, true));
}

#[test]
fn a_short_window_and_what_few_requests_do_not_tell_are_marked() {
    let mut run = crate::results::tests::run("kv read", &["READ"], &[]);
    run.measured.nanos = 1_500_000_000;
    run.measured.kinds[0].service = Times::default();
    let text = results(&run, true, false);
    assert!(text.contains("SHORT WINDOW of 1.50 s"), "{text}");
    assert!(text.contains("raw latency:\n  max:           -\n  99.9th:        -\n"), "{text}");
}

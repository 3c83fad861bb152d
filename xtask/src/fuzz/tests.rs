use super::*;

#[track_caller]
fn check(arguments: &[&str], expected: Result<(&[&str], u64), &str>) {
    let all = ["log", "node"].map(str::to_owned);
    let found = plan(&all, arguments);
    let expected = expected.map(|(targets, minutes_each)| Plan {
        targets: targets.iter().map(|&target| target.to_owned()).collect(),
        minutes_each,
    });
    assert_eq!(found, expected.map_err(str::to_owned));
}

#[test]
fn targets_and_minutes_are_taken_as_given() {
    check(&[], Ok((&["log", "node"], 1)));
    check(&["node"], Ok((&["node"], 1)));
    check(&["--minutes", "5"], Ok((&["log", "node"], 5)));
    check(&["log", "--minutes", "2"], Ok((&["log"], 2)));
}

#[test]
fn what_cannot_be_run_is_refused() {
    check(&["nod"], Err("no target `nod`; there are log, node"));
    check(&["--minutes"], Err("--minutes wants a whole number of at least 1"));
    check(&["--minutes", "0"], Err("--minutes wants a whole number of at least 1"));
}

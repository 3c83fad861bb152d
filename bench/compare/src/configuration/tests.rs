use super::*;
use harness::Plan;
use harness::report::Pair;

fn run(target: &str, cache: &str) -> Run {
    let mut run = Run::new("workload a", target, &Plan::default(), harness::Measured::default());
    run.settings.push(Pair::new("cache", cache));
    run.workload.push(Pair::new("recordcount", "1000"));
    run
}

fn check(base: &[(&Environment, &Run)], new: &[(&Environment, &Run)], expected: &[(&str, &str, &str, bool)]) {
    let found = differences("workload a", base, new);
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.what.as_str(), one.base.join(" "), one.new.join(" "), one.forbids.is_some()))
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(what, base, new, forbids)| (*what, base.to_string(), new.to_string(), *forbids))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_compared_may_differ_and_the_ground_may_not() {
    let here = Environment { version: "1".to_owned(), commit: Some("a".to_owned()), ..Environment::default() };
    let mut later = Environment { commit: Some("b".to_owned()), ..here.clone() };
    later.machine.load = 3.0;
    later.machine.disk_free_bytes = 5 << 30;
    let base = run("larch:one?cache=1GiB", "1 GiB");
    let mut new = run("larch:two?cache=2GiB", "2 GiB");
    new.seed = 2;
    check(
        &[(&here, &base)],
        &[(&later, &new)],
        &[
            ("commit", "a", "b", false),
            ("target", "larch:?cache=1GiB", "larch:?cache=2GiB", false),
            ("setting cache", "1 GiB", "2 GiB", false),
            ("seed", "0", "2", false),
        ],
    );
    check(&[(&here, &base)], &[(&here, &run("larch:elsewhere?cache=1GiB", "1 GiB"))], &[]);

    later.machine.processors = 64;
    new.plan.clients = 9;
    new.workload[0].value = "2000".to_owned();
    let found = differences("workload a", &[(&here, &base)], &[(&later, &new)]);
    let forbidden: Vec<&str> = found.iter().filter(|one| one.forbids.is_some()).map(|one| one.what.as_str()).collect();
    assert_eq!(forbidden, ["machine processors", "workload recordcount", "plan clients"]);
}

#[test]
fn runs_of_one_side_are_set_alike() {
    let here = Environment::default();
    let (one, other) = (run("larch:one", "1 GiB"), run("larch:one", "2 GiB"));
    check(
        &[(&here, &one), (&here, &other)],
        &[(&here, &one), (&here, &one)],
        &[("setting cache", "1 GiB 2 GiB", "1 GiB", true)],
    );
}

#[test]
fn what_is_so_of_all_runs_is_said_once() {
    let here = Environment::default();
    let (one, other) = (run("larch:one", "1 GiB"), run("larch:one", "2 GiB"));
    let of_a = differences("workload a", &[(&here, &one)], &[(&here, &other)]);
    let of_c = differences("workload c", &[(&here, &one)], &[(&here, &other)]);
    let all = merged(vec![of_a.clone(), of_c]);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].run, "");
    let some = merged(vec![of_a, Vec::new()]);
    assert_eq!((some.len(), some[0].run.as_str()), (1, "workload a"));
}

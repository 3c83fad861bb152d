use super::*;
use crate::comparison::tests::run;

#[test]
fn figures_are_those_of_the_result() {
    let run = run(1_000, 20, |_| 100);
    let of = |metric: Metric, kind| metric.of(&run, kind).expect("the run has it");
    assert_eq!(of(Metric::Throughput, None).value, 1_000.0);
    assert_eq!(of(Metric::Throughput, Some("READ")).value, 1_000.0);
    assert!((of(Metric::Mean, Some("READ")).value - 100.0).abs() < 0.1);
    assert!((of(Metric::Quantile(990), Some("READ")).value - 100.0).abs() < 0.1);
    assert_eq!(of(Metric::Counted("bytes written"), None).value, 50.0);
    assert_eq!(Metric::Counted("no such").of(&run, None), None);
    assert_eq!(Metric::Mean.of(&run, Some("SCAN")), None);
    assert!(of(Metric::Throughput, None).within.is_some_and(|within| within.variance < 1e-20), "all seconds are alike");
}

#[test]
fn a_quantile_is_less_sure_where_times_change_from_second_to_second() {
    let steady = run(1_000, 40, |_| 100);
    let wandering = run(1_000, 40, |second| 100 + 10 * (second / 10));
    let error = |run: &Run| {
        let figure = Metric::Quantile(500).of(run, Some("READ")).expect("the run has it");
        figure.within.expect("there are seconds").variance.sqrt()
    };
    assert!(error(&steady) < 0.001, "{}", error(&steady));
    assert!((0.03..0.3).contains(&error(&wandering)), "{}", error(&wandering));
}

#[test]
fn names_say_which_quantile() {
    assert_eq!([500, 990, 999].map(|at| Metric::Quantile(at).name()), ["p50", "p99", "p99.9"]);
}

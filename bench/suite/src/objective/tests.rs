use super::Objective;

#[test]
fn percentiles_and_the_longest_time_have_bounds_in_three_units() {
    for (text, quantile, bound_nanos, shown) in [
        ("p99<5ms", Some(0.99), 5_000_000, "p99 < 5.00 ms"),
        ("p99.99 < 800us", Some(0.9999), 800_000, "p99.99 < 800 us"),
        ("p50<0.5s", Some(0.5), 500_000_000, "p50 < 500 ms"),
        ("max< 2 s", None, 2_000_000_000, "max < 2.00 s"),
    ] {
        let objective = Objective::parse(text).expect("it is one");
        assert_eq!(objective, Objective { quantile, bound_nanos }, "{text}");
        assert_eq!(objective.to_string(), shown);
    }
}

#[test]
fn everything_else_is_refused_with_the_grammar() {
    let bad = [
        "",
        "p99",
        "p99<",
        "p99<5",
        "p99<5m",
        "p99<ms",
        "p99<0ms",
        "p99<1ns",
        "p99>5ms",
        "p99<=5ms",
        "p49<5ms",
        "p100<5ms",
        "p99.999<5ms",
        "99<5ms",
        "mean<5ms",
        "p99<-5ms",
        "p99<1e3ms",
        "pnan<5ms",
        "p99<infs",
        "p99<5ms<6ms",
        "max<2000000s",
    ];
    for text in bad {
        let why = Objective::parse(text).expect_err(text);
        assert!(why.contains("p50 to p99.99") && why.contains("us, ms or s"), "{why}");
    }
}

use super::Target;

#[test]
fn a_target_is_taken_apart() {
    let target = Target::parse("larch:/data/db?cache=64MiB&durability=synced").expect("a good target");
    assert_eq!((target.scheme.as_str(), target.place.as_str()), ("larch", "/data/db"));
    let mut options = target.options().expect("good options");
    assert_eq!(options.bytes("cache", 0).expect("a size"), 64 << 20);
    assert!(options.choice("durability", &[("buffered", false), ("synced", true)]).expect("a choice"));
    options.finish().expect("all were taken");

    let target = Target::parse("postgres://me:secret@localhost:5433/bench").expect("a good target");
    assert_eq!(target.place, "//me:secret@localhost:5433/bench");
}

#[test]
fn what_is_wrong_is_named() {
    let said = |text: &str| Target::parse(text).expect_err("a bad target").text;
    assert_eq!(said("larch"), "target `larch`: has no scheme; write `larch:DIR`, or see `larch bench targets`");
    assert_eq!(said("larch:d?cache"), "target `larch:d?cache`: an option is `name=value`");
    assert_eq!(said("larch:d?a=1&a=2"), "target `larch:d?a=1&a=2`: option `a` is there twice");

    let target = Target::parse("larch:?cash=1&cache=much").expect("taken apart");
    assert_eq!(
        target.directory().expect_err("no directory").text,
        "target `larch:?cash=1&cache=much` names no directory: write `larch:DIR`"
    );
    let mut options = target.options().expect("good options");
    assert_eq!(
        options.bytes("cache", 0).expect_err("not a size").text,
        "target `larch:?cash=1&cache=much`: option `cache` is `much` and should be a size, like 4096, 64KiB, 256MiB or 1TiB"
    );
    assert_eq!(
        options.finish().expect_err("one is left").text,
        "target `larch:?cash=1&cache=much`: there is no option `cash`; there is: cache"
    );
}

#[test]
fn a_password_that_would_be_cut_in_two_is_refused_and_not_shown() {
    for secret in ["se/cret", "/secret", "se?cret", "s@se/cret"] {
        for scheme in ["postgres", "cassandra"] {
            let said = Target::parse(&format!("{scheme}://odd:{secret}@127.0.0.1:1/x")).expect_err("cut in two").text;
            assert!(said.contains("://odd:***@127.0.0.1:1/x`: an `@` stands behind the host"), "{said}");
            assert!(!said.contains("cret"), "{said}");
        }
    }
    for good in ["postgres://odd:s#e%2Fc@h:1/x", "postgres://odd:a@b@h/x?application_name=a%40b", "larch:a@b/c?cache=1"]
    {
        Target::parse(good).unwrap_or_else(|refused| panic!("{refused}"));
    }
}

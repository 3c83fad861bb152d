use super::{Origin, Setting, of, parse, variable};
use clap::{Arg, ArgAction};
use std::path::Path;

fn options() -> Vec<Arg> {
    let number = clap::value_parser!(u32);
    vec![
        Arg::new("cache").long("cache").value_name("SIZE").value_parser(number),
        Arg::new("read_only").long("read-only").action(ArgAction::SetTrue),
    ]
}

/// The settings of a file with this text and of these variables.
fn settings(text: &str, variables: &[(&str, &str)]) -> Result<Vec<Setting>, String> {
    let lines = parse(text, &options(), Path::new("config")).map_err(|failure| failure.to_string())?;
    let variable = |name: &str| {
        let found = variables.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| (*value).into())
    };
    of(&options(), lines, variable).map_err(|failure| failure.to_string())
}

#[test]
fn a_variable_counts_before_the_file() {
    let of = |text, variables| {
        let found = settings(text, variables).expect("it is right");
        found.into_iter().map(|setting| (setting.value, setting.origin.to_string())).collect::<Vec<_>>()
    };
    let text = "# mine\n\n cache = 5 # more\nread-only=true\n";
    let line = |value: &str, place: &str| (value.to_owned(), place.to_owned());
    assert_eq!(of(text, &[]), [line("5", "config:3"), line("true", "config:4")]);
    assert_eq!(of(text, &[("LARCH_CACHE", "7")]), [line("7", "LARCH_CACHE"), line("true", "config:4")]);
    assert_eq!(of(text, &[("LARCH_CACHE", "")]), of(text, &[]), "an empty variable is none");
    assert_eq!(of("", &[("LARCH_READ_ONLY", "false")]), [line("false", "LARCH_READ_ONLY")]);
    assert_eq!(variable("read-only"), "LARCH_READ_ONLY");
}

#[test]
fn what_is_wrong_names_the_file_and_the_line() {
    for (text, message) in [
        ("cache = 1\ncach = 2\n", "config:2: cach is no option that a file can set"),
        ("cache 1\n", "config:1: \"cache 1\" is no setting"),
        ("cache = 1\n\ncache = 1\n", "config:3: cache was set at config:1 before"),
    ] {
        let error = settings(text, &[]).expect_err("it is wrong");
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn a_value_that_an_option_does_not_take_names_where_it_stands() {
    let setting = |option: &str, value: &str| Setting {
        option: option.to_owned(),
        value: value.to_owned(),
        origin: Origin::Variable("LARCH_X".to_owned()),
    };
    let [cache, read_only] = &options()[..] else { unreachable!("there are two") };
    let word = |setting: Setting, option| setting.word(option).map_err(|failure| failure.to_string());
    assert_eq!(word(setting("cache", "5"), cache), Ok(Some("--cache=5".into())));
    assert_eq!(word(setting("read-only", "true"), read_only), Ok(Some("--read-only".into())));
    assert_eq!(word(setting("read-only", "false"), read_only), Ok(None));
    let error = word(setting("cache", "much"), cache).expect_err("it is no number");
    assert!(error.starts_with("LARCH_X: invalid value 'much' for '--cache <SIZE>'"), "{error}");
    let error = word(setting("read-only", "yes"), read_only).expect_err("it is neither");
    assert_eq!(error, "LARCH_X: read-only is true or false, and not \"yes\"");
}

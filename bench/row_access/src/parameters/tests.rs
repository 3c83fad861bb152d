use super::*;

fn setup_of(argument: &str) -> Result<SetupParameters, Failure> {
    let mut parameters = SetupParameters::default();
    for (name, text) in pairs(argument)? {
        parameters.set(&name, &text)?;
    }
    Ok(parameters)
}

fn run_of(argument: &str) -> Result<RunParameters, Failure> {
    let mut parameters = RunParameters::default();
    for (name, text) in pairs(argument)? {
        parameters.set(&name, &text)?;
    }
    Ok(parameters)
}

#[test]
fn calls_of_the_document_are_understood() {
    let setup = setup_of("call setup(tab_prefix=>'bench',tab_num=>1,tab_rows=>1e6::int,batch_size=>10000);");
    let expected = SetupParameters { batch_size: 10_000, ..SetupParameters::default() };
    assert_eq!(setup.expect("it is one of the document"), expected);

    let run = run_of(
        "call runit(tab_prefix=>'bench',tab_num=>1,tab_rows=>1e6::int,run_duration=>interval '1 minutes',pct_update=>10,\
         batch_size=>1e4::int);",
    );
    let expected = RunParameters { pct_update: 10, ..RunParameters::default() };
    assert_eq!(run.expect("it is one of the document"), expected);
    let run =
        run_of("run_duration=>interval '10 seconds',pct_update=>42,batch_size=>1e5::int").expect("it is one, too");
    assert_eq!((run.run_duration, run.pct_update, run.batch_size), (Duration::from_secs(10), 42, 100_000));
}

#[test]
fn every_parameter_can_be_set() {
    for name in SetupParameters::NAMES {
        let text = if *name == "tab_prefix" { "rows" } else { "1" };
        SetupParameters::default().set(name, text).expect("1 is a number, a truth and a text");
    }
    for name in RunParameters::NAMES {
        let text = if *name == "tab_prefix" { "rows" } else { "1" };
        RunParameters::default().set(name, text).expect("1 is a number, a truth and a text");
    }
}

#[test]
fn orders_and_times_have_many_spellings() {
    let order = |text: &str| setup_of(&format!("orderby=>{text}")).expect("it is an order").orderby;
    assert_eq!(order("null"), Order::Made);
    assert_eq!(order("'mykey'"), Order::Key);
    assert_eq!(order("'yb_hash_code(mykey,scratch)'"), Order::Sql("yb_hash_code(mykey,scratch)".to_owned()));
    let time = |text: &str| run_of(&format!("run_duration=>{text}")).expect("it is a time").run_duration.as_secs_f64();
    for (text, seconds) in
        [("60s", 60.0), ("'00:01:00'", 60.0), ("500ms", 0.5), ("1 hour 2 minutes", 3720.0), ("7", 7.0), ("0", 0.0)]
    {
        assert_eq!(time(text), seconds, "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_its_name() {
    for (argument, named) in [
        ("tab_rows", "NAME=>VALUE"),
        ("tab_rows=>many", "tab_rows"),
        ("tab_rows=>0", "tab_rows"),
        ("tab_rows=>1.5", "tab_rows"),
        ("tab_num=>10000", "tab_num"),
        ("tab_prefix=>'x;drop'", "tab_prefix"),
        ("recreate=>maybe", "recreate"),
        ("tab_row=>1", "tab_row"),
        ("call setup", "parentheses"),
    ] {
        let failure = setup_of(argument).expect_err(argument);
        assert!(failure.text.contains(named), "{}", failure.text);
    }
    assert!(run_of("pct_update=>101").is_err() && run_of("run_duration=>'1 fortnight'").is_err());
}

#[test]
fn keys_are_those_of_ybio_only_if_asked_for() {
    let setup = SetupParameters { tab_rows: 95, batch_size: 10, ..SetupParameters::default() };
    assert_eq!(setup.keys(false), 1..=95);
    assert_eq!(setup.keys(true), 11..=110);
}

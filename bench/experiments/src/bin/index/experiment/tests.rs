use super::*;
use crate::Arguments;
use clap::Parser;
use experiments::ExperimentArgs;
use experiments::experiment::run_until;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use suite::stop::{INTERRUPTED, Stop};

const TINY: Shape = Shape { rows: 2000, files: 2, groups: true, history: true };

fn index(cells: &[Cell]) -> Index {
    let counter = Counter::None("this is a test".to_owned());
    Index { extent: Extent { quick: true }, cells: cells.to_vec(), counter }
}

/// Times that [`reached`] was measured.
static MEASURED: AtomicU32 = AtomicU32::new(0);

fn reached(scratch: &Scratch, _: Extent) -> Result<Vec<Goal>> {
    MEASURED.fetch_add(1, Ordering::Relaxed);
    std::fs::write(scratch.join("file"), "of this cell")?;
    Ok(vec![Goal::in_words("the time of a test", "<= 1 s", "0.5 s", true).note("half of what it may be")])
}

fn missed(_: &Scratch, _: Extent) -> Result<Vec<Goal>> {
    Ok(vec![Goal::in_words("another time", "<= 1 s", "2 s", false)])
}

/// ^C of the first run.
static STOP: OnceLock<Stop> = OnceLock::new();

fn interrupted(_: &Scratch, _: Extent) -> Result<Vec<Goal>> {
    STOP.get().expect("the run has it").press();
    Ok(vec![Goal::in_words("a third time", "<= 1 s", "0.7 s", true)])
}

#[test]
fn an_interrupted_run_goes_on_and_leaves_one_result() {
    let scratch = Scratch::new("index");
    let args = ExperimentArgs::checked(true, Some(scratch.join("out")));
    let cells = [Cell::Operations(TINY), Cell::Goals(("first", reached)), Cell::Goals(("second", interrupted))];
    let stop = STOP.get_or_init(Stop::never).clone();
    let failure = run_until(index(&cells), &args, stop).expect_err("it was interrupted");
    assert_eq!(failure.kind, INTERRUPTED);
    let read = |name: &str| std::fs::read_to_string(scratch.join("out").join(name)).expect("it is written");
    assert!(!read("cells.jsonl").contains("a third time"), "what was interrupted is not kept");

    assert!(run_until(index(&cells), &args, Stop::never()).expect("it goes on"), "all goals are reached");
    assert_eq!(MEASURED.load(Ordering::Relaxed), 1, "what was measured is not measured again");
    let result: serde_json::Value = serde_json::from_str(&read("result.json")).expect("it is JSON");
    assert_eq!(result["goals"].as_array().map(Vec::len), Some(2));
    assert_eq!((&result["goals"][0]["measured"], &result["goals"][1]["measured"]), (&"0.5 s".into(), &"0.7 s".into()));
    let operations = &result["cells"][Cell::Operations(TINY).to_string()];
    // All but `nothing`.
    assert_eq!((&operations["rows"], operations["parts"].as_array().map(Vec::len)), (&2000.into(), Some(15)));
    let page = read("index.html");
    assert!(page.contains("half of what it may be") && page.contains("get an older version, one file"));
    assert!(!scratch.join("out/data").exists(), "the files of the cells are gone");

    let all = [&cells[..], &[Cell::Nodes, Cell::Goals(("third", missed))]].concat();
    assert!(!run_until(index(&all), &args, Stop::never()).expect("it goes on"), "a goal falls short");
    assert!(read("index.html").contains("bytes a child"));
}

#[test]
fn the_arguments_say_which_cells_there_are() {
    let names = |arguments: &[&str]| {
        let all = ["index"].iter().chain(arguments);
        let parsed = Arguments::try_parse_from(all).map_err(|error| error.to_string())?;
        Ok::<_, String>(parsed.cells(Extent { quick: false }).iter().map(Cell::to_string).collect::<Vec<_>>())
    };
    let count = |arguments: &[&str]| names(arguments).map(|names| names.len());
    assert_eq!([count(&[]), count(&["--parts"]), count(&["--goals"])], [Ok(25), Ok(13), Ok(12)]);
    assert_eq!(names(&["--only", "slices", "--only", "level"]), Ok(vec!["level".to_owned(), "slices".to_owned()]));
    let unknown = names(&["--only", "levels"]).expect_err("no goal is called so");
    assert!(unknown.contains("[possible values: index_bytes, resident_memory, level,"), "{unknown}");
    assert!(names(&["--parts", "--only", "level"]).is_err() && names(&["--parts", "--goals"]).is_err());
}

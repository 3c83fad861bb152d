use super::*;
use harness::report::{Environment, Report};
use kit::Scratch;

#[test]
fn programs_take_turns_at_being_first() {
    assert_eq!([1, 2, 3].map(|round| order(round, 2)), [vec![0, 1], vec![1, 0], vec![0, 1]]);
    assert_eq!(order(2, 1), [0]);
}

#[test]
fn a_baseline_takes_the_place_of_the_one_before() {
    let scratch = Scratch::new("regress");
    let place = scratch.join("kind");
    let rounds = |count: usize| vec![("round".to_owned(), Report::new(Environment::default())); count];
    let names = || {
        let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        stored(&place).into_iter().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(), Vec::<String>::new());
    store(&place, &stored(&place), &rounds(3)).expect("the directory is ours");
    assert_eq!(names(), ["round-01.json", "round-02.json", "round-03.json"]);
    store(&place, &stored(&place), &rounds(2)).expect("the directory is ours");
    assert_eq!(names(), ["round-01.json", "round-02.json"]);
    read(&stored(&place)).expect("they are results");
}

use super::*;
use crate::experiment::tests::options;
use kit::Scratch;

fn opened(scratch: &Scratch, scale: Scale) -> Ground {
    Ground::open("test", &options(scratch, scale), 1 << 20, Stop::never()).expect("there is room")
}

#[test]
fn a_cell_is_kept_also_for_another_process() {
    let scratch = Scratch::new("ground");
    let mut ground = opened(&scratch, Scale::Tiny);
    ground.keep("a", 7.into()).expect("there is room");
    drop(ground);
    let path = scratch.join("out/cells.jsonl");
    let mut text = fs::read_to_string(&path).expect("it was written");
    text.push_str("{\"cell\":\"cut sho");
    fs::write(&path, text).expect("there is room");
    let mut ground = opened(&scratch, Scale::Tiny);
    assert!(ground.has("a") && !ground.has("cut sho"));
    // A cell after a line that an interrupted process cut short is kept, too.
    ground.keep("b", 8.into()).expect("there is room");
    drop(ground);
    let ground = opened(&scratch, Scale::Tiny);
    assert_eq!((ground.known::<u64>("a"), ground.known::<u64>("b")), (Some(7), Some(8)));
}

#[test]
fn cells_of_another_scale_are_measured_again() {
    let scratch = Scratch::new("ground");
    opened(&scratch, Scale::Tiny).keep("a", 7.into()).expect("there is room");
    assert!(!opened(&scratch, Scale::Small).has("a"));
}

#[test]
fn all_cells_are_measured_again_if_that_is_asked_for() {
    let scratch = Scratch::new("ground");
    opened(&scratch, Scale::Tiny).keep("a", 7.into()).expect("there is room");
    let args = ExperimentArgs { again: true, ..options(&scratch, Scale::Tiny) };
    let mut again = Ground::open("test", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(!again.has("a"));
    again.keep("b", 8.into()).expect("there is room");
    let ground = opened(&scratch, Scale::Tiny);
    assert!(ground.has("b") && !ground.has("a"), "what was measured before is gone");
}

#[test]
fn a_database_is_built_again_unless_it_was_built_whole() {
    let scratch = Scratch::new("ground");
    let built = |rows: u64| {
        move |place: &Path, _: &Stop| {
            assert!(!place.exists(), "what was half made is gone");
            fs::create_dir(place).expect("there is room");
            Ok(rows)
        }
    };
    let mut ground = opened(&scratch, Scale::Tiny);
    let fails = ground.built::<u64>("a", |place, _| {
        fs::create_dir(place).expect("there is room");
        Err(refused("no".to_owned()))
    });
    assert!(fails.is_err() && ground.told::<u64>("a").is_none());
    let place = ground.data("a").expect("there is room");
    let (made, told) = ground.built("a", built(7)).expect("there is room");
    assert_eq!((made.place(), told), (&*place, 7));
    drop(ground);
    let mut ground = opened(&scratch, Scale::Tiny);
    let again = ground.built::<u64>("a", |_, _| panic!("it is there"));
    assert_eq!(again.expect("there is room").1, 7);
    // The rows are known, but the database is gone.
    ground.remove_data().expect("it is ours");
    assert_eq!(ground.built("a", built(8)).expect("there is room").1, 8);
    // Another one that must be alone takes its place.
    ground.built_alone("b", built(9)).expect("there is room");
    assert!(!place.exists() && ground.data("b").expect("there is room").exists());
}

#[test]
fn after_control_c_nothing_is_built() {
    let scratch = Scratch::new("ground");
    let mut ground = opened(&scratch, Scale::Tiny);
    let stop = ground.stop.clone();
    let built = ground.built("a", |place, _| {
        fs::create_dir(place).expect("there is room");
        stop.press();
        Ok(1)
    });
    assert_eq!(built.expect_err("it was interrupted").kind, INTERRUPTED);
    assert!(!ground.data("a").expect("there is room").exists());
}

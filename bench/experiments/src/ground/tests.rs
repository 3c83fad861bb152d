use super::*;
use kit::Scratch;

fn opened(out: &Path, scale: Scale) -> Ground {
    let args = ExperimentArgs { scale, out: Some(out.to_owned()), check: false, price: None };
    Ground::with_stop("test", &args, 1 << 20, Stop::never()).expect("there is room")
}

#[test]
fn a_cell_is_measured_once_also_by_another_process() {
    let scratch = Scratch::new("ground");
    let mut ground = opened(scratch.path(), Scale::Tiny);
    assert_eq!(ground.cell("a", |_| Ok(7_u64)).expect("there is room"), Some(7));
    assert_eq!(ground.cell::<u64>("a", |_| panic!("it is known")).expect("there is room"), Some(7));
    drop(ground);
    let path = scratch.join("cells.jsonl");
    let mut text = fs::read_to_string(&path).expect("it was written");
    text.push_str("{\"cell\":\"cut sho");
    fs::write(&path, text).expect("there is room");
    let mut ground = opened(scratch.path(), Scale::Tiny);
    assert!(ground.has("a") && !ground.has("cut sho"));
    assert_eq!(ground.cell::<u64>("a", |_| panic!("it is known")).expect("there is room"), Some(7));
    // A cell after a line that an interrupted process cut short is kept, too.
    assert_eq!(ground.cell("b", |_| Ok(8_u64)).expect("there is room"), Some(8));
    drop(ground);
    let ground = opened(scratch.path(), Scale::Tiny);
    assert_eq!((ground.known::<u64>("a"), ground.known::<u64>("b")), (Some(7), Some(8)));
}

#[test]
fn cells_of_another_scale_are_measured_again() {
    let scratch = Scratch::new("ground");
    opened(scratch.path(), Scale::Tiny).cell("a", |_| Ok(7_u64)).expect("there is room");
    let mut ground = opened(scratch.path(), Scale::Small);
    assert_eq!(ground.cell("a", |_| Ok(8_u64)).expect("there is room"), Some(8));
}

#[test]
fn a_cell_that_fails_is_not_kept() {
    let scratch = Scratch::new("ground");
    let mut ground = opened(scratch.path(), Scale::Tiny);
    assert!(ground.cell::<u64>("a", |_| Err(refused("no".to_owned()))).is_err());
    assert!(!ground.has("a"));
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
    let mut ground = opened(scratch.path(), Scale::Tiny);
    let place = ground.data("a").expect("there is room");
    fs::create_dir(&place).expect("there is room");
    assert_eq!(ground.built("a", built(7)).expect("there is room"), Some((place.clone(), 7)));
    drop(ground);
    let mut ground = opened(scratch.path(), Scale::Tiny);
    let again = ground.built::<u64>("a", |_, _| panic!("it is there"));
    assert_eq!(again.expect("there is room"), Some((place.clone(), 7)));
    ground.remove_data().expect("it is ours");
    assert_eq!(ground.built("a", built(8)).expect("there is room"), Some((place, 8)));
}

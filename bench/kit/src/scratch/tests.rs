use super::{Scratch, check_room};

#[test]
fn two_of_one_name_are_apart_and_gone_when_dropped() {
    let (one, other) = (Scratch::new("kit"), Scratch::new("kit"));
    assert_ne!(one.path(), other.path());
    std::fs::write(one.join("file"), "text").expect("the directory is there");
    one.clear().expect("the directory is ours");
    assert!(one.path().exists() && !one.join("file").exists());
    let path = one.path().to_owned();
    drop(one);
    assert!(!path.exists() && other.path().exists());
}

#[test]
fn a_directory_that_was_removed_early_leaves_its_name_to_nobody() {
    let one = Scratch::new("early");
    std::fs::remove_dir_all(one.path()).expect("the directory is ours");
    let other = Scratch::new("early");
    drop(one);
    assert!(other.path().exists(), "the first owner removed the directory of the second");
}

#[test]
fn a_disk_without_room_is_refused_with_advice() {
    let scratch = Scratch::new("room");
    assert_eq!(check_room(scratch.path(), 0, "never"), Ok(()));
    let refused = check_room(scratch.path(), u64::MAX, "take another").expect_err("no disk has so much");
    assert!(refused.ends_with("MiB: take another"), "{refused}");
}

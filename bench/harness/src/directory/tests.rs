use super::*;
use crate::conformance::Scratch;

fn open(place: &Path, scheme: &str, opening: Opening, page: &str) -> Result<Directory, Failure> {
    let target = Target::parse(&format!("{scheme}:{}", place.display())).expect("a good target");
    Directory::open(&target, &Table::numbered("t", "f", 1), opening, &[("page", page.to_owned())])
}

#[test]
fn a_store_is_made_once_and_found_again() {
    let scratch = Scratch::new("directory");
    let place = scratch.path().join("new/store");
    assert_eq!(open(&place, "a", Opening::Existing, "4").expect_err("none yet").kind, "no_store");
    let made = open(&place, "a", Opening::OrCreate, "4").expect("made");
    assert_eq!(made.data(), place.join("data"));
    assert_eq!(open(&place, "a", Opening::Existing, "4").expect_err("in use").kind, "locked");
    assert_eq!(open(&place, "a", Opening::Recreate, "4").expect_err("in use").kind, "locked");
    drop(made);
    open(&place, "a", Opening::Existing, "4").expect("as it was");
}

#[test]
fn nothing_is_removed_but_what_a_store_of_this_engine_wrote() {
    let scratch = Scratch::new("directory-removed");
    let place = scratch.path();
    fs::write(place.join("letter"), "dear").expect("written");
    assert_eq!(open(place, "a", Opening::Recreate, "4").expect_err("not ours").kind, "not_a_store");
    assert_eq!(open(place, "a", Opening::OrCreate, "4").expect_err("not ours").kind, "not_a_store");
    fs::remove_file(place.join("letter")).expect("removed");

    let made = open(place, "a", Opening::Recreate, "4").expect("an empty directory will do");
    fs::write(made.data().join("rows"), "of a").expect("written");
    drop(made);
    fs::write(place.join("letter"), "dear").expect("written");
    assert_eq!(open(place, "b", Opening::Recreate, "4").expect_err("of another engine").kind, "not_this_engine");
    let again = open(place, "a", Opening::Recreate, "4").expect("its own");
    assert!(!again.data().join("rows").exists());
    assert_eq!(fs::read_to_string(place.join("letter")).expect("still there"), "dear");
}

#[test]
fn a_store_made_by_other_options_is_named_with_them() {
    let scratch = Scratch::new("directory-options");
    drop(open(scratch.path(), "a", Opening::OrCreate, "4").expect("made"));
    let why = open(scratch.path(), "a", Opening::Existing, "16").expect_err("not the same").text;
    assert!(why.contains("(engine a, table t, fields 1, page 4)"), "{why}");
    assert!(why.contains("(engine a, table t, fields 1, page 16)"), "{why}");
    drop(open(scratch.path(), "a", Opening::Recreate, "16").expect("made anew"));
    open(scratch.path(), "a", Opening::Existing, "16").expect("as it is now");
}

#[test]
fn bytes_read_as_they_are() {
    assert_eq!(
        [0, 100, 4096, 3 << 20, (1 << 30) + 1024].map(bytes_text),
        ["0 B", "100 B", "4 KiB", "3 MiB", "1048577 KiB"]
    );
}

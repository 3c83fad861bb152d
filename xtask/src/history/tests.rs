//! Tests which commits are read from a changelog.

use super::{commit_of, newest_release};

const CHANGES: &str = "\
# Changelog

## 0.10

Commit: `aaaaaaaaaaaa`.

## 0.2, not released yet

Commit: none yet.

## 0.1

The first one.

Commit: `0123456789abcdef`.
";

#[test]
fn the_commit_of_a_release_is_the_one_below_its_heading() {
    assert_eq!(commit_of(CHANGES, "0.1").as_deref(), Ok("0123456789abcdef"));
    assert_eq!(commit_of(CHANGES, "0.10").as_deref(), Ok("aaaaaaaaaaaa"));
}

#[test]
fn a_release_without_a_commit_is_said_to_have_none() {
    let none = commit_of(CHANGES, "0.2").expect_err("it has none");
    assert_eq!(none, "CHANGELOG.md names no commit for release 0.2 yet; say one with --commit");
    assert_eq!(commit_of(CHANGES, "0.3").expect_err("there is none"), "CHANGELOG.md has no release 0.3");
}

#[test]
fn the_newest_release_is_the_first_that_has_a_commit() {
    assert_eq!(newest_release(CHANGES), Some(("0.10", "aaaaaaaaaaaa".to_owned())));
    let begun = format!("# Changelog\n\n## Unreleased\n\nMore.\n\n{}", &CHANGES["# Changelog\n\n".len()..]);
    assert_eq!(newest_release(&begun), Some(("0.10", "aaaaaaaaaaaa".to_owned())));
    assert_eq!(newest_release("# Changelog\n"), None);
}

//! Tests where cargo writes what it builds.

use super::*;

#[test]
fn the_target_folder_is_where_cargo_puts_it() {
    let of = |target: Option<&str>| target_of(Path::new("/repo"), target.map(OsString::from));
    assert_eq!(of(None), Path::new("/repo/target"));
    assert_eq!(of(Some("/elsewhere")), Path::new("/elsewhere"));
    assert!(of(Some("here")).is_absolute());
}

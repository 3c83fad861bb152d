//! Tests where separate workspaces are built.

use super::*;

#[test]
fn a_workspace_of_its_own_is_built_inside_the_target_folder() {
    let of = |target: Option<&str>| target_of(Path::new("/repo"), "engines", target.map(OsString::from));
    assert_eq!(of(None), Path::new("/repo/target/engines"));
    assert_eq!(of(Some("/elsewhere")), Path::new("/elsewhere/engines"));
    assert!(of(Some("here")).is_absolute());
}

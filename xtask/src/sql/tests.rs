//! What the arguments of `cargo x sql` ask for.

use super::*;

#[test]
fn arguments_are_those_of_larch_sql_unless_they_say_otherwise() {
    assert_eq!(plan(&["db", "SELECT 1", "--format", "csv"]), Ok(Plan::Run(&["db", "SELECT 1", "--format", "csv"])));
    assert_eq!(plan(&["--check"]), Ok(Plan::Check));
    assert_eq!(plan(&["--measure", "--rows", "100"]), Ok(Plan::Measure(&["--rows", "100"])));
    assert_eq!(plan(&["--check", "db"]), Err("--check takes nothing else: leave out `db`".to_owned()));
    assert!(plan(&[]).is_err());
}

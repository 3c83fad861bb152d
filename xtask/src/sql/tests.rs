//! Tests what the arguments of `cargo x sql` ask for.

use super::*;

#[test]
fn arguments_are_those_of_larch_sql_unless_they_say_otherwise() {
    assert_eq!(plan(&["db", "SELECT 1", "--format", "csv"]), Ok(Plan::Run(&["db", "SELECT 1", "--format", "csv"])));
    assert_eq!(plan(&["--check"]), Ok(Plan::Check));
    assert_eq!(plan(&["--measure", "--rows", "100"]), Ok(Plan::Measure(&["--rows", "100"])));
    assert_eq!(plan(&["--check", "db"]), Err("--check takes nothing else: leave out `db`".to_owned()));
    assert!(plan(&[]).is_err());
    assert_eq!(plan(&["--ballista", "--check"]), Ok(Plan::CheckBallista));
    assert_eq!(
        plan(&["--ballista", "sql-executor", "--threads", "2"]),
        Ok(Plan::RunBallista(&["sql-executor", "--threads", "2"]))
    );
    assert_eq!(plan(&["--ballista", "--check", "db"]), Err("--check takes nothing else: leave out `db`".to_owned()));
    assert!(plan(&["--ballista"]).is_err());
}

use super::*;

#[test]
fn one_stop_at_level_0_in_any_sample_is_a_goal_missed() {
    let mut table = Table::new(["larch"]);
    rows().into_iter().for_each(|row| table.add(row));
    let is_reached = |table: &Table| table.verdicts().iter().find(|it| it.row == STOPS).map(|it| it.reached);
    let sample = |stops| Sample { level0_stops: stops, ..Sample::default() };

    count_stops(&mut table, 0, &[sample(None)]);
    assert_eq!(is_reached(&table), None, "a store that does not count says nothing");
    count_stops(&mut table, 0, &[sample(Some(0)), sample(Some(0))]);
    assert_eq!(is_reached(&table), Some(true));
    count_stops(&mut table, 0, &[sample(Some(1)), sample(Some(0))]);
    count_stops(&mut table, 0, &[sample(Some(0)), sample(Some(0))]);
    assert_eq!(is_reached(&table), Some(false));
}

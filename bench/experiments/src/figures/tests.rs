use super::*;

#[test]
fn a_figure_that_a_repeat_does_not_have_is_blank() {
    let (all, some, none) = ([Some(3.0), Some(1.0), Some(2.0)], [Some(3.0), None, Some(2.0)], [None; 3]);
    let middle_of = |repeats: &[Option<f64>]| middle(repeats, |repeat| *repeat);
    assert_eq!([middle_of(&all), middle_of(&some), middle_of(&none), middle_of(&[])], [Some(2.0), None, None, None]);
    assert_eq!([&all, &some].map(|repeats| shown_middle(repeats, |repeat| *repeat)), ["2", "-"]);
    let ratio_of = |ours: &[Option<f64>], other: &[Option<f64>]| ratio(ours, other, |repeat| *repeat);
    assert_eq!([ratio_of(&all, &all), ratio_of(&all, &some), ratio_of(&some, &all)], [Some(1.0), None, None]);
}

#[test]
fn a_figure_that_every_repeat_has_needs_no_option() {
    assert_eq!(middle(&[4.0, 1.0], |repeat| *repeat), Some(2.5));
    assert_eq!(ratio(&[4.0, 9.0, 1.0], &[2.0, 3.0, 1.0], |repeat| *repeat), Some(2.0));
}

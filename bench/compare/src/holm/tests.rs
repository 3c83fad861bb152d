use super::adjusted;

#[test]
fn the_least_is_raised_most_and_the_order_stays() {
    assert_eq!(adjusted(&[]), Vec::<f64>::new());
    assert_eq!(adjusted(&[0.25]), [0.25]);
    // Holm's steps multiply 0.01, 0.02, 0.03 and 0.5 by 4, 3, 2 and 1. No result may be less than the result before
    // it.
    let raised = adjusted(&[0.5, 0.01, 0.03, 0.02]);
    for (found, wanted) in raised.iter().zip([0.5, 0.04, 0.06, 0.06]) {
        assert!((found - wanted).abs() < 1e-12, "{raised:?}");
    }
    assert_eq!(adjusted(&[0.9, 0.8]), [1.0, 1.0]);
}

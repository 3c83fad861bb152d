//! What a gauge promises.

use super::Gauge;
use os::sync::Arc;

#[test]
fn a_gauge_is_the_sum_of_the_holdings_alive() {
    let gauge = Arc::<Gauge>::default();
    let (mut one, mut other) = (gauge.holding(), gauge.holding());
    assert_eq!(gauge.bytes(), 0);
    one.set(10);
    other.set(5);
    assert_eq!(gauge.bytes(), 15);
    one.set(3);
    assert_eq!(gauge.bytes(), 8);
    drop(other);
    assert_eq!(gauge.bytes(), 3);
    drop(one);
    assert_eq!(gauge.bytes(), 0);
}

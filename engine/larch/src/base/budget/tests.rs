//! What budgets mean and how they read.

use super::{Budget, DEFAULT_BYTES};
use pages::Elastic;

#[test]
fn a_number_is_exact_and_has_no_bounds() {
    let budget = Budget::from(16 << 20);
    assert_eq!((budget, budget.least_bytes(), budget.elastic()), (Budget::fixed(16 << 20), 16 << 20, None));
    assert_eq!(budget.at_least(1).at_most(u64::MAX), budget);
    assert_eq!((budget.at_least(32 << 20), budget.at_most(4)), (Budget::fixed(32 << 20), Budget::fixed(4)));
}

#[test]
fn the_last_bound_wins() {
    let bounds = |budget: Budget| budget.elastic().map(|Elastic { least_bytes, most_bytes }| (least_bytes, most_bytes));
    assert_eq!(bounds(Budget::free()), Some((DEFAULT_BYTES, u64::MAX)));
    assert_eq!(bounds(Budget::free().at_least(5).at_most(9)), Some((5, 9)));
    assert_eq!(bounds(Budget::free().at_most(9)), Some((9, 9)));
    assert_eq!(bounds(Budget::free().at_most(9).at_least(12)), Some((12, 12)));
    assert_eq!(Budget::free().at_least(5).least_bytes(), 5);
}

#[test]
fn a_budget_says_its_bounds() {
    for (budget, expected) in [
        (Budget::fixed(64 << 20), "64.0 MiB"),
        (Budget::free(), "64.0 MiB or more while memory is free"),
        (Budget::free().at_most(1 << 30), "64.0 MiB to 1024.0 MiB while memory is free"),
    ] {
        assert_eq!(budget.to_string(), expected);
    }
}

//! Compares two sets of benchmark results: first how the results were made, then what was measured. The crate knows
//! nothing of stores, workloads and files.
//!
//! The *new* results are compared with the *base*. Each of the two sets is a *side*.
//!
//! From the bottom up: `batch_means` estimates the uncertainty of the mean of a correlated series. `welch` compares
//! two sets of runs, and `holm` corrects for many comparisons. `metric` takes figures from a run, `configuration`
//! lists the other differences between runs, and `comparison` combines both. `text` and `page` show the comparison.
//! No function has side effects.

mod batch_means;
mod comparison;
mod configuration;
mod holm;
mod metric;
mod page;
mod text;
mod welch;

pub use comparison::{Comparison, Options, Outcome, Row, RunRows, Verdict, compare};
pub use configuration::{Difference, Place};
pub use page::page;
pub use text::text;

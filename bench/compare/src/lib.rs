//! Whether two sets of benchmark results differ: first in how they were made, then in what they measured. It knows no
//! store, no workload and no file.
//!
//! The *base* are the results that the others, the *new* ones, are compared with; each of the two is a *side*.
//!
//! From the bottom up: `batch_means` says how sure the mean of a series is whose values depend on those before; `welch`
//! compares two sets of runs, and `holm` keeps the error of many comparisons at its level. `metric` takes figures out
//! of a run, `configuration` lists how the runs differ in anything else, `comparison` puts these together. `text` and
//! `page` show it. All of it is pure.

mod batch_means;
mod comparison;
mod configuration;
mod holm;
mod metric;
mod page;
mod text;
mod welch;

pub use comparison::{Comparison, Options, Row, RunRows, Verdict, compare};
pub use configuration::Difference;
pub use page::page;
pub use text::text;

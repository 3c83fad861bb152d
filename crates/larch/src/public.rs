//! The modules that a program sees in addition to the root of the crate. They only contain names. Each module has
//! the explanation and the example that its topic needs. The code behind these names is in the folders below.

pub mod backup;
pub mod bulk;
pub mod check;
pub mod event;
pub mod explain;
pub mod index;
pub mod machine;
pub mod options;
pub mod rows;
pub mod stats;
pub mod transaction;
pub mod worker;

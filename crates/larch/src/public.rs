//! The modules that a program sees in addition to the root of the crate. They only contain names of types and
//! functions, which are defined in other folders. Each of these modules explains its topic and gives an example.

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

//! The public modules besides the root of the crate. They only re-export types and functions of other folders. Each
//! module explains its topic and gives an example.

pub mod backup;
pub mod bulk;
pub mod check;
pub mod event;
pub mod explain;
pub mod filter;
pub mod index;
pub mod machine;
pub mod options;
pub mod past;
pub mod rows;
pub mod stats;
pub mod transaction;
pub mod worker;

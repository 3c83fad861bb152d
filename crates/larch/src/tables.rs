//! Changes whole tables: creates, alters and drops them, imports rows as files, takes in files, and lets tables share them. It does not know
//! single commits.

pub mod change;
pub mod define;
pub mod import;
pub mod share;
pub mod sort;
pub mod take_in;

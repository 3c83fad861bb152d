//! Changes whole tables: creates, alters and drops them, imports rows as files, and lets tables share files. It does not know
//! single commits.

pub mod change;
pub mod define;
pub mod import;
pub mod share;

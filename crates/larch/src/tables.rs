//! Changes of whole tables: importing rows as files, and tables that share files with others.

pub mod change;
pub mod define;
pub mod import;
pub mod share;

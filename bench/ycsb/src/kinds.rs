//! The kinds of operations that are measured separately, in the order in which they are printed.

use harness::Kind;

/// The names. A [`Kind`] is an index into this list.
pub const NAMES: &[&str] = &["READ", "READ-MODIFY-WRITE", "UPDATE", "VERIFY", "INSERT", "SCAN"];

pub const READ: Kind = Kind(0);
pub const READ_MODIFY_WRITE: Kind = Kind(1);
pub const UPDATE: Kind = Kind(2);
pub const VERIFY: Kind = Kind(3);
pub const INSERT: Kind = Kind(4);
pub const SCAN: Kind = Kind(5);

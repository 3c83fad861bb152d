//! redb.

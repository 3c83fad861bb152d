//! lmdb.

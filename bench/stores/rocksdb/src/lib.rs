//! rocksdb.

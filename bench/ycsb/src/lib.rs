//! YCSB.

mod generator;
mod key;
mod keyspace;
mod random;
mod value;
#[cfg(test)]
mod vectors;

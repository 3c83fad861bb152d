//! Writing a file: rows go in, in order; data pages, index nodes and a footer come out, with memory bounded by the
//! tree's height and the megabyte of closed nodes that wait for their extent.

mod builder;
mod file_writer;
mod filter;
mod rows;
mod tree;

pub use builder::{BuildOptions, Builder, Compression, history_key};

#[cfg(test)]
mod tests;

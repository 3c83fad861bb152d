//! Writes a file: it takes rows in order and writes data pages, index nodes and a footer. Its memory is bounded: by
//! the height of the tree, and by the megabyte of closed nodes that wait for their extent. It reads nothing.

mod behind;
mod builder;
mod file_writer;
mod filter;
mod options;
mod rows;
mod tree;

pub use builder::SstBuilder;
pub use options::BuildOptions;
pub use pages::Compression;

#[cfg(test)]
mod tests;

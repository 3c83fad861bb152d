//! Writes a file: it takes rows in order and writes data pages, index nodes and a footer. Its memory depends only
//! on the height of the tree, and on the closed nodes, of which at most a megabyte waits in memory. It reads
//! nothing.

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

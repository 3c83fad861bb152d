//! Tests of whole files: files that text scripts describe, and files that the first version of the format wrote.

mod golden;
mod script;
mod slices;

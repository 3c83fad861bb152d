//! Whole files: as text scripts say, and as they were written by the first version of the format.

mod golden;
mod script;
mod slices;

//! Writes the files of a database, from rows or from other files, and copies files. This folder does not know when
//! files are written, or how new files are installed.

pub mod copied_file;
pub mod erases;
pub mod keep;
pub mod kept_files;
pub mod merge;
pub mod new_directory;
pub mod older;
pub mod output;
pub mod outside;

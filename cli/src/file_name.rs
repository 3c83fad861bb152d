//! What the name of a file says about its content: the format of its rows, and how it is compressed. This module
//! opens no files.

use crate::args::ScanFormat;
use crate::compressed::Compression;
use crate::failure::{CommandFailure, Result};
use std::ffi::OsStr;
use std::path::Path;

#[cfg(test)]
mod tests;

/// Endings of compressed files and archives that this program does not read, with a program that does.
const NOT_READ: &[(&str, &str)] = &[
    ("bz2", "bzcat"),
    ("xz", "xzcat"),
    ("lz4", "lz4cat"),
    ("lzma", "lzcat"),
    ("br", "brotli -dc"),
    ("zip", "unzip -p"),
    ("7z", "7z x -so"),
];

/// What the name of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The format of the rows, or `None` if the name does not end like that of a known format.
    pub format: Option<ScanFormat>,
    /// How the file is compressed, or `None` if it is not.
    pub compression: Option<Compression>,
}

impl FileName {
    /// Reads the endings of a name, such as `.csv` or `.csv.gz`. Capital letters are read like small ones.
    ///
    /// # Errors
    ///
    /// Returns [`CommandFailure::Usage`] if the name ends like that of a file that is compressed in another way.
    pub fn of(path: &Path) -> Result<Self> {
        let ending = |path: &Path| path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
        let last = ending(path);
        if let Some((_, program)) = NOT_READ.iter().find(|(ending, _)| *ending == last) {
            let name = path.display();
            return Err(CommandFailure::Usage(format!(
                "{name}: larch knows files that are compressed by gzip (.gz) or Zstandard (.zst), and not .{last}; to read it, \
                 use a pipe, as in {program} {name} | larch …, with - as the name of the file"
            )));
        }
        let compression = match &last[..] {
            "gz" => Some(Compression::Gzip),
            "zst" => Some(Compression::Zstd),
            _ => None,
        };
        let inner = match (compression, path.file_stem()) {
            (Some(_), Some(stem)) => ending(Path::new(stem)),
            _ => last,
        };
        let format = match &inner[..] {
            "csv" => Some(ScanFormat::Csv),
            "tsv" => Some(ScanFormat::Tsv),
            "jsonl" => Some(ScanFormat::Jsonl),
            "arrow" => Some(ScanFormat::Arrow),
            "parquet" => Some(ScanFormat::Parquet),
            _ => None,
        };
        Ok(Self { format, compression })
    }
}

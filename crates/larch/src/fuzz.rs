//! A door for the fuzz targets to decoders that are private otherwise. Compiled only with `--cfg fuzzing`.

pub use crate::batch::{BatchOps, Op};
pub use crate::leftovers::Leftovers;
pub use crate::manifest::edit::Framing;
pub use crate::manifest::file_set::{FileOpener, FileSet};
pub use crate::manifest::{Edit, ManifestLog, TableId};
pub use crate::record::{EDIT_FIELDS, HEADER_BYTES, Header, Kind, RECORD_HEADER_BYTES, RecordReader, RecordWriter};
pub use crate::wal::{LogReader, LogWriter};

//! A door for the fuzz targets to decoders that are private otherwise. Compiled only with `--cfg fuzzing`.

pub use crate::built::list::BuiltList;
pub use crate::copies::list::BackupList;
pub use crate::files::leftovers::Leftovers;
pub use crate::log::record::{
    EDIT_FIELDS, EmptyLog, HEADER_BYTES, Header, KnownEnd, LogKind, RECORD_HEADER_BYTES, RecordReader, RecordWriter,
};
pub use crate::log::wal::{LogReader, LogWriter};
pub use crate::manifest::db_file::FileOpener;
pub use crate::manifest::edit::Framing;
pub use crate::manifest::file_set::FileSet;
pub use crate::manifest::{Edit, ManifestLog, NewFile, TableId};
pub use crate::write::batch::{BatchOps, Op};

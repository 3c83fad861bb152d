//! Exposes private decoders to the fuzz targets. Compiled only with `--cfg fuzzing`.

pub use crate::base::ops::{BatchOps, Op};
pub use crate::base::record::{
    EDIT_FIELDS, EmptyLog, HEADER_BYTES, Header, KnownEnd, LEAN_RECORDS, LogKind, RecordForm, RecordReader,
    RecordWriter,
};
pub use crate::base::table::TableId;
pub use crate::copies::list::BackupList;
pub use crate::import::built::list::BuiltList;
pub use crate::log::{LogReader, LogWriter};
pub use crate::manifest::db_file::FileOpener;
pub use crate::manifest::directory::leftovers::Leftovers;
pub use crate::manifest::edit::Framing;
pub use crate::manifest::file_set::FileSet;
pub use crate::manifest::{Edit, ManifestLog, NewFile};

/// The operand of a merge, as logs have it.
pub fn encoded(op: &crate::MergeOp<'_>) -> Vec<u8> {
    op.encode().to_vec()
}

//! Brings files that the previous writer has left on this machine into the journal. When the next writer takes
//! over, they replace the files with the same names there. This module does not know what is in these files, or
//! where they are.
//!
//! Short files are in the new writer's first sheet after its takeover. Long files need several sheets, and have
//! other names until the last of these sheets gives all of them their final names at once:
//!
//! ```text
//! sheet  35   a writer takes over
//! sheet  36   name bringing-7: the files of writer 7 are being brought
//! sheets 37…  00000031.log.brought, piece after piece
//! sheet  99   00000031.log.brought becomes 00000031.log; bringing-7 is gone
//! ```
//!
//! The files are those of the last writer that has put a sheet after its takeover. A writer with logs on its
//! machine puts such a sheet before it promises that any commit is durable. So if a writer dies before this sheet,
//! nothing that it has left has to be brought, and the commits of earlier writers are not lost. While the name
//! `bringing-7` exists, each process that takes over looks for the files of writer 7 and not for those of later
//! writers, which have promised nothing. A process on another machine finds no such files, and uses the journal as it
//! is.

use super::state::{Journal, State};
use super::table::Table;
use os::File;
use os::sync::Arc;
use std::io;

/// A file that a writer has left on this machine.
#[derive(Debug)]
pub struct LeftFile {
    pub name: String,
    pub file: Arc<dyn File>,
    pub bytes: u64,
}

impl LeftFile {
    /// At most `most` bytes from `offset` on.
    fn piece(&self, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; (self.bytes - offset).min(most) as usize];
        let read = self.file.read_at(&mut piece, offset)?;
        piece.truncate(read);
        Ok(piece)
    }
}

/// The journal has a name with this prefix while files are being brought in several sheets. The rest of the name is
/// the epoch of the writer that has left these files.
const BRINGING: &str = "bringing-";

/// The suffix of a brought file that is not complete yet.
const BROUGHT: &str = ".brought";

/// Whether a name exists only while files are being brought.
pub fn is_passing(name: &str) -> bool {
    name.starts_with(BRINGING) || name.ends_with(BROUGHT)
}

/// The epoch of the writer whose files have to be brought, if they are on this machine.
pub fn source(table: &Table) -> u64 {
    let unfinished = table.names.keys().find_map(|name| name.strip_prefix(BRINGING)?.parse().ok());
    unfinished.unwrap_or(table.last.epoch)
}

impl Journal {
    /// Brings the files in `left` into the journal: in one sheet if they have at most `most` bytes in total,
    /// otherwise in sheets of `most` bytes each. Call this right after a takeover, before anything else is written.
    /// If it fails, this process is not the writer.
    ///
    /// # Errors
    ///
    /// An error of reading a file; the errors of [`Journal::sync`].
    pub(super) fn bring(&self, left: &[LeftFile], most: u64) -> io::Result<()> {
        let at_once = left.iter().map(|file| file.bytes).sum::<u64>() <= most;
        let brought = self.begin_bringing(at_once).and_then(|()| match at_once {
            true => left.iter().try_for_each(|file| self.replace(&file.name, file.piece(0, u64::MAX)?)),
            false => self.bring_all(left, most),
        });
        let brought = brought.and_then(|()| self.put_now());
        if brought.is_err() {
            *self.state.lock() = State::default();
        }
        brought
    }

    /// Removes the names of files that another writer has begun to bring. If several sheets are needed, creates the
    /// name that says whose files are being brought.
    fn begin_bringing(&self, at_once: bool) -> io::Result<()> {
        let (bringing, names) = {
            let state = self.state.lock();
            let names: Vec<String> = state.names.keys().filter(|name| is_passing(name)).cloned().collect();
            (format!("{BRINGING}{}", source(&state.table)), names)
        };
        names.iter().filter(|name| at_once || **name != bringing).try_for_each(|name| self.remove(name))?;
        if at_once || names.contains(&bringing) {
            return Ok(());
        }
        self.create(&bringing).map(drop)
    }

    fn bring_all(&self, left: &[LeftFile], most: u64) -> io::Result<()> {
        for left in left {
            let (file, mut end) = (self.create(&format!("{}{BROUGHT}", left.name))?, 0);
            loop {
                let piece = left.piece(end, most)?;
                if piece.is_empty() {
                    break;
                }
                self.write(file, &piece, end)?;
                self.sync()?;
                end += piece.len() as u64;
            }
        }
        for left in left {
            self.rename(&format!("{}{BROUGHT}", left.name), &left.name)?;
        }
        let names: Vec<String> = self.state.lock().names.keys().filter(|name| is_passing(name)).cloned().collect();
        names.iter().try_for_each(|name| self.remove(name))?;
        self.sync()
    }
}

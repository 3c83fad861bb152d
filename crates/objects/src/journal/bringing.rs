//! Files that the writer before has left on this machine. When the next writer takes over, they replace the files
//! of the journal. It does not know what is in them, nor where they lie.
//!
//! Short files are in the first sheet that the next writer puts after it has taken over. Long files come in sheets
//! after that, under other names, and the last of these sheets gives all of them their names at once:
//!
//! ```text
//! sheet  35   a writer takes over
//! sheet  36   name bringing-7: the files of writer 7 are being brought
//! sheets 37…  00000031.log.brought, piece after piece
//! sheet  99   00000031.log.brought becomes 00000031.log; bringing-7 is gone
//! ```
//!
//! The files are those of the last writer that has put a sheet after it took over. A writer whose logs lie on its
//! machine puts such a sheet before it promises anything, so a writer that dies before that sheet hides no commits
//! of others. As long as the name `bringing-7` is there, whoever takes over looks for the files of writer 7. Files
//! of a later writer are not looked for, because that one has promised nothing. A writer that finds no files, on
//! another machine, takes the journal as it is.

use super::state::{Journal, State};
use super::table::Table;
use os::File;
use os::sync::Arc;
use std::io;

/// A file that a writer has left.
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

/// The start of a name that ends with the epoch of the writer whose files are being brought.
const BRINGING: &str = "bringing-";

/// The end of the names of files that are not complete yet.
const BROUGHT: &str = ".brought";

/// Whether a name exists only while files are brought.
pub fn is_passing(name: &str) -> bool {
    name.starts_with(BRINGING) || name.ends_with(BROUGHT)
}

/// The epoch of the writer whose files replace those of the journal, if they are found.
pub fn source(table: &Table) -> u64 {
    let unfinished = table.names.keys().find_map(|name| name.strip_prefix(BRINGING)?.parse().ok());
    unfinished.unwrap_or(table.last.epoch)
}

impl Journal {
    /// Brings files: in one sheet if they have at most `most` bytes together, and otherwise in sheets of `most`
    /// bytes each. This process has taken over, but nobody has used its right to write yet. If this fails, it has
    /// not taken over.
    ///
    /// # Errors
    ///
    /// If a file cannot be read; as [`Journal::sync`].
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

    /// Removes the names of files that another writer has begun to bring. If several sheets are needed, it also
    /// says which files are being brought.
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

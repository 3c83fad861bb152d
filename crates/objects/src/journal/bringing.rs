//! Files that the writer before has left on this machine, which replace those of the journal when the next one takes over. It
//! does not know what is in them, nor where they lie.
//!
//! What is short is part of the sheet that takes over. What is longer comes in sheets after it, under other names, and the last
//! of these sheets gives all of it its names at once:
//!
//! ```text
//! sheet  35   takes over; name bringing-7: the files of writer 7 are being brought
//! sheets 36…  00000031.log.brought, piece after piece
//! sheet  99   00000031.log.brought becomes 00000031.log; bringing-7 is gone
//! ```
//!
//! As long as the name `bringing-7` is there, whoever takes over looks for what writer 7 has left, and not for what a writer
//! after it has left: that one has promised nothing. One that finds nothing, on another machine, takes the journal as it is.

use super::sheet::SheetWriter;
use super::table::Table;
use super::{Journal, State, new_file};
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

/// Before the epoch of the writer whose files are being brought.
const BRINGING: &str = "bringing-";

/// At the end of the names of files that are not there as a whole.
const BROUGHT: &str = ".brought";

/// Whether a name is only there while files are brought.
pub fn is_passing(name: &str) -> bool {
    name.starts_with(BRINGING) || name.ends_with(BROUGHT)
}

/// The epoch of the writer whose files replace those of the journal, if they are found.
pub fn source(table: &Table) -> u64 {
    let unfinished = table.names.keys().find_map(|name| name.strip_prefix(BRINGING)?.parse().ok());
    unfinished.unwrap_or_else(|| table.epoch())
}

/// Adds to the sheet that takes over what it says of files that were left: all of them, or that they are being brought. Returns how
/// many files that makes.
///
/// # Errors
///
/// A file cannot be read.
pub fn begin(
    (writer, epoch): (&mut SheetWriter, u64),
    table: &Table,
    left: &[LeftFile],
    at_once: bool,
) -> io::Result<u64> {
    let bringing = format!("{BRINGING}{}", source(table));
    for name in table.names.keys().filter(|name| is_passing(name) && (at_once || **name != bringing)) {
        writer.name(name, None);
    }
    let mut files_made = 0;
    let mut file = |name: &str| {
        table.names.get(name).copied().unwrap_or_else(|| {
            files_made += 1;
            new_file(epoch, files_made)
        })
    };
    if at_once {
        for left in left {
            let (file, bytes) = (file(&left.name), left.piece(0, u64::MAX)?);
            writer.name(&left.name, Some(file));
            writer.write(file, 0, &bytes);
        }
    } else {
        let file = file(&bringing);
        writer.name(&bringing, Some(file));
    }
    Ok(files_made)
}

impl Journal {
    /// Brings files in sheets of `most` bytes. This process has taken over, and nobody has used that yet. If it fails, it has not.
    ///
    /// # Errors
    ///
    /// A file cannot be read; as [`Journal::sync`].
    pub(super) fn bring(&self, left: &[LeftFile], most: u64) -> io::Result<()> {
        let brought = self.bring_all(left, most);
        if brought.is_err() {
            *self.state.lock() = State::default();
        }
        brought
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

//! The input of an import: a file or standard input, which is read once from beginning to end. This module does not
//! know what the bytes mean.

use crate::failure::{Failure, Result};
use os::{Access, FileReader, Machine};
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

/// The end of a message when the input of an import cannot be read.
pub const NOTHING_KEPT: &str = "nothing was imported";
/// The end of a message when the input of built files cannot be read.
pub const NOTHING_BUILT: &str = "nothing was built";
/// The name of standard input in messages.
const STDIN: &str = "standard input";
/// The size of one read from the input.
const READ_BYTES: usize = 1 << 20;

/// An open input that has at least one byte.
pub struct Input {
    /// The name of the input in messages.
    pub name: String,
    /// The length of the input, if it is known.
    pub bytes: Option<u64>,
    /// The number of bytes of the input that were read so far.
    pub read: Rc<Cell<u64>>,
    /// The bytes.
    pub reader: BufReader<Counted>,
}

impl Input {
    /// Opens a file, or standard input for `-`. `kept` becomes the end of an error message.
    pub fn open(path: &Path, kept: &str) -> Result<Self> {
        let (name, bytes, origin) = if path == Path::new("-") {
            (STDIN.to_string(), None, Origin::Stdin(io::stdin().lock()))
        } else {
            let file = Machine::real().disk.open(path, Access::Read).map_err(|error| cannot_open(&error))?;
            let bytes = file.len().map_err(|error| cannot_open(&error))?;
            (path.display().to_string(), Some(bytes).filter(|bytes| *bytes > 0), Origin::File(FileReader::new(file)))
        };
        let read = Rc::new(Cell::new(0));
        let mut reader = BufReader::with_capacity(READ_BYTES, Counted { origin, read: Rc::clone(&read) });
        match reader.fill_buf() {
            Ok([]) => Err(Failure::Input(format!("{name} is empty, so {kept}; give a file with rows"))),
            Ok(_) => Ok(Self { name, bytes, read, reader }),
            Err(error) => Err(cannot_read(&name, &error, kept)),
        }
    }

    /// Standard input, which is read as it comes and may be empty.
    pub fn stdin() -> Self {
        let read = Rc::new(Cell::new(0));
        let counted = Counted { origin: Origin::Stdin(io::stdin().lock()), read: Rc::clone(&read) };
        let reader = BufReader::with_capacity(READ_BYTES, counted);
        Self { name: STDIN.to_string(), bytes: None, read, reader }
    }
}

/// The error names the file, because the crate `os` adds the name.
fn cannot_open(error: &io::Error) -> Failure {
    Failure::Input(format!("{error}; check the name, or say - for the standard input"))
}

/// The error if an input cannot be read to its end. `kept` says what happens to the rows that were read before the
/// error.
pub fn cannot_read(name: &str, error: &io::Error, kept: &str) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::NotSeekable => "it is a pipe: say - and send it to the standard input".to_string(),
        io::ErrorKind::IsADirectory => "give a file".to_string(),
        _ => format!("{kept}; try again"),
    };
    let what = if name == STDIN { format!("cannot read {name}: ") } else { String::new() };
    Failure::Input(format!("{what}{error}; {advice}"))
}

/// A reader that counts the bytes that were read.
pub struct Counted {
    origin: Origin,
    read: Rc<Cell<u64>>,
}

enum Origin {
    Stdin(io::StdinLock<'static>),
    File(FileReader),
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.origin {
            Origin::Stdin(stdin) => stdin.read(buffer)?,
            Origin::File(file) => file.read(buffer)?,
        };
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

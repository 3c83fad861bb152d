//! The input of a command: a file, which may be compressed, or standard input. It is read once from beginning to end.
//! This module does not know what the bytes mean.

use crate::compressed::Unpacked;
use crate::failure::{CommandFailure, Result};
use crate::file_name::FileName;
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

/// An open input.
pub struct Input {
    /// The name of the input in messages.
    pub name: String,
    /// The length of the input, if it is known. If it is compressed, this is the length of the compressed bytes.
    pub bytes: Option<u64>,
    /// How many of these bytes were read so far.
    pub read: Rc<Cell<u64>>,
    /// The bytes, which are no longer compressed.
    pub reader: Source,
}

/// The reader of an input.
pub type Source = BufReader<Unpacked<Counted>>;

impl Input {
    /// Opens a file, or standard input for `-`. The name of the file says whether it is compressed.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or if its name says that it is compressed in a way that is not read.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::stdin());
        }
        let compression = FileName::of(path)?.compression;
        let file = Machine::real().disk.open(path, Access::Read).map_err(|error| cannot_open(&error))?;
        let bytes = file.len().map_err(|error| cannot_open(&error))?;
        let read = Rc::new(Cell::new(0));
        let counted = Counted { origin: Origin::File(FileReader::new(file)), read: Rc::clone(&read) };
        let reader = BufReader::with_capacity(READ_BYTES, Unpacked::new(counted, compression));
        Ok(Self { name: path.display().to_string(), bytes: Some(bytes).filter(|bytes| *bytes > 0), read, reader })
    }

    /// Refuses an input without any bytes. `kept` becomes the end of an error message.
    ///
    /// # Errors
    ///
    /// Fails if the input is empty or cannot be read.
    pub fn not_empty(mut self, kept: &str) -> Result<Self> {
        match self.reader.fill_buf() {
            Ok([]) => Err(CommandFailure::Input(format!("{} is empty, so {kept}; give a file with rows", self.name))),
            Ok(_) => Ok(self),
            Err(error) => Err(cannot_read(&self.name, &error, kept)),
        }
    }

    /// Standard input, which is read as it comes and may be empty.
    pub fn stdin() -> Self {
        let read = Rc::new(Cell::new(0));
        let counted = Counted { origin: Origin::Stdin(io::stdin().lock()), read: Rc::clone(&read) };
        let reader = BufReader::with_capacity(READ_BYTES, Unpacked::Plain(counted));
        Self { name: STDIN.to_string(), bytes: None, read, reader }
    }
}

/// The error names the file, because the crate `os` adds the name.
fn cannot_open(error: &io::Error) -> CommandFailure {
    CommandFailure::Input(format!("{error}; check the name, or say - for the standard input"))
}

/// The error if an input cannot be read to its end. `kept` says what happens to the rows that were read before the
/// error.
pub fn cannot_read(name: &str, error: &io::Error, kept: &str) -> CommandFailure {
    let is_packed = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData);
    let advice = match error.kind() {
        io::ErrorKind::NotSeekable => "it is a pipe: say - and send it to the standard input".to_string(),
        io::ErrorKind::IsADirectory => "give a file".to_string(),
        _ if is_packed => format!("{kept}; get the file again, or correct the ending of its name"),
        _ => format!("{kept}; try again"),
    };
    let what = match name {
        STDIN => format!("cannot read {name}: "),
        // Errors about compressed bytes do not name the file, and those of the system do.
        name if is_packed => format!("cannot read {name}: "),
        _ => String::new(),
    };
    CommandFailure::Input(format!("{what}{error}; {advice}"))
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

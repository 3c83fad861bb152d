//! A file as a stream, for parsers that want [`io::Read`]. It does not buffer: wrap it in a `BufReader`.

use crate::File;
use crate::sync::Arc;
use std::io;

/// Reads a file from its start to its end.
#[derive(Debug)]
pub struct FileReader {
    file: Arc<dyn File>,
    position: u64,
}

impl FileReader {
    /// A stream over `file` that starts at byte 0.
    pub fn new(file: Arc<dyn File>) -> FileReader {
        FileReader { file, position: 0 }
    }
}

impl io::Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

//! Streams that unpack what they read and pack what is written, with gzip or Zstandard. This module does not know
//! files or rows.
//!
//! A file has at least one packed stream. It may have several, one after the other, as `cat` makes them; they are read
//! as one. If the last one is cut, reading ends with an error of the kind `UnexpectedEof`, and never as if the file ended there.

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer};

#[cfg(test)]
mod tests;

/// The size of one read of packed bytes, and of the buffer for bytes that were packed.
const PIECE_BYTES: usize = 128 << 10;
/// The level at which Zstandard packs. It is the default of the program `zstd`.
const ZSTD_LEVEL: i32 = 3;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Compression {
    /// The ending of the names of such files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Zstd => "zst",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
        })
    }
}

/// Reads a stream that may be packed.
pub enum Unpacked<R> {
    /// The stream is not packed.
    Plain(R),
    /// The stream is packed.
    Packed {
        /// How it is packed.
        compression: Compression,
        /// The reader of the unpacked bytes.
        reader: Box<dyn Read>,
    },
}

impl<R: Read + 'static> Unpacked<R> {
    /// Unpacks `source`, if it is compressed.
    pub fn new(source: R, compression: Option<Compression>) -> Self {
        let Some(compression) = compression else { return Self::Plain(source) };
        let source = BufReader::with_capacity(PIECE_BYTES, source);
        let reader: Box<dyn Read> = match compression {
            Compression::Gzip => Box::new(MultiGzDecoder::new(source)),
            Compression::Zstd => Box::new(ZstdReader { source, context: DCtx::create(), is_inside: true }),
        };
        Self::Packed { compression, reader }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Packed { compression, reader } => reader.read(buffer).map_err(|error| told(*compression, error)),
        }
    }
}

/// The error about packed bytes, in words. Errors of the system stay as they are.
fn told(compression: Compression, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(error.kind(), format!("the {compression} data end before their end"))
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            io::Error::new(io::ErrorKind::InvalidData, format!("these are no {compression} data, or they are damaged"))
        }
        _ => error,
    }
}

/// Reads frames of Zstandard.
struct ZstdReader<R> {
    source: R,
    context: DCtx<'static>,
    /// Whether the end of a frame is to come. The first frame must be there.
    is_inside: bool,
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let packed = self.source.fill_buf()?;
            let is_end = packed.is_empty();
            if is_end && !self.is_inside {
                return Ok(0);
            }
            let (mut input, mut output) = (InBuffer::around(packed), OutBuffer::around(&mut *buffer));
            let left = self.context.decompress_stream(&mut output, &mut input);
            let (taken, given) = (input.pos(), output.pos());
            let left = left.map_err(|code| {
                io::Error::new(io::ErrorKind::InvalidData, zstd_safe::get_error_name(code).to_lowercase())
            })?;
            self.source.consume(taken);
            self.is_inside = left != 0;
            if given > 0 {
                return Ok(given);
            }
            if is_end && self.is_inside {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Packs what is written, if it is to be compressed. [`Packed::finish`] must be called at the end.
pub enum Packed<W: Write> {
    /// The bytes are not packed.
    Plain(W),
    /// The bytes are packed by gzip.
    Gzip(GzEncoder<W>),
    /// The bytes are packed by Zstandard.
    Zstd(ZstdWriter<W>),
}

impl<W: Write> Packed<W> {
    /// Writes to `sink`.
    pub fn new(sink: W, compression: Option<Compression>) -> Self {
        match compression {
            None => Self::Plain(sink),
            Some(Compression::Gzip) => Self::Gzip(GzEncoder::new(sink, flate2::Compression::default())),
            Some(Compression::Zstd) => Self::Zstd(ZstdWriter::new(sink)),
        }
    }

    /// Writes everything that is left, and returns the sink.
    ///
    /// # Errors
    ///
    /// The errors of the sink.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(sink) => Ok(sink),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(writer) => writer.finish(),
        }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(sink) => sink.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            // A frame is cut only at its end, so that a small row does not become a block of its own.
            Self::Zstd(writer) => writer.sink.flush(),
        }
    }
}

/// Writes a frame of Zstandard with a checksum.
pub struct ZstdWriter<W> {
    sink: W,
    context: CCtx<'static>,
    packed: Vec<u8>,
}

impl<W: Write> ZstdWriter<W> {
    fn new(sink: W) -> Self {
        let mut context = CCtx::create();
        for parameter in [CParameter::CompressionLevel(ZSTD_LEVEL), CParameter::ChecksumFlag(true)] {
            context.set_parameter(parameter).expect("Zstandard has these parameters");
        }
        Self { sink, context, packed: Vec::with_capacity(PIECE_BYTES) }
    }

    fn finish(mut self) -> io::Result<W> {
        loop {
            self.packed.clear();
            let left = self.context.end_stream(&mut OutBuffer::around(&mut self.packed)).map_err(not_packed)?;
            self.sink.write_all(&self.packed)?;
            if left == 0 {
                return Ok(self.sink);
            }
        }
    }
}

impl<W: Write> Write for ZstdWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut input = InBuffer::around(bytes);
        while input.pos() < bytes.len() {
            self.packed.clear();
            let mut output = OutBuffer::around(&mut self.packed);
            self.context.compress_stream(&mut output, &mut input).map_err(not_packed)?;
            self.sink.write_all(&self.packed)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn not_packed(code: zstd_safe::ErrorCode) -> io::Error {
    io::Error::other(format!("Zstandard does not pack: {}", zstd_safe::get_error_name(code)))
}

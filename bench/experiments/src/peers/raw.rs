//! The disk alone, as a store: the floor under every engine. A get is one direct read of a block at a random place
//! in a file. An insert is an append to the file and a sync.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the machine's disk is what is measured")]

use harness::{
    Blocking, Clock, Counter, Failure, Opening, Outcome, Reply, Request, Rows, Scheme, Session, Setting, Store,
    StoreUse, Strings, Table, Target,
};
use os::{Arena, BLOCK_BYTES, Buffer};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// A scheme for comparisons only: it returns no real rows.
pub const SCHEME: Scheme = Scheme {
    name: "disk",
    form: "disk:DIR",
    about: "the disk alone: a read is one block of a file, an insert a synced write",
    options: &[
        ("page", "bytes of a read: 16KiB"),
        ("buffers", "scattered: memory as an allocator gives it, whole: each in a huge page, if the machine has them"),
        ("durability", "synced"),
    ],
    networked: false,
    open,
};

/// The file that is read and written.
pub const FILE: &str = "blocks";

struct Raw {
    path: PathBuf,
    page_bytes: usize,
    /// Where buffers that are one piece of memory come from.
    whole: Option<Arc<Arena>>,
}

/// The most memory of such buffers. This also limits the number of sessions.
const WHOLE_BYTES: u64 = 64 << 20;

/// The largest such buffer.
const LARGEST_WHOLE_BYTES: usize = 1 << 20;

fn open(target: &Target, _: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let page_bytes = options.bytes("page", 16 << 10)? as usize;
    let is_whole = options.choice("buffers", &[("scattered", false), ("whole", true)])?;
    options.choice("durability", &[("synced", ())])?;
    options.finish()?;
    if page_bytes == 0 || !page_bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(Failure::session(
            "target",
            format!("a read of {page_bytes} bytes is not a multiple of {BLOCK_BYTES}"),
        ));
    }
    if is_whole && page_bytes > LARGEST_WHOLE_BYTES {
        let text = format!("a whole buffer of {page_bytes} bytes is more than {LARGEST_WHOLE_BYTES}");
        return Err(Failure::session("target", text));
    }
    let directory = target.directory()?;
    let path = directory.join(FILE);
    if opening != Opening::Existing {
        fs::create_dir_all(directory).map_err(|error| failed(&path, &error))?;
        if opening == Opening::Recreate || !path.exists() {
            File::create(&path).map_err(|error| failed(&path, &error))?;
        }
    }
    Ok(Box::new(Raw { path, page_bytes, whole: is_whole.then(|| Arena::new(WHOLE_BYTES)) }))
}

fn failed(path: &std::path::Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::session("io", format!("{}: {error}", path.display()))
}

impl Store for Raw {
    fn settings(&self) -> Vec<Setting> {
        vec![
            Setting::new("engine", "none: direct reads of one file"),
            Setting::new("page", format!("{} bytes", self.page_bytes)),
            Setting::new(
                "buffers",
                if self.whole.is_some() { "in huge pages, if the machine has them" } else { "scattered" },
            ),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(|error| failed(&self.path, &error))?;
        let file = File::from(file);
        let length = file.metadata().map_err(|error| failed(&self.path, &error))?.len();
        let blocks = length / self.page_bytes as u64;
        let memory = match &self.whole {
            Some(arena) => arena.buffer(self.page_bytes).ok_or_else(|| {
                Failure::session("memory", format!("no memory for one more buffer of {} bytes", self.page_bytes))
            })?,
            None => Buffer::zeroed(self.page_bytes),
        };
        let end = File::options().append(true).open(&self.path).map_err(|error| failed(&self.path, &error))?;
        Ok(Session::Blocking(Box::new(Direct { file, end, blocks, memory, row: Vec::new() })))
    }

    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let file = File::create(&self.path).map_err(|error| failed(&self.path, &error))?;
        let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
        let (mut key, mut record, mut count) = (Vec::new(), Strings::new(), 0);
        while rows.next_row(&mut key, &mut record) {
            out.write_all(&key).map_err(|error| failed(&self.path, &error))?;
            for field in record.iter() {
                out.write_all(field).map_err(|error| failed(&self.path, &error))?;
            }
            count += 1;
        }
        let file = out.into_inner().map_err(|error| failed(&self.path, &error))?;
        file.sync_all().map_err(|error| failed(&self.path, &error))?;
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(fs::metadata(&self.path).map_err(|error| failed(&self.path, &error))?.len() == 0)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

struct Direct {
    file: File,
    /// The same file, opened for appending.
    end: File,
    blocks: u64,
    /// One page.
    memory: Buffer,
    /// The bytes of a row that is appended.
    row: Vec<u8>,
}

impl Blocking for Direct {
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure> {
        match request {
            Request::Read { key, .. } => self.read(key, reply),
            Request::Insert { key, record } => self.append(key, record),
            _ => Err(Failure::request("unsupported", "the disk alone is only read, and written at its end")),
        }
    }
}

impl Direct {
    fn append(&mut self, key: &[u8], record: &Strings) -> Result<Outcome, Failure> {
        let failed = |error: std::io::Error| Failure::request("io", error.to_string());
        self.row.clear();
        self.row.extend_from_slice(key);
        record.encode(&mut self.row);
        self.end.write_all(&self.row).map_err(failed)?;
        self.end.sync_data().map_err(failed)?;
        Ok(Outcome::Ok)
    }

    fn read(&mut self, key: &[u8], reply: &mut Reply) -> Result<Outcome, Failure> {
        if self.blocks == 0 {
            return Ok(Outcome::NotFound);
        }
        // Hash the key (FNV-1a): keys differ only in their last digits, and reads are to spread over the whole
        // file.
        let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let block = ((u128::from(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(self.blocks)) >> 64) as u64;
        let page_bytes = self.memory.len() as u64;
        self.file
            .read_exact_at(&mut self.memory, block * page_bytes)
            .map_err(|error| Failure::request("io", error.to_string()))?;
        let row = &self.memory[..100];
        reply.row_of_fields(key, |fields| {
            fields.push(row);
            Ok::<(), Failure>(())
        })?;
        Ok(Outcome::Ok)
    }
}

//! Files that are objects of a store: one type for a file being written, one for a file being read. This module
//! does not know what the bytes mean.

use crate::journal::Journal;
use os::store::StoreObject;
use os::sync::{Arc, Mutex, OnceLock};
use os::{File, Upload};
use std::io::{self, ErrorKind};

/// The folder of these objects.
pub const FOLDER: &str = "sst";

/// The object of the file `file`.
pub fn name_of(file: &str) -> String {
    format!("{FOLDER}/{file}")
}

fn unsupported(why: &str) -> io::Error {
    io::Error::new(ErrorKind::Unsupported, why)
}

/// A file that is written once, from its beginning to its end. It does not exist before it is synced.
#[derive(Debug)]
pub struct NewObject {
    journal: Arc<Journal>,
    name: String,
    state: Mutex<NewState>,
}

#[derive(Debug)]
struct NewState {
    /// `None` after the upload has finished or failed.
    upload: Option<Box<dyn Upload>>,
    end: u64,
    is_finished: bool,
}

impl NewObject {
    pub fn create(journal: &Arc<Journal>, file: &str) -> io::Result<NewObject> {
        journal.check_not_fenced()?;
        let name = name_of(file);
        let upload = journal.again().ask(|| journal.store().create(&name))?;
        let state = Mutex::new(NewState { upload: Some(upload), end: 0, is_finished: false });
        Ok(NewObject { journal: journal.clone(), name, state })
    }
}

impl File for NewObject {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if !self.state.lock().is_finished {
            return Err(unsupported("an object is read after it was synced"));
        }
        self.journal.again().ask(|| self.journal.store().read_at(&self.name, buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let state = &mut *self.state.lock();
        if offset != state.end {
            return Err(unsupported("an object is written from front to back"));
        }
        let upload = state.upload.as_mut().ok_or_else(|| unsupported("the object was finished, or has failed"))?;
        let written = upload.write(bytes);
        if written.is_ok() {
            state.end += bytes.len() as u64;
        } else {
            state.upload = None;
        }
        written
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.state.lock().end;
        self.write_at(bytes, offset)?;
        Ok(offset)
    }

    fn sync(&self) -> io::Result<()> {
        let state = &mut *self.state.lock();
        if state.is_finished {
            return Ok(());
        }
        // A process that knows that another writer has taken over must not create objects.
        self.journal.check_not_fenced()?;
        let upload = state.upload.take().ok_or_else(|| unsupported("the object has failed"))?;
        upload.finish()?;
        state.is_finished = true;
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().end)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        if bytes == self.state.lock().end { Ok(()) } else { Err(unsupported("an object is not cut")) }
    }

    fn is_direct(&self) -> bool {
        false
    }
}

/// A file that is read. Opening it does not check that its object exists; if it does not, the first read fails.
#[derive(Debug)]
pub struct ObjectFile {
    journal: Arc<Journal>,
    object: StoreObject,
    len: OnceLock<u64>,
}

impl ObjectFile {
    pub fn new(journal: &Arc<Journal>, object: &str) -> ObjectFile {
        let object = StoreObject { store: journal.store().clone(), name: object.into() };
        ObjectFile { journal: journal.clone(), object, len: OnceLock::new() }
    }
}

impl File for ObjectFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let StoreObject { store, name } = &self.object;
        self.journal.again().ask(|| store.read_at(name, buffer, offset))
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(unsupported("an object of a store is not written to again"))
    }

    fn append(&self, _: &[u8]) -> io::Result<u64> {
        Err(unsupported("an object of a store is not written to again"))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        if let Some(len) = self.len.get() {
            return Ok(*len);
        }
        let StoreObject { store, name } = &self.object;
        let len = self.journal.again().ask(|| store.len(name))?;
        Ok(*self.len.get_or_init(|| len))
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(unsupported("an object of a store is not cut"))
    }

    fn is_direct(&self) -> bool {
        false
    }

    fn object(&self) -> Option<StoreObject> {
        Some(self.object.clone())
    }
}

//! A source that never faults, for tests and tools: it reads a missing page at once, while the reader waits. It
//! knows no cache and no budget, and keeps every page that it has read.

use crate::cache::Validate;
use crate::page::{Unpacker, decode_page};
use crate::{PageAt, PageLender, PageRef, PageSource, Result, Stop};
use os::Buffer;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A source that never faults. One reader: `Send`, not `Sync`.
pub struct Resident {
    validate: Validate,
    unpacker: Unpacker,
    pages: RefCell<HashMap<(u64, u64), PageRef>>,
    asked: Cell<u64>,
}

impl Resident {
    /// A source that checks the structure of each page with `validate` when it reads it, as a cache does. It
    /// distinguishes files by their ids.
    pub fn new(validate: Validate) -> Self {
        Self { validate, unpacker: Unpacker::default(), pages: RefCell::default(), asked: Cell::new(0) }
    }

    /// How many times a page was asked for.
    pub fn pages_asked(&self) -> u64 {
        self.asked.get()
    }

    /// How many different pages were asked for.
    pub fn pages_read(&self) -> u64 {
        self.pages.borrow().len() as u64
    }

    fn read(&self, at: PageAt<'_>) -> Result<PageRef> {
        let PageAt { file, address, kind, .. } = at;
        let stored = file.read(&address, kind)?;
        let bytes = &stored.buffer[stored.start..stored.start + address.bytes as usize];
        let decoded = decode_page(bytes, kind, &address, file.id(), &self.unpacker, Buffer::zeroed);
        let decoded = decoded.and_then(|(buffer, header)| {
            (self.validate)(kind, &buffer)?;
            Ok(PageRef::detached(buffer, &header, address))
        });
        decoded.map_err(|why| file.undecoded(kind, address.offset, why))
    }
}

impl PageLender for Resident {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        self.asked.set(self.asked.get() + 1);
        let place = (at.file.id(), at.address.offset);
        let read_before = self.pages.borrow().get(&place).cloned();
        if let Some(page) = read_before
            && at.is(&page)
        {
            return Ok(page);
        }
        let page = self.read(at)?;
        self.pages.borrow_mut().insert(place, page.clone());
        Ok(page)
    }

    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.page(at).ok()
    }

    fn ahead(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn ahead_if_spare(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn take_read(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn release(&self) {}
}

impl PageSource for Resident {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.peek(at)
    }

    fn ahead_bytes(&self) -> u64 {
        0
    }

    fn fetch(&self) -> Result<()> {
        Ok(())
    }
}

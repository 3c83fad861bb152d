//! A source whose pages are always in memory, as far as a reader can tell: it reads them when asked. For tests and
//! tools; it knows no cache and no budget, and keeps everything it ever read.

use crate::cache::Validate;
use crate::page::decode_page;
use crate::{Address, PageKind, PageRef, PageSource, PagedFile, Result, Stop};
use os::Buffer;
use os::sync::Arc;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Never faults. One reader: `Send`, not `Sync`.
pub struct Resident {
    validate: Validate,
    pages: RefCell<HashMap<(u64, u64), PageRef>>,
    asked: Cell<u64>,
}

impl Resident {
    /// A source that checks the structure of what it reads with `validate`, as a cache does. Files are told apart by
    /// their ids.
    pub fn new(validate: Validate) -> Self {
        Self { validate, pages: RefCell::default(), asked: Cell::new(0) }
    }

    /// How many times a page was asked for.
    pub fn pages_asked(&self) -> u64 {
        self.asked.get()
    }

    /// How many different pages were asked for.
    pub fn pages_read(&self) -> u64 {
        self.pages.borrow().len() as u64
    }

    fn read(&self, file: &PagedFile, at: &Address, kind: PageKind) -> Result<PageRef> {
        let stored = file.read(at, kind)?;
        let bytes = &stored.buffer[stored.start..stored.start + at.bytes as usize];
        let decoded = decode_page(bytes, kind, at, file.id(), Buffer::zeroed).and_then(|(buffer, header)| {
            (self.validate)(kind, &buffer)?;
            Ok(PageRef::detached(buffer, &header, *at))
        });
        decoded.map_err(|why| file.corrupt(kind, at.offset, why))
    }
}

impl PageSource for Resident {
    fn page(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Result<PageRef, Stop> {
        self.asked.set(self.asked.get() + 1);
        let place = (file.id(), at.offset);
        let read_before = self.pages.borrow().get(&place).cloned();
        if let Some(page) = read_before
            && page.is(at, kind)
        {
            return Ok(page);
        }
        let page = self.read(file, at, kind)?;
        self.pages.borrow_mut().insert(place, page.clone());
        Ok(page)
    }

    fn peek(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.page(file, at, kind).ok()
    }

    fn ahead(&self, _: &Arc<PagedFile>, _: &Address, _: PageKind) -> bool {
        false
    }

    fn fetch(&self) -> Result<()> {
        Ok(())
    }

    fn release(&self) {}
}

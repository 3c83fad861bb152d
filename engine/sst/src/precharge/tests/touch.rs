//! A page source that knows what was asked of it. A page is in memory if it was there at the start, or if a round
//! has loaded it since.

use super::model::Pages;
use crate::fixture::Built;
use crate::format::validate;
use os::sync::Arc;
use pages::{PageAt, PageKind, PageLender, PageRef, PageSource, PagedFile, Resident, Result, Stop};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

pub struct Touch {
    file: Arc<PagedFile>,
    pages: Resident,
    loaded: RefCell<BTreeSet<u64>>,
    noted: RefCell<BTreeSet<(PageKind, u64)>>,
    asked: RefCell<BTreeSet<(PageKind, u64)>>,
    may_fault: Cell<bool>,
}

fn is_node(kind: PageKind) -> bool {
    matches!(kind, PageKind::Index | PageKind::Flat)
}

impl Touch {
    pub fn new(built: &Built) -> Self {
        Self {
            file: built.sst().file.clone(),
            pages: Resident::new(validate),
            loaded: RefCell::default(),
            noted: RefCell::default(),
            asked: RefCell::default(),
            may_fault: Cell::new(true),
        }
    }

    /// Forgets all pages except those at `resident`.
    pub fn start(&self, resident: &BTreeSet<u64>) {
        self.loaded.borrow_mut().clone_from(resident);
        self.noted.borrow_mut().clear();
        self.asked.borrow_mut().clear();
        self.may_fault.set(true);
    }

    /// After this call, a missing page makes the test fail.
    pub fn forbid_faults(&self) {
        self.may_fault.set(false);
    }

    pub fn asked_rows(&self) -> Pages {
        self.asked.borrow().iter().filter(|(kind, _)| !is_node(*kind)).copied().collect()
    }

    pub fn asked_nodes(&self) -> BTreeSet<u64> {
        self.asked.borrow().iter().filter(|(kind, _)| is_node(*kind)).map(|(_, offset)| *offset).collect()
    }

    fn is_here(&self, at: PageAt<'_>) -> bool {
        self.loaded.borrow().contains(&at.address.offset)
    }

    fn note(&self, at: PageAt<'_>) {
        let PageAt { address: at, kind, .. } = at;
        assert!(self.may_fault.get(), "a fault after a precharge: {} page at {}", kind.name(), at.offset);
        self.noted.borrow_mut().insert((kind, at.offset));
        self.asked.borrow_mut().insert((kind, at.offset));
    }
}

impl PageLender for Touch {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        if self.is_here(at) {
            return self.pages.page(self.file.at(&at.address, at.kind));
        }
        self.note(at);
        Err(Stop::Fault)
    }

    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.is_here(at).then(|| self.pages.peek(self.file.at(&at.address, at.kind)))?
    }

    fn ahead(&self, at: PageAt<'_>) -> bool {
        if self.is_here(at) {
            return false;
        }
        self.note(at);
        true
    }

    fn ahead_if_spare(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn take_read(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn release(&self) {}
}

impl PageSource for Touch {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.peek(at)
    }

    fn ahead_bytes(&self) -> u64 {
        0
    }

    fn fetch(&self) -> Result<()> {
        self.loaded.borrow_mut().extend(std::mem::take(&mut *self.noted.borrow_mut()).into_iter().map(|(_, at)| at));
        Ok(())
    }
}

//! The memory of pages, by what the pages are for. This module does not know where the pages are.

use pages::PageKind;

/// The memory of pages, by what the pages are for, in bytes.
pub struct Cached {
    pub index: u64,
    pub data: u64,
    pub history: u64,
    pub filter: u64,
}

impl Cached {
    /// Adds up the memory of all kinds of pages. `bytes` returns the memory of one kind.
    pub fn of(bytes: impl Fn(PageKind) -> u64) -> Self {
        let mut cached = Self { index: 0, data: 0, history: 0, filter: 0 };
        for kind in PageKind::ALL {
            let place = match kind {
                PageKind::Index | PageKind::Flat => &mut cached.index,
                PageKind::Data | PageKind::Group | PageKind::Value | PageKind::RangeErase | PageKind::Footer => {
                    &mut cached.data
                }
                PageKind::History | PageKind::GroupHistory => &mut cached.history,
                PageKind::Filter => &mut cached.filter,
            };
            *place += bytes(kind);
        }
        cached
    }
}

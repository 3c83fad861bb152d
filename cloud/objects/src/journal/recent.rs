//! The bytes of sheets that were put or read lately. This module does not know what is in the sheets.

use super::table::Extent;
use os::sync::Arc;
use std::collections::BTreeMap;
use std::ops::Range;

/// The most bytes of sheets that are kept.
const MOST_RECENT_BYTES: usize = 2 << 20;

/// Longer sheets are not kept.
const MOST_SHEET_BYTES: usize = 256 << 10;

/// The bytes of the most recent sheets.
#[derive(Debug, Default)]
pub struct Recent {
    sheets: BTreeMap<u64, Arc<Vec<u8>>>,
    bytes: usize,
}

impl Recent {
    /// Keeps a sheet. If the kept sheets get too long, those with the lowest numbers are dropped.
    pub fn add(&mut self, number: u64, bytes: &Arc<Vec<u8>>) {
        if bytes.len() > MOST_SHEET_BYTES || self.sheets.contains_key(&number) {
            return;
        }
        self.bytes += bytes.len();
        self.sheets.insert(number, bytes.clone());
        while self.bytes > MOST_RECENT_BYTES {
            let Some((_, first)) = self.sheets.pop_first() else { break };
            self.bytes -= first.len();
        }
    }

    /// The bytes of a range of a sheet, if the sheet is kept.
    pub fn get(&self, number: u64, range: Range<usize>) -> Option<&[u8]> {
        self.sheets.get(&number)?.get(range)
    }

    /// The bytes of an extent, if its sheet is kept.
    pub fn bytes_of(&self, extent: &Extent) -> Option<&[u8]> {
        let at = extent.at as usize;
        self.get(extent.sheet, at..at + extent.bytes as usize)
    }
}

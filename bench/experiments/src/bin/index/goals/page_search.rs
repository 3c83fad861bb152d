//! Measures searches in our pages of 16 KiB, in turns with searches in slot pages of 4 KiB by memcmp. Both kinds of
//! pages hold the same rows.

use crate::measure::{Timed, in_turns};
use crate::peer::{SlotPage, SlotPageBuilder};
use crate::rows::{binary_key, mix, random, sequential_key, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use harness::report::text::grouped;
use kit::Scratch;
use os::Buffer;
use sst::format::PageRows;
use sst::format::data_page::{DataPageBuilder, Layout};
use sst::{RowKind, Version};

/// The size of our pages. Slot pages of this size show how much of the difference is due to the size alone.
const LARGE: usize = 16 << 10;
/// Extent of the slot pages that the goal compares with.
const SMALL: usize = 4 << 10;

/// A kind of keys: its name, and the key of a row.
type PageShape = (&'static str, fn(u64) -> Vec<u8>);

const SHAPES: [PageShape; 3] = [
    ("24 random bytes", |number| binary_key(number).to_vec()),
    ("sequential ids of 24 bytes", |number| sequential_key(number).to_vec()),
    ("URLs with a long common prefix", |number| {
        let (category, item) = (number % 40, mix(number) % 10_000_000_000);
        format!("https://www.example.com/shop/en/category-{category:02}/items/{item:010}?ref={number}").into_bytes()
    }),
];

/// Where the searched pages are, and how many bytes of them.
const PLACES: [(&str, u64); 3] = [("L2", 512 << 10), ("L3", 8 << 20), ("memory", 512 << 20)];

/// The same rows in three kinds of pages. The page of each key is known in advance.
struct Pages {
    keys: Vec<Vec<u8>>,
    ours: Packed,
    small: Packed,
    large: Packed,
}

/// Rows packed into pages.
#[derive(Default)]
struct Packed {
    pages: Vec<Buffer>,
    /// The page of each row.
    page_of: Vec<u32>,
}

/// A key to search for, and the pages that contain it.
struct PageProbe {
    key: Vec<u8>,
    ours: u32,
    small: u32,
    large: u32,
}

impl Packed {
    fn add(&mut self, page: &[u8], rows: usize) {
        self.page_of.extend(std::iter::repeat_n(self.pages.len() as u32, rows));
        self.pages.push(Buffer::copied(page));
    }

    fn ours(keys: &[Vec<u8>]) -> Self {
        let mut packed = Self::default();
        let mut builder = DataPageBuilder::new(0);
        let mut bytes = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let value = value(number as u64);
            if builder.rows() > 0 && builder.bytes_with(key, Version(1), value.len()) > LARGE {
                let rows = builder.rows();
                builder.finish(&mut bytes);
                packed.add(&bytes, rows);
            }
            builder.add(key, Version(1), RowKind::Put, false, &value);
        }
        let rows = builder.rows();
        builder.finish(&mut bytes);
        packed.add(&bytes, rows);
        packed
    }

    fn slots<const BYTES: usize>(keys: &[Vec<u8>]) -> Self {
        let mut packed = Self::default();
        let mut builder = SlotPageBuilder::<BYTES>::new();
        for (number, key) in keys.iter().enumerate() {
            let value = value(number as u64);
            if !builder.add(key, &value) {
                let full = std::mem::replace(&mut builder, SlotPageBuilder::new());
                packed.add_slots(full);
                assert!(builder.add(key, &value), "a row fits an empty page");
            }
        }
        packed.add_slots(builder);
        packed
    }

    fn add_slots<const BYTES: usize>(&mut self, builder: SlotPageBuilder<BYTES>) {
        let rows = builder.rows();
        self.add(&builder.finish()[..], rows);
    }

    /// Searches the page that `page_of` names for each key. Returns how many were found.
    fn search_slots<const BYTES: usize>(&self, probes: &[PageProbe], page_of: fn(&PageProbe) -> u32) -> Result<u64> {
        let found = |probe: &PageProbe| {
            let page = &self.pages[page_of(probe) as usize];
            SlotPage(page.first_chunk::<BYTES>().expect("a slot page has its length")).search(&probe.key).is_ok()
        };
        Ok(probes.iter().map(|probe| u64::from(found(probe))).sum())
    }

    fn search_ours(&self, probes: &[PageProbe]) -> Result<u64> {
        let found = |probe: &PageProbe| {
            let page = &self.pages[probe.ours as usize];
            Layout::of(page).search(page, &probe.key).is_ok()
        };
        Ok(probes.iter().map(|probe| u64::from(found(probe))).sum())
    }
}

impl Pages {
    fn build((_, key_of): PageShape, bytes: u64) -> Self {
        let mut keys: Vec<Vec<u8>> = (0..bytes / 190).map(key_of).collect();
        keys.sort_unstable();
        keys.dedup();
        let (ours, small, large) = (Packed::ours(&keys), Packed::slots::<SMALL>(&keys), Packed::slots::<LARGE>(&keys));
        Self { keys, ours, small, large }
    }

    fn probes(&self, seed: u64, count: usize) -> Vec<PageProbe> {
        let pick = |i| {
            let row = random(seed, i, self.keys.len() as u64) as usize;
            let (ours, small, large) = (self.ours.page_of[row], self.small.page_of[row], self.large.page_of[row]);
            PageProbe { key: self.keys[row].clone(), ours, small, large }
        };
        (0..count as u64).map(pick).collect()
    }

    /// Times our pages, slot pages of 4 KiB and slot pages of 16 KiB.
    fn compare(&self, extent: Extent) -> Result<Vec<Timed>> {
        let inputs = |seed, count| self.probes(seed, count);
        let mut ours = |probes: &[PageProbe]| self.ours.search_ours(probes);
        let mut small = |probes: &[PageProbe]| self.small.search_slots::<SMALL>(probes, |probe| probe.small);
        let mut large = |probes: &[PageProbe]| self.large.search_slots::<LARGE>(probes, |probe| probe.large);
        in_turns(extent.effort(), &inputs, &mut [&mut ours, &mut small, &mut large])
    }
}

/// The result is the worst ratio of the two search times over all kinds of keys and all places.
pub fn measure(_: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let mut worst: f64 = 0.0;
    let mut notes = Vec::new();
    for shape in SHAPES {
        for (place, bytes) in PLACES {
            let bytes = if place == "memory" { extent.of(bytes) } else { bytes };
            let pages = Pages::build(shape, bytes);
            let timed = pages.compare(extent)?;
            let ratio = timed[0].nanos / timed[1].nanos;
            worst = worst.max(ratio);
            notes.push(format!(
                "{}, {} rows that lie in {place}: {:.0} ns against {:.0} ns, {ratio:.2}x; slots in 16 KiB {:.0} ns, {:.2}x; \
                 {}, {} and {} rows a page; +- {:.0} %, {:.0} %, {:.0} %",
                shape.0,
                grouped(pages.keys.len() as u64),
                timed[0].nanos,
                timed[1].nanos,
                timed[2].nanos,
                timed[2].nanos / timed[1].nanos,
                pages.keys.len() / pages.ours.pages.len(),
                pages.keys.len() / pages.small.pages.len(),
                pages.keys.len() / pages.large.pages.len(),
                timed[0].spread * 100.0,
                timed[1].spread * 100.0,
                timed[2].spread * 100.0
            ));
        }
    }
    let metric = "searching a 16K page";
    let mut line = Goal::in_words(metric, "<= 0.6x of the 4K slot page", format!("{worst:.2}x at worst"), worst <= 0.6);
    line.notes = notes;
    Ok(vec![line])
}

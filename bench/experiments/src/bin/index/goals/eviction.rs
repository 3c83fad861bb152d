//! Measures the cost of evicting an index page: the time to admit a page into a full cache, minus the time to admit
//! one into a cache with room.
//!
//! Both caches hold the same number of pages, all of them index nodes. In the cache with room, other pages are freed
//! before the clock starts and new pages take their places, so that no hash table grows and no memory is allocated.
//! The disk is in memory and pages are not validated, so the times contain little else than copying a page and
//! verifying its checksum.

use crate::measure::processor_time;
use crate::{Extent, Result};
use experiments::outcome::Goal;
use kit::Scratch;
use kit::median;
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Access, Disk};
use pages::{
    Address, Admit, Compression, HEADER_BYTES, Packing, PageCache, PageKind, PageLender, PagedFile, Reason, Session,
    encode_page, retry,
};
use std::path::Path;

const FILE: &str = "nodes";
const FILE_ID: u64 = 7;
/// Pages admitted in each turn: a little less than half of those that a cache holds.
const ADMISSIONS: usize = 2000;
const HELD: usize = 2 * ADMISSIONS + 100;

/// Measures nodes of two sizes. The result is the worse one.
pub fn measure(_: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let mut worst = f64::MIN;
    let mut notes = Vec::new();
    for node_bytes in [4 << 10, 16 << 10] {
        let figures = of_nodes(node_bytes, if extent.quick { 11 } else { 51 })?;
        let micros = (figures.full - figures.room) / 1e3;
        worst = worst.max(micros);
        notes.push(format!(
            "nodes of {} KiB: {:.2} us into a full cache less {:.2} us into one with room = {micros:.2} us; taking half of the \
             pages out at once, when a cache shrinks: {:.2} us a page",
            node_bytes >> 10,
            figures.full / 1e3,
            figures.room / 1e3,
            figures.shrink / 1e3
        ));
    }
    let measured = format!("{worst:.2} us");
    let mut line = Goal::in_words("eviction of an index page", "<= 0.3 us, whatever it holds", measured, worst <= 0.3);
    line.notes = notes;
    Ok(vec![line])
}

/// Nanoseconds per page.
struct Figures {
    full: f64,
    room: f64,
    shrink: f64,
}

fn of_nodes(node_bytes: usize, turns: usize) -> Result<Figures> {
    let disk = SimDisk::new(1);
    let addresses = write_nodes(&*disk, node_bytes)?;
    let (stay, come) = addresses.split_at(HELD - ADMISSIONS);
    let register = |cache: &Arc<PageCache>| cache.register(FILE, FILE_ID, disk.clone());
    // The memory of a cached page, with the cache's own overhead.
    let wide = PageCache::new(1 << 30, 4, |_, _| Ok(()));
    let resident = register(&wide);
    admit(&wide, &resident, &addresses[..1])?;
    let page_bytes = wide.usage().used_bytes;
    drop((resident, wide));
    let new_cache = |pages: usize| PageCache::new(pages as u64 * page_bytes, 4, |_, _| Ok(()));
    let (full, roomy) = (new_cache(HELD), new_cache(4 * HELD));
    let residents = [register(&full), register(&roomy)];
    admit(&full, &residents[0], stay)?;
    admit(&roomy, &residents[1], stay)?;
    // The pages of a killed file leave the cache without eviction. These files stay alive, so their pages must be
    // evicted.
    let mut files_of_full = vec![register(&full)];
    admit(&full, &files_of_full[0], come)?;
    let (mut of_full, mut of_room) = (Vec::new(), Vec::new());
    for turn in 0..turns + 1 {
        let file = register(&roomy);
        let start = processor_time();
        admit(&roomy, &file, come)?;
        let room = processor_time() - start;
        file.kill();

        let file = register(&full);
        let start = processor_time();
        admit(&full, &file, come)?;
        let into_full = processor_time() - start;
        let usage = full.usage();
        if usage.used_bytes > usage.budget_bytes || usage.frames > HELD as u64 || usage.frames < HELD as u64 * 9 / 10 {
            return Err(format!("a full cache came to hold {usage:?}").into());
        }
        files_of_full.push(file);
        // Before the first turn, no pages were freed in the cache with room.
        if turn > 0 {
            of_room.push(room.as_nanos() as f64 / come.len() as f64);
            of_full.push(into_full.as_nanos() as f64 / come.len() as f64);
        }
    }
    let before = full.usage();
    let start = processor_time();
    full.set_budget(before.budget_bytes / 2);
    let shrink = processor_time() - start;
    let gone = before.frames - full.usage().frames;
    if gone == 0 {
        return Err("nothing was evicted".into());
    }
    let shrink = shrink.as_nanos() as f64 / gone as f64;
    Ok(Figures { full: median(&of_full), room: median(&of_room), shrink })
}

/// Writes index pages back to back. Their contents do not matter.
fn write_nodes(disk: &dyn Disk, node_bytes: usize) -> Result<Vec<Address>> {
    let file = disk.open(Path::new(FILE), Access::Create)?;
    let mut offset = 0;
    let mut addresses = Vec::new();
    for i in 0..HELD {
        let mut page = vec![0; HEADER_BYTES];
        page.resize(node_bytes, i as u8);
        let address = encode_page(&mut page, (PageKind::Index, 1), Compression::None, Packing::Block, FILE_ID, offset);
        file.write_at(&page, offset)?;
        offset = address.end();
        addresses.push(address);
    }
    Ok(addresses)
}

/// Reads the pages, none of which is cached, into the cache one by one.
fn admit(cache: &Arc<PageCache>, file: &Arc<PagedFile>, addresses: &[Address]) -> Result<()> {
    let session = Session::new(cache, Reason::Point, Admit::Keep);
    for address in addresses {
        retry(&session, || session.page(file.at(address, PageKind::Index)))?;
    }
    match session.page_reads() == addresses.len() as u64 {
        true => Ok(()),
        false => Err(format!("{} of {} pages were admitted", session.page_reads(), addresses.len()).into()),
    }
}

//! Measures random gets by the B-tree and by the flat index of the same file, with a cache of half a percent of the
//! data.

use crate::file::{Lone, point_session};
use crate::rows::{random, sequential_key, stamp, stamp_of, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use harness::report::text::grouped;
use kit::Scratch;
use kit::median;
use os::Machine;
use os::sync::Arc;
use pages::{PageCache, retry};
use sst::{BuildOptions, PageIndexKind, Sst, Version};
use std::time::Instant;

struct CachedFile {
    cache: Arc<PageCache>,
    sst: Arc<Sst>,
    micros: Vec<f64>,
}

/// The goal is for the bytes that a get reads. Its time is shown as well.
pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let rows = extent.of(3_000_000);
    let options = BuildOptions { index: PageIndexKind::Both, ..BuildOptions::default() };
    let lone =
        Lone::build(scratch, "file.sst", options, (0..rows).map(|number| (sequential_key(number), value(number))))?;
    let tree = lone.main();
    let cache_bytes = tree.totals.bytes / 200;
    let mut sides = [false, true].map(|prefer_flat| {
        let cache = PageCache::new(cache_bytes, 4, sst::validate);
        let sst = lone.open_on(Machine::real().disk, &cache, prefer_flat);
        CachedFile { cache, sst, micros: Vec::new() }
    });
    let gets = extent.of(10_000);
    let read_bytes = |side: &CachedFile| side.cache.counters().snapshot().total().read_bytes;
    let mut before = [0; 2];
    let turns = extent.effort().repeats as u64;
    // The first turn fills the caches.
    for turn in 0..=turns {
        for (side, before) in sides.iter_mut().zip(&mut before) {
            if turn == 1 {
                *before = read_bytes(side);
            }
            let start = Instant::now();
            let session = point_session(&side.cache);
            for i in 0..gets {
                let number = random(turn, i, rows);
                let key = sequential_key(number);
                let row = retry(&session, || side.sst.get(&session, &key, Version::MAX))?;
                if row.and_then(|row| row.value.inline().map(stamp)) != Some(stamp_of(number)) {
                    return Err(format!("row {number} was not found as it was written").into());
                }
            }
            drop(session);
            if turn > 0 {
                side.micros.push(start.elapsed().as_secs_f64() * 1e6 / gets as f64);
            }
        }
    }
    let bytes = |i: usize| (read_bytes(&sides[i]) - before[i]) as f64 / (turns * gets) as f64;
    let (btree_bytes, flat_bytes) = (bytes(0), bytes(1));
    let micros: Vec<f64> = sides.iter_mut().map(|side| median(&side.micros)).collect();
    if btree_bytes == 0.0 {
        return Err("nothing was read from disk".into());
    }
    let ratio = flat_bytes / btree_bytes;
    let flat = tree.flat.map_or(0, |root| root.index_bytes);
    let line = Goal::in_words(
        "cache = 0.5 % of data",
        ">= 2x over flat",
        format!("{ratio:.2}x fewer bytes read"),
        ratio >= 2.0,
    )
    .note(format!(
        "{} bytes read a get by the B-tree, {} by the flat list; {:.0} us against {:.0} us, {:.2}x",
        grouped(btree_bytes as u64),
        grouped(flat_bytes as u64),
        micros[0],
        micros[1],
        micros[1] / micros[0]
    ))
    .note(format!(
        "{} of data, a cache of {}, a flat list of {}, which is one page",
        grouped(tree.totals.bytes),
        grouped(cache_bytes),
        grouped(flat)
    ));
    Ok(vec![line])
}

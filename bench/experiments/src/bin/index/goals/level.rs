//! Measures the cost of one more index level: the time of a get in a tree of two levels, minus that in a tree of one
//! level. All nodes have the same number of children, and all pages are in memory.
//!
//! Gets in the larger tree go to eight data pages below each of 32 leaves, and gets in the smaller tree to all its
//! 256 data pages, so both touch the same number of data pages. The 32 nodes of the additional level have 160 KB in
//! total: they fit into L2 but not into L1.

use crate::file::{Lone, point_session};
use crate::measure::in_turns;
use crate::rows::{Key, random, sequential_key, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use harness::report::text::grouped;
use kit::Scratch;
use os::sync::Arc;
use pages::{PageCache, PageKind, PageLender, PageSource, Resident, retry};
use sst::format::node::IndexNode;
use sst::{BuildOptions, Sst, Version};

/// Children of each node.
const FAN_OUT: u64 = 256;
/// Leaves that are read in the larger tree.
const LEAVES: u64 = 32;

/// The result is the difference between the medians over the same turns.
pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let options = BuildOptions { max_page_rows: 1, max_node_children: FAN_OUT as usize, ..BuildOptions::default() };
    // A page holds one row, so each row has an index entry of its own.
    let build = |name: &str, rows: u64| -> Result<Lone> {
        let lone = Lone::build(scratch, name, options, (0..rows).map(|i| (sequential_key(i * 7919), value(i))))?;
        Ok(lone)
    };
    let (one, two) = (build("one.sst", FAN_OUT)?, build("two.sst", FAN_OUT * FAN_OUT)?);
    let heights = (one.main().root(false).height, two.main().root(false).height);
    if heights != (1, 2) {
        return Err(format!("trees of heights {heights:?} instead of 1 and 2").into());
    }
    let cache = PageCache::new(1 << 30, 4, sst::validate);
    let (low, high) = (one.open(&cache), two.open(&cache));
    // Maps rows 0..256 of the smaller tree to rows of the larger one that are spread over 32 leaves.
    let row_in_high = |row: u64| (row % LEAVES) * (FAN_OUT * FAN_OUT / LEAVES) + (row / LEAVES) * 31;
    let inputs = |seed: u64, count: usize| -> Vec<(Key, Key)> {
        let pick = |i| {
            let row = random(seed, i, FAN_OUT);
            (sequential_key(row * 7919), sequential_key(row_in_high(row) * 7919))
        };
        (0..count as u64).map(pick).collect()
    };
    let session = point_session(&cache);
    let resident = Resident::new(sst::validate);
    // Reads everything into memory before timing starts.
    for row in 0..FAN_OUT {
        for (sst, key) in [(&low, sequential_key(row * 7919)), (&high, sequential_key(row_in_high(row) * 7919))] {
            if gets(&session, sst, [&key].into_iter())? + gets(&resident, sst, [&key].into_iter())? != 2 {
                return Err(format!("row {row} is missing").into());
            }
        }
    }
    let through_cache = {
        let mut low = |probes: &[(Key, Key)]| gets(&session, &low, probes.iter().map(|(low, _)| low));
        let mut high = |probes: &[(Key, Key)]| gets(&session, &high, probes.iter().map(|(_, high)| high));
        in_turns(extent.effort(), &inputs, &mut [&mut low, &mut high])?
    };
    let through_map = {
        let mut low = |probes: &[(Key, Key)]| gets(&resident, &low, probes.iter().map(|(low, _)| low));
        let mut high = |probes: &[(Key, Key)]| gets(&resident, &high, probes.iter().map(|(_, high)| high));
        in_turns(extent.effort(), &inputs, &mut [&mut low, &mut high])?
    };
    // For comparison, times the bare step: a search in one of the 32 leaves, and reading the found child's address.
    let root = two.main().root(false).address;
    let root = retry(&session, || session.page(high.file.at(&root, PageKind::Index)))?;
    let addresses = (0..LEAVES).map(|leaf| IndexNode::new(&root).address((leaf * FAN_OUT / LEAVES) as usize));
    let leaves = addresses
        .map(|at| Ok(retry(&session, || session.page(high.file.at(&at, PageKind::Index)))?))
        .collect::<Result<Vec<_>>>()?;
    let mut bare = |probes: &[(Key, Key)]| {
        let step = |(i, (_, key)): (usize, &(Key, Key))| {
            let node = IndexNode::new(&leaves[(i.wrapping_mul(2_654_435_761) >> 7) % leaves.len()]);
            node.address(node.search(key)).offset + 1
        };
        Ok(probes.iter().enumerate().map(step).fold(0u64, u64::wrapping_add))
    };
    let bare = in_turns(extent.effort(), &inputs, &mut [&mut bare])?[0];

    let nanos = through_cache[1].nanos - through_cache[0].nanos;
    let line = Goal::in_words("one more index level, its node in L2", "<= 60 ns", format!("{nanos:.0} ns"), nanos <= 60.0)
        .note(format!(
            "Sst::get through a session over the cache: {:.0} ns in 1 level (+- {:.0} %), {:.0} ns in 2 (+- {:.0} %)",
            through_cache[0].nanos,
            through_cache[0].spread * 100.0,
            through_cache[1].nanos,
            through_cache[1].spread * 100.0
        ))
        .note(format!(
            "nodes of {FAN_OUT} children, {} bytes; 32 of the level that is more are read, at random",
            grouped(leaves[0].len() as u64)
        ))
        .note(format!(
            "through the resident source of tests and tools, a plain hash map: {:.0} ns; the bare search and address: {:.0} ns",
            through_map[1].nanos - through_map[0].nanos,
            bare.nanos
        ));
    Ok(vec![line])
}

fn gets<'k, S: PageSource>(source: &S, sst: &Arc<Sst>, keys: impl Iterator<Item = &'k Key>) -> Result<u64> {
    let mut found = 0;
    for key in keys {
        found += u64::from(retry(source, || sst.get(source, key, Version::MAX))?.is_some());
    }
    Ok(found)
}

//! Measures the size of the index relative to the data.

use crate::file::Lone;
use crate::rows::{KEY_KINDS, Key, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use kit::Scratch;
use sst::BuildOptions;

/// Keys of 24 bytes, values of 150 bytes, uncompressed pages of 16 KiB. The result is the worst of several kinds of
/// keys.
pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let rows = extent.of(2_000_000);
    let mut worst: f64 = 0.0;
    let mut notes = Vec::new();
    for (name, of) in KEY_KINDS {
        let mut keys: Vec<Key> = (0..rows).map(of).collect();
        keys.sort_unstable();
        let rows = keys.iter().zip(0..).map(|(key, number)| (key, value(number)));
        let lone = Lone::build(scratch, &format!("{name}.sst"), BuildOptions::default(), rows)?;
        let tree = lone.main();
        let root = tree.root(false);
        let share = root.index_bytes as f64 / tree.totals.bytes as f64;
        worst = worst.max(share);
        // The number of leaves. The root is one more node, but a short one.
        let nodes = root.index_bytes.div_ceil(16 << 10);
        notes.push(format!(
            "{name}: {:.4} %, {} bytes of index for {} data pages in {} levels, {:.1} bytes a data page, about {} children a node",
            share * 100.0,
            root.index_bytes,
            tree.data_pages,
            root.height,
            root.index_bytes as f64 / tree.data_pages as f64,
            tree.data_pages.div_ceil(nodes)
        ));
    }
    let measured = format!("{:.3} %", worst * 100.0);
    let mut line = Goal::in_words("index bytes / data bytes", "<= 0.15 %, totals included", measured, worst <= 0.0015);
    line.notes = notes;
    Ok(vec![line])
}

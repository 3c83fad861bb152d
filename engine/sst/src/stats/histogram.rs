//! Finds where to cut many sorted sources into pieces of about the same size. It reads index nodes only. This
//! module does not know which rows of one source are hidden by another source: a row that is in two sources counts
//! twice.
//!
//! Every source is made of a few *units*, each with a weight and a span of keys. At first, a file has a single
//! unit, which is its root and spans the file's bounds. Later, the file's units are subtrees, and the span of each
//! lies between two separators. How much lies before a cut is uncertain only because of the units whose spans
//! contain the cut.
//!
//! ```text
//!   file 1   ├───────── 40 ─────────┤├──── 30 ────┤          before the cut lie at least 10, at most 10 + 40 + 20:
//!   file 2   ├ 10 ┤├── 20 ──┤          ├── 20 ──┤            40 ± 30
//!   cut              ▲
//! ```
//!
//! To open a unit means to replace it by the children of its node. A *place* is a key at which some unit begins or
//! ends. Units are opened until, at each place, the units whose spans contain the place together weigh no more than
//! the resolution. The heaviest unit is opened first, but only if it weighs more than its share of the resolution.
//! Afterwards, the amount before each place is known to half a resolution, and no more than one resolution lies
//! between two neighbouring places. The places nearest to the multiples of the resolution become the cuts. If data
//! pages alone are heavier than the resolution, nodes around a cut are opened until only data pages are left.
//!
//! * Pages: an opened unit weighs more than the resolution divided by the number of sources that cover the place.
//!   The units of one level share the total weight. So fewer than sources x (total / resolution) units are opened on
//!   one level for this reason. Around each cut, one more unit of each source may be opened on each level. With the
//!   ways to the ends of the range and to the edges of slices, this makes at most sources x height x (buckets +
//!   edges of the slice + 2) pages. Tests check this bound.
//! * Rounds: all nodes that are opened after one look at the units come in the same rounds. There are about as many
//!   looks as the tree has levels.
//! * Memory: a few hundred bytes for every child of a node that was opened.

use super::range::TreeSums;
use super::{Estimate, Span};
use crate::format::meta::{KeyBounds, MAX_BOUND_BYTES, TreeKind};
use crate::format::node::IndexNode;
use crate::read::{Sst, Subtree};
use crate::slice::RowRanges;
use pages::{PageRef, PageSource, Result, retry, together};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

/// The most nodes that are pinned at once: 2 MiB at the default size of nodes.
const ROUND_NODES: usize = 128;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Metric {
    /// Rows, including erased ones.
    Rows,
    /// Stored bytes of data pages, and of what belongs to the rows in them but lies elsewhere.
    Bytes,
}

/// A place between rows at which one bucket ends and the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CutPoint {
    /// The rows with keys less than this string lie before the cut, and all other rows lie after it.
    pub at: Vec<u8>,
    /// Whether this string is certainly the key of a row. Otherwise, it is a string that separates rows.
    pub is_key: bool,
}

/// The rows between two neighbouring cut points.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Bucket {
    /// All rows of the bucket lie before this cut point. `None` in the last bucket.
    pub end: Option<CutPoint>,
    /// How much lies in this bucket and in all buckets before it together.
    pub through: Estimate,
    /// Middle of `through`.
    pub value: u64,
}

/// Buckets in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Histogram {
    /// What was measured.
    pub metric: Metric,
    /// The size that buckets should have.
    pub resolution: u64,
    /// The buckets in the order of keys. There is at least one. Cut points and values strictly increase from bucket
    /// to bucket.
    pub buckets: Vec<Bucket>,
    /// How much lies in all buckets together.
    pub total: Estimate,
    /// Index nodes that were asked for.
    pub index_pages: u64,
}

/// A sorted source of rows.
#[derive(Clone, Copy, Debug)]
pub enum HistogramSource<'a> {
    /// The part of a file that the table sees.
    File(&'a Sst),
    /// Rows in memory, in runs that are in key order and do not overlap.
    Memory(&'a [MemoryRun]),
}

/// Some neighbouring rows in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRun {
    /// Key of the first.
    pub first_key: Vec<u8>,
    /// Key of the last.
    pub last_key: Vec<u8>,
    /// How many rows it has.
    pub rows: u64,
    /// The bytes of the rows.
    pub bytes: u64,
}

/// Divides the part of `sources` from `low` to `high` into buckets of about `resolution` each. The resolution is
/// at least 1. Cut points lie near the multiples of the resolution. The value of a bucket may be wrong by up to
/// half a resolution. Around a cut point, the data pages and runs in memory may together hold more than a
/// resolution. Then the error may be half of what they hold. If `low` or `high` lies inside pages or runs, half of
/// what these hold may be added to the error. Reads only index nodes, many of them in each step.
///
/// # Errors
///
/// [`pages::Error`] if a node cannot be read or is corrupt.
pub fn histogram<S: PageSource + ?Sized>(
    source: &S,
    sources: &[HistogramSource<'_>],
    low: Bound<&[u8]>,
    high: Bound<&[u8]>,
    metric: Metric,
    resolution: u64,
) -> Result<Histogram> {
    assert!(resolution > 0, "a bucket has room for something");
    let mut pieces = UnitSet::new(source, sources, low, high, metric);
    let mut index_pages = 0;
    let mut cuts: Option<Vec<usize>> = None;
    loop {
        let line = PlaceOrder::new(&pieces);
        let heavy = match &cuts {
            None => pieces.heavy(&line, resolution),
            Some(cuts) => pieces.heavy_at(&line, cuts, resolution),
        };
        if !heavy.is_empty() {
            index_pages += heavy.len() as u64;
            pieces.open(&heavy)?;
            continue;
        }
        match &cuts {
            None => cuts = Some(choose(&line, &pieces.before(&line), pieces.total(), resolution)),
            Some(cuts) => {
                let buckets = pieces.buckets(&line, cuts);
                let total = pieces.total();
                return Ok(Histogram { metric, resolution, buckets, total, index_pages });
            }
        }
    }
}

/// A place between keys: all lesser keys lie before it. Neighbouring units have a place in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeyPlace {
    Before(Vec<u8>),
    End,
}

/// A part of a source, with the span of its keys from one place to another.
struct Unit {
    low: usize,
    high: usize,
    /// How much of the unit lies in the range.
    weight: Estimate,
    /// Whether the unit may have keys outside the range of the histogram: before its start (`cut_low`) or after
    /// its end (`cut_high`).
    cut_low: bool,
    cut_high: bool,
    /// The number of the unit's file, and its subtree. This is set only if the unit can be opened, which means
    /// that its top is an index node.
    node: Option<(usize, Subtree)>,
    /// Whether only the nodes below can say how much of the unit lies in the range.
    is_vague: bool,
}

/// All sources as units.
struct UnitSet<'a, S: ?Sized> {
    source: &'a S,
    metric: Metric,
    files: Vec<(TreeSums<'a, S>, RowRanges)>,
    places: Vec<KeyPlace>,
    /// For each place, whether its key is certainly the key of a row.
    are_keys: Vec<bool>,
    units: Vec<Unit>,
    /// The range.
    low: KeyPlace,
    high: KeyPlace,
}

/// A span of keys, and at which of its ends the range cuts off keys.
struct Clipped {
    low: usize,
    high: usize,
    cut_low: bool,
    cut_high: bool,
}

impl<'a, S: PageSource + ?Sized> UnitSet<'a, S> {
    fn new(
        source: &'a S,
        sources: &[HistogramSource<'a>],
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        metric: Metric,
    ) -> Self {
        // A place after a key is expressed as the place before the next possible string, which is the key with a
        // zero byte at its end.
        let place = |key: &[u8], is_after: bool| KeyPlace::Before([key, if is_after { &[0] } else { &[] }].concat());
        let mut pieces = Self {
            source,
            metric,
            files: Vec::new(),
            places: Vec::new(),
            are_keys: Vec::new(),
            units: Vec::new(),
            low: KeyPlace::Before(Vec::new()),
            high: KeyPlace::End,
        };
        let Some(span) = Span::within(low, high, &KeyBounds::default()) else { return pieces };
        if let Some(edge) = span.low {
            pieces.low = place(edge.at, edge.is_after);
        }
        if let Some(edge) = span.high {
            pieces.high = place(edge.at, edge.is_after);
        }
        for &source in sources {
            match source {
                HistogramSource::File(sst) => {
                    let bounds = sst.bounds();
                    // The lower bound of a file may not be the key of a row: it may have been shortened, or come
                    // from a range erase or from a slice.
                    let is_key =
                        sst.slice.is_none() && sst.meta.range_erases.is_none() && bounds.low.len() < MAX_BOUND_BYTES;
                    let last = bounds.high.as_deref().map_or(KeyPlace::End, |high| place(high, true));
                    if let (Some(span), Some(sum)) = (
                        pieces.clip(place(&bounds.low, false), is_key, last),
                        TreeSums::new(sst, pieces.source, TreeKind::Main),
                    ) {
                        let root = sum.root();
                        pieces.files.push((sum, sst.rows()));
                        pieces.add_subtree(pieces.files.len() - 1, root, &span);
                    }
                }
                HistogramSource::Memory(runs) => {
                    for run in runs {
                        let span = pieces.clip(place(&run.first_key, false), true, place(&run.last_key, true));
                        if let Some(Clipped { low, high, cut_low, cut_high }) = span {
                            let all = if metric == Metric::Rows { run.rows } else { run.bytes };
                            let weight = Estimate { low: if cut_low || cut_high { 0 } else { all }, high: all };
                            let unit = Unit { low, high, weight, cut_low, cut_high, node: None, is_vague: false };
                            pieces.units.push(unit);
                        }
                    }
                }
            }
        }
        pieces
    }

    fn add_place(&mut self, place: KeyPlace, is_key: bool) -> usize {
        self.places.push(place);
        self.are_keys.push(is_key);
        self.places.len() - 1
    }

    /// Clips the keys of a source, from `low` to `high`, to the range; `None` if none of these keys lies in the
    /// range.
    fn clip(&mut self, low: KeyPlace, is_key: bool, high: KeyPlace) -> Option<Clipped> {
        let (cut_low, cut_high) = (low < self.low, high > self.high);
        let (from, to) = ((&low).max(&self.low), (&high).min(&self.high));
        if from >= to {
            return None;
        }
        let (from, to) = (from.clone(), to.clone());
        let low = self.add_place(from, is_key && !cut_low);
        Some(Clipped { low, high: self.add_place(to, false), cut_low, cut_high })
    }

    /// Adds a subtree of a file, unless the table sees none of its rows.
    fn add_subtree(&mut self, file: usize, subtree: Subtree, span: &Clipped) {
        let &Clipped { low, high, cut_low, cut_high } = span;
        let (rows, is_cut) = (subtree.totals().rows, cut_low || cut_high);
        let seen = self.files[file].1.count_within(subtree.rows());
        if seen == 0 {
            return;
        }
        let of = |rows: Estimate, bytes: Estimate| if self.metric == Metric::Rows { rows } else { bytes };
        let part = subtree.part(seen, is_cut);
        let mut weight = of(part.rows, part.bytes.plus(part.beside_bytes));
        // Only the nodes below the subtree say how many of its bytes the table sees.
        let is_vague = subtree.level > 0 && (is_cut || self.metric == Metric::Bytes && seen < rows);
        if is_vague {
            let whole = subtree.part(rows, false);
            weight = Estimate { low: 0, high: of(part.rows, whole.bytes.plus(whole.beside_bytes)).high };
        }
        let node = (subtree.level > 0).then_some((file, subtree));
        self.units.push(Unit { low, high, weight, cut_low, cut_high, node, is_vague });
    }

    /// Replaces `units` by their children. The units must be in order.
    fn open(&mut self, units: &[usize]) -> Result<()> {
        for batch in units.chunks(ROUND_NODES) {
            let mut nodes: Vec<Option<PageRef>> = vec![None; batch.len()];
            retry(self.source, || {
                together(nodes.iter_mut().zip(batch).filter(|(node, _)| node.is_none()), |(node, &unit)| {
                    let (file, subtree) = self.units[unit].node.expect("only a unit with a node is opened");
                    *node = Some(self.files[file].0.open(&subtree)?);
                    Ok(())
                })
            })?;
            for (node, &unit) in nodes.iter().zip(batch) {
                self.add_children(unit, &IndexNode::new(node.as_ref().expect("the step is done")));
            }
        }
        let mut opened = units.iter().copied().peekable();
        let mut i = 0;
        self.units.retain(|_| {
            let is_left = opened.next_if_eq(&i).is_none();
            i += 1;
            is_left
        });
        Ok(())
    }

    fn add_children(&mut self, unit: usize, node: &IndexNode<'_>) {
        let Unit { low, high, cut_low, cut_high, node: subtree, .. } = self.units[unit];
        let (file, subtree) = subtree.expect("it has a node");
        let last = node.children() - 1;
        let mut before: Option<usize> = None;
        for i in 0..=last {
            let after = (i < last).then(|| {
                let mut separator = Vec::new();
                node.separator(i, &mut separator);
                self.add_place(KeyPlace::Before(separator), false)
            });
            let start = std::mem::replace(&mut before, after);
            let is_out = cut_low && after.is_some_and(|after| self.places[after] <= self.low)
                || cut_high && start.is_some_and(|start| self.places[start] >= self.high);
            if is_out {
                continue;
            }
            // The bounds of a file may be wider than its keys, and the bounds of a slice may lie between
            // separators. So the separators of a child may lie outside the bounds of its unit.
            let from = start.filter(|&start| self.places[start] > self.places[low]).unwrap_or(low);
            let to = after.filter(|&after| self.places[after] < self.places[high]).unwrap_or(high);
            let is_in_order = self.places[from] < self.places[to];
            let span = Clipped {
                low: if is_in_order { from } else { low },
                high: if is_in_order { to } else { high },
                cut_low: cut_low && start.is_none_or(|start| self.places[start] < self.low),
                cut_high: cut_high && after.is_none_or(|after| self.places[after] > self.high),
            };
            self.add_subtree(file, subtree.child(node, i), &span);
        }
    }

    /// What lies in all units.
    fn total(&self) -> Estimate {
        self.units.iter().fold(Estimate::default(), |sum, unit| sum.plus(unit.weight))
    }

    /// Returns, in order, the units that must be opened so that the units over any place together weigh at most
    /// `resolution`. As soon as a unit is chosen, its weight counts as 0. If its children are still too heavy, the
    /// next pass over the units finds them.
    fn heavy(&self, line: &PlaceOrder, resolution: u64) -> Vec<usize> {
        let mut cover = UnitsAt::new(self);
        for (place, ends, begins) in line.places() {
            cover.end(ends);
            cover.begin(begins);
            cover.lighten(line, place, resolution, true);
        }
        cover.opened()
    }

    /// Returns the units that must be opened so that the units over each of `cuts` together weigh at most
    /// `resolution`, or cannot be opened further.
    fn heavy_at(&self, line: &PlaceOrder, cuts: &[usize], resolution: u64) -> Vec<usize> {
        let mut cover = UnitsAt::new(self);
        let mut cuts = cuts.iter().map(|&cut| line.rank[cut]).peekable();
        for (place, ends, begins) in line.places() {
            cover.end(ends);
            if cuts.next_if_eq(&place).is_some() {
                cover.lighten(line, place, resolution, false);
            }
            cover.begin(begins);
        }
        cover.opened()
    }

    /// How much lies before each place.
    fn before(&self, line: &PlaceOrder) -> Vec<Estimate> {
        let mut closed = Estimate::default();
        let mut open = 0u128;
        let mut before = Vec::with_capacity(line.order.len());
        for (_, ends, begins) in line.places() {
            for &unit in ends {
                closed += self.units[unit].weight;
                open -= u128::from(self.units[unit].weight.high);
            }
            let open_high = u64::try_from(open).unwrap_or(u64::MAX);
            before.push(Estimate { high: closed.high.saturating_add(open_high), ..closed });
            for &unit in begins {
                open += u128::from(self.units[unit].weight.high);
            }
        }
        before
    }

    /// What lies between the cuts.
    fn buckets(&self, line: &PlaceOrder, cuts: &[usize]) -> Vec<Bucket> {
        let before = self.before(line);
        let total = self.total();
        let mut buckets: Vec<Bucket> = Vec::with_capacity(cuts.len() + 1);
        for &cut in cuts {
            let through = before[line.rank[cut]];
            let value = through.middle();
            let last = buckets.last().map_or(0, |bucket| bucket.value);
            if let KeyPlace::Before(at) = &self.places[cut]
                && (last + 1..total.middle()).contains(&value)
            {
                let end = CutPoint { at: at.clone(), is_key: self.are_keys[cut] };
                buckets.push(Bucket { end: Some(end), through, value });
            }
        }
        buckets.push(Bucket { end: None, through: total, value: total.middle() });
        buckets
    }
}

/// The places in order, each with the units that end there and the units that begin there.
struct PlaceOrder {
    /// The rank of each place in the order. Equal places have the same rank.
    rank: Vec<usize>,
    /// One place of each rank. If several places have the same rank, a place is chosen whose string is certainly a
    /// key, if there is one.
    order: Vec<usize>,
    is_key: Vec<bool>,
    bytes: Vec<usize>,
    low: Vec<usize>,
    high: Vec<usize>,
    /// The units in the order in which they begin, and in the order in which they end.
    begins: Vec<usize>,
    ends: Vec<usize>,
}

impl PlaceOrder {
    fn new<S: PageSource + ?Sized>(pieces: &UnitSet<'_, S>) -> Self {
        let mut sorted: Vec<usize> = (0..pieces.places.len()).collect();
        sorted.sort_unstable_by_key(|&place| (&pieces.places[place], !pieces.are_keys[place], place));
        let mut rank = vec![0; sorted.len()];
        let mut order: Vec<usize> = Vec::new();
        for place in sorted {
            if order.last().is_none_or(|&last| pieces.places[last] != pieces.places[place]) {
                order.push(place);
            }
            rank[place] = order.len() - 1;
        }
        let low: Vec<usize> = pieces.units.iter().map(|unit| rank[unit.low]).collect();
        let high: Vec<usize> = pieces.units.iter().map(|unit| rank[unit.high]).collect();
        let mut begins: Vec<usize> = (0..pieces.units.len()).collect();
        let mut ends = begins.clone();
        begins.sort_unstable_by_key(|&unit| (low[unit], unit));
        ends.sort_unstable_by_key(|&unit| (high[unit], unit));
        let is_key = order.iter().map(|&place| pieces.are_keys[place]).collect();
        let bytes = order.iter().map(|&place| match &pieces.places[place] {
            KeyPlace::Before(at) => at.len(),
            KeyPlace::End => usize::MAX,
        });
        Self { bytes: bytes.collect(), rank, order, is_key, low, high, begins, ends }
    }

    /// Each rank, with the units that end there and the units that begin there.
    fn places(&self) -> impl Iterator<Item = (usize, &[usize], &[usize])> {
        let (mut begun, mut ended) = (0, 0);
        (0..self.order.len()).map(move |rank| {
            let ends = &self.ends[ended..];
            let ends = &ends[..ends.partition_point(|&unit| self.high[unit] == rank)];
            let begins = &self.begins[begun..];
            let begins = &begins[..begins.partition_point(|&unit| self.low[unit] == rank)];
            ended += ends.len();
            begun += begins.len();
            (rank, ends, begins)
        })
    }
}

/// The units whose spans hold one place. The place moves along the line of keys.
struct UnitsAt<'p> {
    units: &'p [Unit],
    is_opened: Vec<bool>,
    /// The sum of the weights of the units that are not opened.
    weight: u128,
    count: u128,
    /// The units that have a node, the heaviest first. Some of them may have ended before the place.
    nodes: BinaryHeap<(u64, Reverse<usize>)>,
}

impl<'p> UnitsAt<'p> {
    fn new<S: PageSource + ?Sized>(pieces: &'p UnitSet<'_, S>) -> Self {
        let is_opened = pieces.units.iter().map(|unit| unit.is_vague).collect();
        Self { units: &pieces.units, is_opened, weight: 0, count: 0, nodes: BinaryHeap::new() }
    }

    fn begin(&mut self, units: &[usize]) {
        for &unit in units.iter().filter(|&&unit| !self.is_opened[unit]) {
            let high = self.units[unit].weight.high;
            self.weight += u128::from(high);
            self.count += 1;
            if self.units[unit].node.is_some() {
                self.nodes.push((high, Reverse(unit)));
            }
        }
    }

    fn end(&mut self, units: &[usize]) {
        for &unit in units.iter().filter(|&&unit| !self.is_opened[unit]) {
            self.weight -= u128::from(self.units[unit].weight.high);
            self.count -= 1;
        }
    }

    /// Opens the heaviest units until the units at `place` weigh at most `resolution`. If `only_heavy` is set, it
    /// opens only units that weigh more than their share of `resolution`.
    fn lighten(&mut self, line: &PlaceOrder, place: usize, resolution: u64, only_heavy: bool) {
        let resolution = u128::from(resolution);
        while self.weight > resolution
            && let Some(&(weight, Reverse(unit))) = self.nodes.peek()
        {
            if line.high[unit] > place {
                if only_heavy && u128::from(weight) * self.count <= resolution {
                    break;
                }
                self.end(&[unit]);
                self.is_opened[unit] = true;
            }
            self.nodes.pop();
        }
    }

    fn opened(&self) -> Vec<usize> {
        (0..self.units.len()).filter(|&unit| self.is_opened[unit]).collect()
    }
}

/// A place that may become a cut. The amount before it, taken as the middle of its interval, is greater than the
/// amount before the previous candidate.
#[derive(Clone, Copy)]
struct CutCandidate {
    value: u64,
    /// `None` for the candidates at the start and at the end of the range, because nothing is cut there.
    place: Option<usize>,
}

/// For each multiple of `resolution`, finds the place that has about that much before it. Returns the found places
/// that are cuts, in order.
fn choose(line: &PlaceOrder, before: &[Estimate], total: Estimate, resolution: u64) -> Vec<usize> {
    let end = total.middle();
    let mut candidates = vec![CutCandidate { value: 0, place: None }];
    // Several places may have the same amount before them. Of these, the place with the narrowest interval is
    // taken. If there are several such places, a key is preferred, and then the shortest string.
    let inner: Vec<usize> = (0..before.len()).filter(|&rank| (1..end).contains(&before[rank].middle())).collect();
    for same in inner.chunk_by(|&a, &b| before[a].middle() == before[b].middle()) {
        let best = same.iter().min_by_key(|&&rank| (before[rank].width(), !line.is_key[rank], line.bytes[rank], rank));
        let best = *best.expect("a chunk is not empty");
        candidates.push(CutCandidate { value: before[best].middle(), place: Some(line.order[best]) });
    }
    candidates.push(CutCandidate { value: end, place: None });
    let mut cuts: Vec<usize> = Vec::new();
    for pair in candidates.windows(2) {
        let [from, to] = [u128::from(pair[0].value), u128::from(pair[1].value)];
        let resolution = u128::from(resolution);
        let first = from.div_ceil(resolution).max(1) * resolution;
        let last = to / resolution * resolution;
        let takes_from = first <= to && first - from <= to - first;
        let takes_to = last >= from && last > 0 && to - last < last - from;
        let nearest = [pair[0].place.filter(|_| takes_from), pair[1].place.filter(|_| takes_to)];
        for place in nearest.into_iter().flatten() {
            if cuts.last() != Some(&place) {
                cuts.push(place);
            }
        }
    }
    cuts
}

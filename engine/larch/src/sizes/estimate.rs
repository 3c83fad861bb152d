//! Estimates how much a range contains. An estimate is two numbers with the true number between them. They come from
//! memory, from the manifest for files that are completely in the range, and from index nodes for all other files. No
//! data page is read.
//!
//! The sources are the memtables and the files; the module `stretches` explains stretches and clusters. If only one
//! source has keys, a reader sees its rows except erases. If several have keys, a reader sees at most the puts of all
//! of them together, and at least the greatest number of puts in one source that newer sources do not erase. These
//! two limits can be computed for a whole cluster or for each of its stretches. Where sources only touch each other,
//! the limits of single stretches are tighter. Where they overlap, the limits of the whole cluster are, because each
//! cut between stretches falls into a page and makes the rows of this page uncertain.

use super::memory::{self, MemoryRows};
use super::stretches::{MEMORY, Placed, Sight, Stretches, files_in};
use super::types::{RangeGroup, RangeLevel, RangeStats};
use crate::base::error::Result;
use crate::view::TableView;
use pages::{Session, retry, together};
use sst::KeyRange;
use sst::stats::{Estimate, RangeTotals};
use std::collections::BTreeMap;
use std::ops::Range;

/// The most stretches of a cluster for which single limits are computed, because each stretch may cost a descent in
/// the index of every file.
const MAX_STRETCHES: usize = 32;

/// How many descents are made at the same time, so that their missing pages are read in one round. The pages of these
/// descents stay pinned during the round.
const WAYS_TOGETHER: usize = 32;

/// The puts and erases that one source has in some stretches.
#[derive(Clone, Copy, Debug, Default)]
struct SourceTally {
    /// The puts that a reader certainly sees, unless newer sources have their keys.
    puts_low: u64,
    /// The puts that a reader may see.
    puts_high: u64,
    /// The keys that may be erased here, which hides them in older sources.
    erased_high: u64,
}

/// The tallies of all sources, newest first.
type Tallies = BTreeMap<usize, SourceTally>;

/// Questions to files: how many rows does a file have in a range of keys? No question is asked twice.
#[derive(Debug, Default)]
struct Questions {
    /// The number of each question, by its file and keys.
    asked: BTreeMap<(usize, KeyRange), usize>,
    order: Vec<(usize, KeyRange)>,
}

impl Questions {
    /// Adds this question if it is new, and returns its number.
    fn ask(&mut self, file: usize, span: KeyRange) -> usize {
        let next = self.order.len();
        let number = *self.asked.entry((file, span.clone())).or_insert(next);
        if number == next {
            self.order.push((file, span));
        }
        number
    }
}

/// A sum that is computed once all questions are answered.
struct Sum {
    /// The stretches of this sum: a whole cluster, or one stretch of it.
    stretches: Range<usize>,
    /// The terms of the sum: a file, how a reader sees its rows, and the number of the question to it.
    terms: Vec<(usize, Sight, usize)>,
}

/// The number of rows that a reader sees.
pub fn count(session: &Session, table: TableView<'_>, span: &KeyRange) -> Result<Estimate> {
    let stretches = Stretches::of(session, table, span)?;
    count_in(session, table, &stretches)
}

/// The number of bytes that files and memtables have in `span`.
pub fn size(session: &Session, table: TableView<'_>, span: &KeyRange) -> Result<Estimate> {
    let files = files_in(table, span);
    let places: Vec<_> = files.iter().map(|placed| (placed, &placed.span)).collect();
    let in_files = totals(session, &places)?.into_iter().map(|totals| totals.bytes.plus(totals.beside_bytes));
    Ok(in_files.fold(Estimate::exact(memory::held(table, span).bytes), Estimate::plus))
}

/// Everything that is known about `span`.
pub fn range_stats(session: &Session, table: TableView<'_>, span: &KeyRange) -> Result<RangeStats> {
    let stretches = Stretches::of(session, table, span)?;
    let held = memory::held(table, span);
    let names = &table.files.info.options.groups;
    let mut stats = RangeStats {
        rows: count_in(session, table, &stretches)?,
        groups: names.iter().map(|name| RangeGroup { name: name.clone(), bytes: Estimate::default() }).collect(),
        memory_rows: held.rows,
        memory_bytes: held.bytes,
        ..RangeStats::default()
    };
    let places: Vec<_> = stretches.files.iter().map(|placed| (placed, &placed.span)).collect();
    for (placed, totals) in stretches.files.iter().zip(totals(session, &places)?) {
        let bytes = totals.bytes.plus(totals.beside_bytes);
        stats.stored_rows += totals.rows;
        stats.erased_rows += totals.erased;
        stats.file_bytes += bytes;
        stats.data_bytes += totals.bytes;
        if stats.levels.last().is_none_or(|level| level.level != placed.level) {
            stats.levels.push(RangeLevel { level: placed.level, ..RangeLevel::default() });
        }
        let level = stats.levels.last_mut().expect("made above");
        level.files += 1;
        level.rows += totals.rows;
        level.bytes += bytes;

        let sst = &placed.file.sst;
        if names.is_empty() && sst.meta.history.is_none() {
            continue;
        }
        let by_group = retry(session, || sst.bytes_by_group_between(session, placed.span.low(), placed.span.high()))?;
        let (&history, by_group) = by_group.split_last().expect("the history is among them");
        stats.history_bytes += history;
        for (group, bytes) in stats.groups.iter_mut().zip(by_group) {
            group.bytes += *bytes;
        }
    }
    Ok(stats)
}

/// As [`count`], for a range that was already cut into stretches.
fn count_in(session: &Session, table: TableView<'_>, stretches: &Stretches<'_>) -> Result<Estimate> {
    let in_memory = in_memory(table, stretches);
    let mut questions = Questions::default();
    let mut sums = Vec::new();
    for cluster in stretches.clusters() {
        let mut sum = |stretches_of: Range<usize>| Sum {
            terms: terms(stretches, stretches_of.clone(), &mut questions),
            stretches: stretches_of,
        };
        let whole = sum(cluster.clone());
        let sources: Vec<usize> = whole.terms.iter().map(|&(file, ..)| stretches.files[file].source).collect();
        let has_several = sources.iter().any(|source| *source != sources[0])
            || (!sources.is_empty() && in_memory[cluster.clone()].iter().any(|tally| tally.puts_high > 0));
        let one_by_one = if has_several && (2..=MAX_STRETCHES).contains(&cluster.len()) {
            cluster.map(|i| sum(i..i + 1)).collect()
        } else {
            Vec::new()
        };
        sums.push((whole, one_by_one));
    }
    let places: Vec<_> = questions.order.iter().map(|(file, span)| (&stretches.files[*file], span)).collect();
    let answers = totals(session, &places)?;
    let visible = |sum: &Sum| visible(&tallies(table, stretches, sum, &answers, &in_memory));
    let mut total = Estimate::default();
    for (whole, one_by_one) in &sums {
        let mut seen = visible(whole);
        if !one_by_one.is_empty() {
            let parts = one_by_one.iter().map(visible).fold(Estimate::default(), Estimate::plus);
            seen = Estimate { low: seen.low.max(parts.low), high: seen.high.min(parts.high) };
        }
        total += seen;
    }
    Ok(total)
}

/// Adds the questions to the files of these stretches and returns the terms. If a reader sees a file in the same way
/// in neighbouring stretches, they share one question.
fn terms(stretches: &Stretches<'_>, numbers: Range<usize>, questions: &mut Questions) -> Vec<(usize, Sight, usize)> {
    let mut terms = Vec::new();
    // Pieces of files that may continue in the next stretch.
    let mut open: BTreeMap<(usize, bool), KeyRange> = BTreeMap::new();
    for stretch in &stretches.stretches[numbers] {
        let mut going_on = BTreeMap::new();
        for &(file, sight) in &stretch.files {
            let key = (file, sight == Sight::Clear);
            let start = open.remove(&key).map_or_else(|| stretch.span.start.clone(), |span| span.start);
            going_on.insert(key, KeyRange { start, end: stretch.span.end.clone() });
        }
        terms.extend(std::mem::replace(&mut open, going_on));
    }
    terms.extend(open);
    let ask = |((file, is_clear), span)| {
        let sight = if is_clear { Sight::Clear } else { Sight::Doubtful };
        (file, sight, questions.ask(file, span))
    };
    terms.into_iter().map(ask).collect()
}

/// What the files contain in each of `places`. The indexes are searched for many places at the same time.
pub fn totals(session: &Session, places: &[(&Placed<'_>, &KeyRange)]) -> Result<Vec<RangeTotals>> {
    let mut all = Vec::with_capacity(places.len());
    for places in places.chunks(WAYS_TOGETHER) {
        let mut found: Vec<Option<RangeTotals>> = vec![None; places.len()];
        retry(session, || {
            let missing = places.iter().zip(&mut found).filter(|(_, found)| found.is_none());
            together(missing, |((placed, span), found)| {
                *found = Some(placed.file.sst.totals_between(session, span.low(), span.high())?);
                Ok(())
            })
        })?;
        all.extend(found.into_iter().flatten());
    }
    Ok(all)
}

/// What the memtables contain in each stretch.
fn in_memory(table: TableView<'_>, stretches: &Stretches<'_>) -> Vec<SourceTally> {
    let mut tallies = vec![SourceTally::default(); stretches.stretches.len()];
    let Some(first) = stretches.stretches.first() else { return tallies };
    let mut rows = MemoryRows::from(table, first.span.low());
    for (stretch, tally) in stretches.stretches.iter().zip(&mut tallies) {
        while let Some((_, shows)) = rows.next_in(&stretch.span) {
            if shows {
                tally.puts_low += 1;
                tally.puts_high += 1;
            } else {
                tally.erased_high += 1;
            }
        }
    }
    tallies
}

/// What each source contains in the stretches of `sum`.
fn tallies(
    table: TableView<'_>,
    stretches: &Stretches<'_>,
    sum: &Sum,
    answers: &[RangeTotals],
    in_memory: &[SourceTally],
) -> Tallies {
    let mut tallies = Tallies::new();
    let mut add = |source: usize, more: SourceTally| {
        let tally = tallies.entry(source).or_default();
        tally.puts_low = tally.puts_low.saturating_add(more.puts_low);
        tally.puts_high = tally.puts_high.saturating_add(more.puts_high);
        tally.erased_high = tally.erased_high.saturating_add(more.erased_high);
    };
    in_memory[sum.stretches.clone()].iter().for_each(|&tally| add(MEMORY, tally));
    for &(file, sight, answer) in &sum.terms {
        let RangeTotals { rows, erased, .. } = answers[answer];
        let placed = &stretches.files[file];
        // Rows that have expired count as puts in the totals, and hide older rows.
        let may_be_gone =
            placed.file.sst.meta.expiry.is_some() && placed.file.has_expired_by(table.view.rules.clock.now());
        let puts_low = if sight == Sight::Clear && !may_be_gone { rows.low.saturating_sub(erased.high) } else { 0 };
        // A row that is too new for the reader may have replaced an older put, an older erase, or nothing. So each
        // row of such a file may be a put or an erase for this reader.
        let (puts_high, erased_high) =
            if placed.is_newer { (rows.high, rows.high) } else { (rows.high.saturating_sub(erased.low), erased.high) };
        let erased_high = if may_be_gone { rows.high } else { erased_high };
        add(placed.source, SourceTally { puts_low, puts_high, erased_high });
    }
    tallies
}

/// The rows that a reader sees if the sources have these tallies.
fn visible(tallies: &Tallies) -> Estimate {
    let mut seen = Estimate::default();
    let mut erased = 0_u64;
    for tally in tallies.values() {
        seen.low = seen.low.max(tally.puts_low.saturating_sub(erased));
        seen.high = seen.high.saturating_add(tally.puts_high);
        erased = erased.saturating_add(tally.erased_high);
    }
    seen
}

//! Both sides beside each other, and beside what was published.

use super::Side;
use super::data::Data;
use super::readers::Counts;
use harness::report::text::{bytes, rate};
use kit::goals::{Bound, word};

/// Times as many rows a second after as before, at least: what was published.
const GAIN: Bound = Bound::AtLeast(1.7);

/// Page reads a row after, at most. Before it was two.
const READS: f64 = 1.0;

/// The result for `data`, and whether it reaches the published one.
pub fn summary(data: &Data, before: &Side, after: &Side) -> (String, bool) {
    let sides = [before, after];
    let mut text = format!("\n{:40}{:>10}{:>10}\n", data.title(), "before", "after");
    let mut add = |name: &str, values: [String; 2], more: &str| {
        let [before, after] = values;
        text.push_str(format!("  {name:38}{before:>10}{after:>10}  {more}").trim_end());
        text.push('\n');
    };
    let a_second = sides.map(|side| side.run.measured.per_second());
    let gain = a_second[1] / a_second[0];
    let is_faster = GAIN.is_reached(gain);
    let verdict = word(is_faster);
    add("rows a second", a_second.map(rate), &format!("{gain:.2} times; goal: {GAIN}: {verdict}"));
    let a_row = |count: fn(&Counts) -> u64| sides.map(|side| side.counts.a_row(count(&side.counts)));
    let shown = |counts: [f64; 2]| counts.map(|count| format!("{count:.3}"));
    let reads = a_row(|counts| counts.page_reads);
    // What is read once for all is nothing to a row among many.
    let reads_less = reads[1] < READS + 0.005 && reads[0] > reads[1];
    let verdict = word(reads_less);
    add("page reads a row", shown(reads), &format!("goal: from 2 to {READS:.0}: {verdict}"));
    add("  of the index", shown(a_row(|counts| counts.index_reads)), "");
    add("  of rows", shown(a_row(|counts| counts.data_reads)), "");
    add("waits for the disk a row", shown(a_row(|counts| counts.waits)), "");
    let from_disk = sides.map(|side| match side.disk_bytes {
        Some(from_disk) => bytes((side.counts.a_row(from_disk)) as u64),
        None => "-".to_owned(),
    });
    add("from the disk a row, says the system", from_disk, "");
    text.push('\n');
    (text, is_faster && reads_less)
}

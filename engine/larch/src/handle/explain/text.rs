//! Prints an explanation as text for people.

use super::{Explained, ExplainedFile, ExplainedPages, ExplainedStore, Explanation, PageVisit, Verdict};
use std::fmt;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "answer   {} at version {}", self.answer, self.version.0)?;
        let rows = of(self.memory_rows, "row");
        writeln!(f, "memory   {} asked, {rows} of the answer", of(self.memtables, "memtable"))?;
        let (reads, bytes) = (of(self.page_reads(), "page"), of(self.read_bytes(), "byte"));
        let rounds = of(self.rounds, "round");
        writeln!(f, "disk     {reads} read, {bytes}, in {rounds} of waiting; {} found in memory", self.page_hits())?;
        if let Some(ExplainedStore { counts, billionths }) = &self.store {
            let (requests, bytes) = (of(counts.requests.total(), "request"), of(counts.read_bytes, "byte"));
            write!(f, "store    {requests}, {bytes} read, in {}", of(self.rounds, "round trip"))?;
            let cost = billionths.map(|billionths| format!("; cost {:.9}", billionths as f64 / 1e9));
            writeln!(f, "{}", cost.unwrap_or_default())?;
        }
        for level in &self.levels {
            write!(f, "level {}  {}, {} visited", level.level, of(level.files, "file"), level.visited)?;
            if level.outside_bounds > 0 {
                write!(f, ", {} with other keys", level.outside_bounds)?;
            }
            if level.not_reached > 0 {
                write!(f, ", {} not needed", level.not_reached)?;
            }
            writeln!(f)?;
        }
        if self.files.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        writeln!(
            f,
            "{:>5} {:>6} {:>10} {:>12}  {:<15} {:<13} {:>6} {:>6} {:>6} {:>11}",
            "level", "file", "rows", "bytes", "outcome", "pages", "hits", "faults", "ahead", "bytes read"
        )?;
        self.files.iter().try_for_each(|file| write_file(file, f))?;
        let shared: u64 = self.pages().map(|pages| pages.shared).sum();
        if shared > 0 {
            writeln!(f, "and {} that another reader brought meanwhile", of(shared, "page"))?;
        }
        if matches!(self.answer, Explained::Rows { .. }) {
            return Ok(());
        }
        writeln!(f)?;
        self.visits.iter().try_for_each(|visit| write_visit(visit, f))
    }
}

fn write_file(file: &ExplainedFile, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let level = file.level.map_or("-".to_owned(), |level| level.to_string());
    write!(f, "{level:>5} {:>6} {:>10} {:>12}  {:<15} ", file.number, file.rows, file.bytes, file.verdict.to_string())?;
    for (i, pages) in file.pages.iter().enumerate() {
        if i > 0 {
            write!(f, "{:>54}", "")?;
        }
        let ExplainedPages { kind, hits, faults, ahead, read_bytes, .. } = *pages;
        writeln!(f, "{:<13} {hits:>6} {faults:>6} {ahead:>6} {read_bytes:>11}", kind.name())?;
    }
    if file.pages.is_empty() { writeln!(f) } else { Ok(()) }
}

fn write_visit(visit: &PageVisit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let PageVisit { file, kind, level, offset, bytes, found, round } = *visit;
    let level = if level > 0 { format!(", level {level}") } else { String::new() };
    writeln!(f, "round {round}  file {file}: {}{level} at {offset}+{bytes}, {}", kind.name(), found.name())
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { value_bytes } => write!(f, "found, {} of value,", of(*value_bytes, "byte")),
            Self::Absent => f.write_str("no such key"),
            Self::Erased => f.write_str("erased"),
            Self::Rows { rows, value_bytes } => {
                write!(f, "{}, {} of values,", of(*rows, "row"), of(*value_bytes, "byte"))
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Row => "the row",
            Self::Erased => "an erase",
            Self::Nothing => "nothing",
            Self::SavedByFilter => "saved by filter",
            Self::Walked => "walked",
        })
    }
}

fn of(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

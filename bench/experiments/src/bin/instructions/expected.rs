//! The expected counts, stored in text files beside the code. This module does not know how they are counted.

use crate::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// How far a count may be off, in percent. Counts vary a little, because the C library copies bytes differently on
/// different processors, and a hash table has a random seed.
const TOLERANCE: u64 = 4;

/// Counts of one sort, and the file of the expected ones.
pub struct List {
    what: &'static str,
    file: &'static str,
}

/// The instructions of the hot paths.
pub const INSTRUCTIONS: List = List { what: "instructions of an operation", file: "expected-instructions.txt" };
/// The pages and bytes that move between memory and disk.
pub const DISK: List = List { what: "pages and bytes of 1,000", file: "expected-disk.txt" };

impl List {
    fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(self.file)
    }
}

/// Writes `counted` as the expected counts.
pub fn write(list: &List, counted: &[(&str, u64)]) -> Result<()> {
    let lines = counted.iter().map(|(name, count)| format!("{count:>7}  {name}\n"));
    let head = format!("# {}; `cargo x instructions --write` writes them.\n", capital(list.what));
    let (path, text) = (list.path(), std::iter::once(head).chain(lines).collect::<String>());
    fs::write(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    print!("{text}");
    Ok(())
}

/// Prints each count next to the expected one. The exit code is a failure if one is off by more than [`TOLERANCE`].
pub fn compare(list: &List, counted: &[(&str, u64)]) -> Result<ExitCode> {
    let path = list.path();
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let expected = parse(&text)?;
    let mut wrong = 0;
    println!("{:30}  counted  expected", list.what);
    for &(name, count) in counted {
        let said = match expected.get(name) {
            None => "not in the file",
            Some(&expected) if count * 100 > expected * (100 + TOLERANCE) => "more than is tolerated",
            Some(&expected) if count * 100 < expected * (100 - TOLERANCE) => "less: write it down",
            Some(_) => "",
        };
        wrong += u32::from(!said.is_empty());
        println!("{name:30} {count:8}  {:8}  {said}", expected.get(name).map_or(0, |expected| *expected));
    }
    if wrong == 0 && expected.len() == counted.len() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "error: {wrong} of {} counts are not within {TOLERANCE} % of {} of {}. If the change is wanted: cargo x \
         instructions --write",
        counted.len(),
        expected.len(),
        path.display()
    );
    Ok(ExitCode::FAILURE)
}

/// The text with a capital first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn parse(text: &str) -> Result<BTreeMap<&str, u64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (count, name) = line.trim().split_once("  ").ok_or_else(|| format!("`{line}` has no count and name"))?;
        let count = count.parse().map_err(|error| format!("`{count}` is no count: {error}"))?;
        Ok((name, count))
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_compared_with_its_name() {
        let expected = parse("# head\n     12  get\n   3456  scan, a row\n").expect("it is well formed");
        assert_eq!(expected, BTreeMap::from([("get", 12), ("scan, a row", 3456)]));
        assert!(parse("get 12").is_err() && parse("many  get").is_err());
    }
}

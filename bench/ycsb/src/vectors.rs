//! Reads the files that the original has written.
//!
//! ```text
//!   # a comment
//!   [name of a case]
//!   name=value
//!   -a line of a list
//! ```

use std::str::FromStr;

/// One case: the parameters that were set, and the results.
pub struct Case<'t> {
    pub name: &'t str,
    entries: Vec<(&'t str, &'t str)>,
    pub lines: Vec<&'t str>,
}

/// All cases of a file.
pub fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_end_matches(']');
            cases.push(Case { name, entries: Vec::new(), lines: Vec::new() });
            continue;
        }
        let case = cases.last_mut().expect("a file begins with a case");
        match line.strip_prefix('-') {
            Some(item) => case.lines.push(item),
            None => case.entries.push(line.split_once('=').expect("an entry has a name")),
        }
    }
    cases
}

/// All cases called `name`. There must be at least one.
pub fn named<'t>(text: &'t str, name: &str) -> Vec<Case<'t>> {
    let cases: Vec<_> = cases(text).into_iter().filter(|case| case.name == name).collect();
    assert!(!cases.is_empty(), "no case [{name}]");
    cases
}

impl<'t> Case<'t> {
    pub fn text(&self, name: &str) -> &'t str {
        let found = self.entries.iter().find(|(entry, _)| *entry == name);
        found.unwrap_or_else(|| panic!("[{}] has no `{name}`", self.name)).1
    }

    pub fn get<T: FromStr>(&self, name: &str) -> T {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| panic!("[{}] {name}={text}", self.name))
    }

    /// The value called `name` as the bits of a double.
    pub fn bits(&self, name: &str) -> u64 {
        u64::from_str_radix(self.text(name), 16).expect("bits in hexadecimal")
    }

    pub fn list<T: FromStr>(&self, name: &str) -> Vec<T> {
        let text = self.text(name);
        text.split(' ').map(|item| item.parse().unwrap_or_else(|_| panic!("{item} in {text}"))).collect()
    }

    pub fn entries(&self) -> &[(&'t str, &'t str)] {
        &self.entries
    }

    /// Draws as many numbers as the original drew, and compares them. The first numbers are compared one by one.
    /// For all numbers, it compares a sum that depends on the order of the numbers.
    pub fn check(&self, mut next: impl FnMut() -> i64) {
        let values: Vec<i64> = self.list("values");
        let mut sum = 0_u64;
        for index in 0..self.get::<usize>("count") {
            let value = next();
            sum = sum.wrapping_mul(SUM_FACTOR).wrapping_add(value.cast_unsigned());
            if let Some(expected) = values.get(index) {
                assert_eq!(value, *expected, "[{}] {:?}, value {index}", self.name, self.entries.first());
            }
        }
        assert_eq!(format!("{sum:016x}"), self.text("sum"), "[{}] {:?}", self.name, self.entries.first());
    }
}

/// The factor of an ordered sum: before the next value is added, the sum is multiplied by it.
pub const SUM_FACTOR: u64 = 6_364_136_223_846_793_005;

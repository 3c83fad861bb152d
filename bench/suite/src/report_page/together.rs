//! Shows results of clients that ran at the same time, in several processes or on several machines, as one result:
//! histograms are merged, and rates are added.

use super::Shown;
use harness::Measure;
use harness::report::Run;

#[cfg(test)]
mod tests;

/// Runs of the same name and time from different results.
pub struct Together<'s, 'r> {
    /// The runs, in the order of the page.
    pub runs: Vec<&'s Shown<'r>>,
}

/// Groups the runs. A run is in at most one group, and each group has at least two.
pub fn groups<'s, 'r>(shown: &'s [Shown<'r>]) -> Vec<Together<'s, 'r>> {
    let mut groups: Vec<Together<'s, 'r>> = Vec::new();
    for one in shown {
        let belongs = |group: &&mut Together<'s, 'r>| {
            let new_result = group.runs.iter().all(|other| other.result != one.result);
            let beside =
                group.runs.iter().all(|other| other.run.name == one.run.name && are_beside(other.run, one.run));
            new_result && beside
        };
        match groups.iter_mut().find(belongs) {
            Some(group) => group.runs.push(one),
            None => groups.push(Together { runs: vec![one] }),
        }
    }
    groups.retain(|group| group.runs.len() > 1);
    groups
}

/// Whether the two windows overlap for at least half of the shorter window.
fn are_beside(one: &Run, other: &Run) -> bool {
    let window = |run: &Run| {
        let begin = run.measured.began_unix_millis;
        (begin, begin + run.measured.nanos / 1_000_000)
    };
    let ((from, to), (other_from, other_to)) = (window(one), window(other));
    let common = to.min(other_to).saturating_sub(from.max(other_from));
    from > 0 && other_from > 0 && common > 0 && common * 2 >= (to - from).min(other_to - other_from)
}

impl Together<'_, '_> {
    /// The name of the group.
    pub fn name(&self) -> String {
        format!("{} of {} clients together", self.runs[0].run.name, self.runs.len())
    }

    /// For each kind of request: the merged measurements, and the sum of the runs' requests per second.
    pub fn kinds(&self) -> Vec<(Measure, f64)> {
        let mut names: Vec<&str> = Vec::new();
        for kind in self.runs.iter().flat_map(|one| &one.run.measured.kinds) {
            if !names.contains(&kind.name.as_str()) {
                names.push(&kind.name);
            }
        }
        names.into_iter().map(|name| self.kind(name)).collect()
    }

    fn kind(&self, name: &str) -> (Measure, f64) {
        let of_runs: Vec<(&Measure, f64)> = self
            .runs
            .iter()
            .filter_map(|one| Some((one.run.measured.kind(name)?, one.run.measured.nanos as f64 / 1e9)))
            .collect();
        let rate = of_runs.iter().map(|(kind, seconds)| kind.done() as f64 / seconds.max(1e-9)).sum();
        (Measure::sum(of_runs.iter().map(|(kind, _)| *kind)), rate)
    }
}

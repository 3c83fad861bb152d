//! How results differ in what produced them: machines, programs, settings.

use super::machine_rows;
use harness::report::{Report, Run};
use page::Table;

#[cfg(test)]
mod tests;

/// The table of differences, with a row for everything that is not the same in all results. `None` if nothing
/// differs.
pub fn table(reports: &[(String, Report)]) -> Option<Table> {
    let results: Vec<Vec<(String, String)>> = reports.iter().map(|(_, report)| things(report)).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in results.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let row = |name: &&str| {
        let value = |things: &Vec<(String, String)>| {
            let found = things.iter().find(|(known, _)| known == name);
            found.map_or("-".to_owned(), |(_, value)| value.clone())
        };
        let values: Vec<String> = results.iter().map(value).collect();
        let is_same = values.windows(2).all(|pair| pair[0] == pair[1]);
        (!is_same).then(|| std::iter::once((*name).to_owned()).chain(values).collect())
    };
    let rows: Vec<Vec<String>> = names.iter().filter_map(row).collect();
    let columns = std::iter::once(String::new()).chain(reports.iter().map(|(file, _)| file.clone())).collect();
    (!rows.is_empty()).then(|| Table { caption: "What is not the same in all results".to_owned(), columns, rows })
}

/// The number of different machines in the results. Machines with equal descriptions count as one.
pub fn machines(reports: &[(String, Report)]) -> usize {
    let mut seen: Vec<Vec<(&str, String)>> = Vec::new();
    for (_, report) in reports {
        let rows: Vec<_> = machine_rows(&report.environment).into_iter().filter(|(name, _)| is_lasting(name)).collect();
        let machine = rows.into_iter().filter(|(name, _)| !["version", "commit", "build"].contains(name)).collect();
        if !seen.contains(&machine) {
            seen.push(machine);
        }
    }
    seen.len()
}

/// Values that change from moment to moment do not identify a machine.
fn is_lasting(name: &str) -> bool {
    name != "load before" && name != "free on the disk"
}

/// The (name, value) of everything that can influence a result. If the runs of a result differ in a value, all
/// values are joined.
fn things(report: &Report) -> Vec<(String, String)> {
    let machine = machine_rows(&report.environment).into_iter().filter(|(name, _)| is_lasting(name));
    let mut things: Vec<(String, String)> = machine.map(|(name, value)| (name.to_owned(), value)).collect();
    let mut of_runs: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in report.runs.iter().flat_map(of_run) {
        match of_runs.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => of_runs.push((name, vec![value])),
        }
    }
    things.extend(of_runs.into_iter().map(|(name, values)| (name, values.join("; "))));
    things
}

fn of_run(run: &Run) -> Vec<(String, String)> {
    let plan = serde_json::to_value(&run.plan).expect("names are texts");
    let plan = plan.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.to_string()));
    let pairs = run.settings.iter().chain(&run.workload).map(|pair| (pair.name.clone(), pair.value.clone()));
    let head = [
        ("runs".to_owned(), run.name.clone()),
        ("target".to_owned(), run.target.clone()),
        ("seed".to_owned(), run.seed.to_string()),
    ];
    head.into_iter().chain(pairs).chain(plan).collect()
}

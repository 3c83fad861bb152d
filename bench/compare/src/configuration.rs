//! Lists how runs differ in everything but their measurements: program, machine, target, settings, workload, plan.

use harness::report::{Environment, Run};
use serde::Serialize;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// What a property belongs to. Differences are listed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The machine.
    Host,
    /// The program that measured.
    Binary,
    /// The target and the settings of the store.
    Settings,
    /// The workload, the plan and the seed.
    Work,
}

impl Place {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Binary => "binary",
            Self::Settings => "settings",
            Self::Work => "work",
        }
    }

    fn of(what: &str) -> Self {
        match what {
            "version" | "commit" | "build" => Self::Binary,
            _ if what.starts_with("machine ") => Self::Host,
            _ if what == "target" || what.starts_with("setting ") => Self::Settings,
            _ => Self::Work,
        }
    }
}

/// One property that is not the same in all runs of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the runs; empty if runs of all names have this difference.
    pub run: String,
    /// What the property belongs to.
    pub place: Place,
    /// The property: `commit`, `setting cache`, `plan clients`.
    pub what: String,
    /// Its distinct values in the runs of the base.
    pub base: Vec<String>,
    /// Its values in the new runs.
    pub new: Vec<String>,
    /// Why the difference forbids the comparison, if it does.
    pub forbids: Option<&'static str>,
}

/// Where a property may differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Between the sides: showing its effect is what comparisons are for.
    Compared,
    /// Nowhere: it must be the same in all runs.
    Ground,
    /// From run to run.
    Free,
}

/// The differences between runs of one name.
pub fn differences(name: &str, base: &[(&Environment, &Run)], new: &[(&Environment, &Run)]) -> Vec<Difference> {
    let things = |side: &[(&Environment, &Run)]| side.iter().map(|(place, run)| things(place, run)).collect::<Vec<_>>();
    let (base, new) = (things(base), things(new));
    let mut names: Vec<(Sort, &str)> = Vec::new();
    for (sort, what, _) in base.iter().chain(&new).flatten() {
        if !names.iter().any(|(_, known)| known == what) {
            names.push((*sort, what));
        }
    }
    let values = |side: &[Vec<Thing>], what: &str| {
        let mut values: Vec<String> = Vec::new();
        for run in side {
            let value = run.iter().find(|(_, name, _)| name == what).map_or("-", |(_, _, value)| value);
            if !values.iter().any(|known| known == value) {
                values.push(value.to_owned());
            }
        }
        values.sort();
        values
    };
    let difference = |(sort, what): &(Sort, &str)| {
        let (base, new) = (values(&base, what), values(&new, what));
        let forbids = match sort {
            Sort::Free => None,
            _ if base.len() > 1 || new.len() > 1 => Some("runs of one side differ in it"),
            Sort::Ground => Some("what is measured is not the same work on the same machine"),
            Sort::Compared => None,
        };
        (base != new || (base.len() > 1 && *sort != Sort::Free)).then(|| Difference {
            run: name.to_owned(),
            place: Place::of(what),
            what: (*what).to_owned(),
            base,
            new,
            forbids,
        })
    };
    names.sort_by_key(|(_, what)| Place::of(what));
    names.iter().filter_map(difference).collect()
}

/// Merges a difference that the runs of all names share into one.
pub fn merged(of_runs: Vec<Vec<Difference>>) -> Vec<Difference> {
    let count = of_runs.len();
    let mut all: Vec<Difference> = Vec::new();
    for difference in of_runs.iter().flatten() {
        let same = |other: &&Difference| Difference { run: difference.run.clone(), ..(*other).clone() } == *difference;
        let in_runs = of_runs.iter().filter(|run| run.iter().any(|other| same(&other))).count();
        let run = if in_runs == count { String::new() } else { difference.run.clone() };
        let difference = Difference { run, ..difference.clone() };
        if !all.contains(&difference) {
            all.push(difference);
        }
    }
    all.sort_by_key(|difference| difference.place);
    all
}

type Thing = (Sort, String, String);

fn things(place: &Environment, run: &Run) -> Vec<Thing> {
    let build = if place.debug_build { "without optimisation" } else { "with optimisation" };
    let mut things = vec![
        (Sort::Compared, "version".to_owned(), place.version.clone()),
        (Sort::Compared, "commit".to_owned(), place.commit.clone().unwrap_or_else(|| "unknown".to_owned())),
        (Sort::Compared, "build".to_owned(), build.to_owned()),
    ];
    // Momentary state, such as the load, is no property of the machine.
    for (name, value) in members(&place.machine) {
        let sort = match name.as_str() {
            "kernel" | "disk_bytes" => Sort::Compared,
            _ => Sort::Ground,
        };
        let is_of_a_moment = name == "load" || name.contains("free");
        if !is_of_a_moment {
            things.push((sort, format!("machine {name}"), shown(&name, &value)));
        }
    }
    things.push((Sort::Compared, "target".to_owned(), without_place(&run.target)));
    let settings =
        run.settings.iter().map(|pair| (Sort::Compared, format!("setting {}", pair.name), pair.value.clone()));
    things.extend(settings);
    let workload =
        run.workload.iter().map(|pair| (Sort::Ground, format!("workload {}", pair.name), pair.value.clone()));
    things.extend(workload);
    let plan = members(&run.plan);
    things.extend(plan.map(|(name, value)| (Sort::Ground, format!("plan {name}"), shown(&name, &value))));
    things.push((Sort::Free, "seed".to_owned(), run.seed.to_string()));
    things
}

fn members(of: &impl Serialize) -> impl Iterator<Item = (String, Value)> {
    let value = serde_json::to_value(of).expect("names are texts");
    let members = if let Value::Object(members) = value { members } else { serde_json::Map::new() };
    members.into_iter()
}

/// A value as text. Sizes are rounded: a machine's memory differs by some pages after each boot.
fn shown(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(bytes) if name.ends_with("_bytes") => {
            format!("{:.1} GiB", bytes.as_f64().unwrap_or(0.0) / f64::from(1 << 30))
        }
        Value::Number(nanos) if name.ends_with("_nanos") => format!("{} s", nanos.as_f64().unwrap_or(0.0) / 1e9),
        other => other.to_string(),
    }
}

/// A target without its directory, because sides that are measured in turns have a directory each.
fn without_place(target: &str) -> String {
    let (place, options) = target.split_once('?').map_or((target, ""), |(place, options)| (place, options));
    let scheme = place.split_once(':').map_or(place, |(scheme, _)| scheme);
    if options.is_empty() { format!("{scheme}:") } else { format!("{scheme}:?{options}") }
}

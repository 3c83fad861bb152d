//! Checks that crates depend on each other in one direction only.

use super::Finding;
use super::manifest::{self, Entry};
use super::tree::{LAYERS, Tree, join};
use std::collections::BTreeMap;

/// The crates from the lowest to the highest. A crate and its tests may depend only on crates before it in this
/// list; a test that needs more belongs in a higher crate. Benchmarks use the engine from outside, so they stand
/// above it, and only the command line may run them. `bench/kit`, which the benchmarks and the tests of every crate
/// share, depends on no crate and stands below all of them.
const ORDER: [&str; 23] = [
    "bench/kit",
    "bench/page",
    "engine/os",
    "cloud/objects",
    "engine/pages",
    "engine/sst",
    "engine/larch",
    "engine/rows",
    "engine/extractors",
    "testkit",
    "bench/harness",
    "bench/compare",
    "bench/ycsb",
    "bench/tpcc",
    "bench/row_access",
    "bench/kv",
    "bench/stores",
    "bench/suite",
    "bench/experiments",
    "query/datafusion",
    "cloud/remote",
    "query/ballista",
    "cli",
];

/// Every crate of [`ORDER`] depends only on crates before it, and every crate in a folder of
/// [`LAYERS`] is in this list.
pub fn point_downward(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let folders: BTreeMap<&str, &str> =
        tree.packages().filter_map(|package| Some((package_name(tree, package)?, package))).collect();
    let workspace: BTreeMap<&str, &str> = manifest::entries(tree.text("Cargo.toml").unwrap_or_default())
        .into_iter()
        .filter(|entry| entry.section == "workspace.dependencies")
        .map(|entry| (entry.key, entry.renamed().unwrap_or(entry.key)))
        .collect();

    for package in tree.packages() {
        let Some(path) = join(package, "Cargo.toml") else { continue };
        let Some(rank_here) = rank(package) else {
            if LAYERS.iter().any(|layer| package.starts_with(layer)) {
                findings.push(Finding::new(&path, 1, format!("`{package}` has no place in the order {}", order())));
            }
            continue;
        };
        let entries = manifest::entries(tree.text(&path).unwrap_or_default());
        let dependencies: Vec<Entry<'_>> = entries.into_iter().filter(Entry::is_dependency).collect();
        for entry in dependencies {
            let name = entry.renamed().or_else(|| workspace.get(entry.key).copied()).unwrap_or(entry.key);
            // Packages from elsewhere have no place in this order.
            let Some(below) = folders.get(name) else { continue };
            if rank(below).is_none_or(|below| below >= rank_here) {
                let what = format!("`{package}` may not depend on `{below}`: the order is {}", order());
                findings.push(Finding::new(&path, entry.line, what));
            }
        }
    }
    findings
}

pub fn order() -> String {
    ORDER.join(" < ")
}

fn rank(package: &str) -> Option<usize> {
    ORDER.iter().position(|known| *known == package)
}

fn package_name<'t>(tree: &'t Tree, package: &str) -> Option<&'t str> {
    let entries = manifest::entries(tree.text(&join(package, "Cargo.toml")?)?);
    let name = entries.into_iter().find(|entry| entry.section == "package" && entry.key == "name")?;
    Some(name.value.trim_matches('"'))
}

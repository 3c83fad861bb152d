//! Checks that every `Cargo.lock` agrees with the manifests beside it, so that a build of a clean clone changes no
//! file. Cargo finds such errors, too, but only in the workspace that it builds, and some workspaces are rarely
//! built.

use super::Finding;
use super::manifest::{self, Entry};
use super::tree::{Tree, folder, join};
use std::collections::BTreeMap;

/// A package in a lock file.
struct Locked<'t> {
    /// The line of its name, counted from 1.
    line: usize,
    name: &'t str,
    version: &'t str,
    /// Whether the package comes from a registry. Other packages are in the tree.
    is_fetched: bool,
    /// The names of the packages that this package depends on.
    dependencies: Vec<&'t str>,
}

/// The manifest of a package in the tree.
struct Manifest<'t> {
    folder: &'t str,
    entries: Vec<Entry<'t>>,
    /// The entries of its workspace's manifest. The package's own manifest may refer to these entries.
    workspace: Vec<Entry<'t>>,
}

/// Lock files agree with the manifests of the tree's packages about versions and dependencies, and have fetched
/// packages in versions that these manifests accept.
pub fn locks_fit_the_manifests(tree: &Tree) -> Vec<Finding> {
    let manifests: BTreeMap<&str, Manifest<'_>> = tree.packages().filter_map(|at| Manifest::named(tree, at)).collect();
    let mut findings = Vec::new();
    for (path, text) in tree.texts("Cargo.lock") {
        let packages = packages(text);
        for package in packages.iter().filter(|package| !package.is_fetched) {
            let what = match manifests.get(package.name) {
                None => vec![format!("`{}` is no package of the tree", package.name)],
                Some(manifest) => differences(package, manifest, folder(path), &packages),
            };
            let advice = |what| format!("{what}: run `cargo metadata --manifest-path {}`", manifest_of(path));
            findings.extend(what.into_iter().map(|what| Finding::new(path, package.line, advice(what))));
        }
    }
    findings
}

fn manifest_of(lock: &str) -> String {
    join(folder(lock), "Cargo.toml").unwrap_or_default()
}

fn differences(package: &Locked<'_>, manifest: &Manifest<'_>, workspace: &str, all: &[Locked<'_>]) -> Vec<String> {
    let name = package.name;
    let mut found = Vec::new();
    if let Some(version) = manifest.version()
        && version != package.version
    {
        found.push(format!("`{name}` has version {version}, and here {}", package.version));
    }
    // A lock file lists the dependencies of a package's tests only if the package belongs to the workspace of the
    // lock file.
    let is_member = workspace.is_empty() || workspace == manifest.folder;
    let dependencies: Vec<&Entry<'_>> = manifest.entries.iter().filter(|entry| entry.is_dependency()).collect();
    for entry in &dependencies {
        let (needed, asked) = (manifest.package_of(entry), manifest.asked_by(entry));
        let is_needed =
            !asked.contains("optional = true") && (is_member || !entry.section.ends_with("dev-dependencies"));
        let is_locked = package.dependencies.contains(&needed);
        if is_needed && !is_locked {
            found.push(format!("`{name}` depends on `{needed}`, and here it does not"));
        }
        let mut locked = all.iter().filter(|other| other.is_fetched && other.name == needed).peekable();
        if let Some(asked) = requirement(asked)
            && is_locked
            && locked.peek().is_some()
            && !locked.any(|other| fits(asked, other.version))
        {
            found.push(format!("`{name}` asks for `{needed}` {asked}, and here is no such version"));
        }
    }
    let is_unknown = |locked: &&&str| !dependencies.iter().any(|entry| manifest.package_of(entry) == **locked);
    let unknown = package.dependencies.iter().filter(is_unknown);
    found.extend(unknown.map(|other| format!("`{name}` does not depend on `{other}`, and here it does")));
    found
}

impl<'t> Manifest<'t> {
    /// The name of the package in this folder, and its manifest.
    fn named(tree: &'t Tree, at: &'t str) -> Option<(&'t str, Self)> {
        let entries = manifest::entries(tree.text(&join(at, "Cargo.toml")?)?);
        let is_workspace = entries.iter().any(|entry| entry.section.starts_with("workspace"));
        let workspace = if is_workspace { entries.clone() } else { Self::workspace_of(tree, at) };
        let this = Self { folder: at, entries, workspace };
        let name = this.of_package("name")?.value.trim_matches('"');
        Some((name, this))
    }

    /// Returns the entries of the workspace's manifest. This is the manifest in the nearest folder above that has
    /// a section `workspace`.
    fn workspace_of(tree: &'t Tree, at: &str) -> Vec<Entry<'t>> {
        let mut at = at;
        while !at.is_empty() {
            at = folder(at);
            let text = join(at, "Cargo.toml").and_then(|path| tree.text(&path)).unwrap_or_default();
            let entries = manifest::entries(text);
            if entries.iter().any(|entry| entry.section.starts_with("workspace")) {
                return entries;
            }
        }
        Vec::new()
    }

    fn of_package(&self, key: &str) -> Option<&Entry<'t>> {
        self.entries.iter().find(|entry| entry.section == "package" && entry.key == key)
    }

    /// The version of the package, from its manifest or from its workspace.
    fn version(&self) -> Option<&'t str> {
        let own = self.of_package("version")?.value;
        let version = if own == "true" {
            let mut entries = self.workspace.iter();
            entries.find(|entry| entry.section == "workspace.package" && entry.key == "version")?.value
        } else {
            own
        };
        Some(version.trim_matches('"'))
    }

    /// If `entry` is a dependency that the manifest of the workspace has, too, returns the entry there.
    fn shared(&self, entry: &Entry<'t>) -> Option<&Entry<'t>> {
        self.workspace.iter().find(|shared| shared.section == "workspace.dependencies" && shared.key == entry.key)
    }

    /// The name of the package that an entry is about.
    fn package_of(&self, entry: &Entry<'t>) -> &'t str {
        let shared = self.shared(entry).and_then(Entry::renamed);
        entry.renamed().or(shared).unwrap_or(entry.key)
    }

    /// Returns the requirement that the entry states. If the entry refers to its workspace, returns the
    /// requirement that the workspace states.
    fn asked_by(&self, entry: &Entry<'t>) -> &'t str {
        let is_shared = entry.value == "true" || entry.value.contains("workspace = true");
        let shared = self.shared(entry).filter(|_| is_shared && !entry.value.contains("optional = true"));
        shared.map_or(entry.value, |shared| shared.value)
    }
}

/// Reads the packages of a lock file.
fn packages(text: &str) -> Vec<Locked<'_>> {
    let mut packages: Vec<Locked<'_>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("name = ") {
            let (name, line) = (name.trim_matches('"'), index + 1);
            packages.push(Locked { line, name, version: "", is_fetched: false, dependencies: Vec::new() });
        }
        let Some(package) = packages.last_mut() else { continue };
        if let Some(version) = line.strip_prefix("version = ") {
            package.version = version.trim_matches('"');
        }
        package.is_fetched |= line.starts_with("source = ");
        // The line of a dependency has a name. If several packages have that name, it also has a version.
        if let Some(dependency) = line.strip_prefix(" \"") {
            package.dependencies.push(dependency.split(['"', ' ']).next().expect("split gives one part at least"));
        }
    }
    packages
}

/// The version that a dependency asks for, if it is only a number such as `1.2`.
fn requirement(asked: &str) -> Option<&str> {
    let quoted = asked.strip_prefix('"').or_else(|| asked.split_once("version = \"").map(|(_, version)| version))?;
    let version = quoted.split('"').next()?;
    version.chars().all(|c| c.is_ascii_digit() || c == '.').then_some(version)
}

/// Whether `version` is at least as new as the version that is asked for, without a breaking change between the two.
fn fits(asked: &str, version: &str) -> bool {
    let numbers = |version: &str| {
        let plain = version.split(['-', '+']).next().expect("split gives one part at least");
        plain.split('.').map(|number| number.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>()
    };
    let (asked, version) = (numbers(asked), numbers(version));
    // The number that must stay the same is the first that is not zero. If all numbers are zero, it is the last
    // number that was written.
    let breaking = asked.iter().position(|number| *number > 0).unwrap_or(asked.len() - 1);
    asked[..=breaking] == version[..=breaking.min(version.len() - 1)] && version >= asked
}

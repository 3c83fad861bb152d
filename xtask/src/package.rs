//! `cargo x package`: packs all packages as they are published, and checks that each of them says what a registry
//! shows of it, that cargo would upload it, and that it builds from its package.
//!
//! `cargo package` could build the packages itself. But when one of them needs another, cargo takes the latter for
//! a package of the registry, whose content never changes. So a second run, after a change of the sources, would
//! still build the old sources of the latter. Therefore this command unpacks the packages and checks them in a
//! separate workspace.

#[cfg(test)]
mod tests;

use crate::history::output;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The files that each package has besides its sources.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Which packages are built from what was packed. All are packed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Built {
    /// Those that a build without `--package` builds.
    Default,
    /// Also the query engine and object storage, which take minutes.
    All,
}

/// A package that is published.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    /// Whether a build without `--package` builds it.
    is_default: bool,
    /// What its manifest lacks.
    missing: Vec<&'static str>,
    /// Whether it names the address of the repository.
    has_repository: bool,
}

/// Packs and checks all packages.
pub fn run(root: &Path, built: Built) -> ExitCode {
    let checked = published(root).and_then(|packages| {
        complete(&packages)?;
        pack(root, &packages)?;
        check(root, &packages, built)?;
        Ok(packages)
    });
    match checked {
        Ok(packages) => {
            println!("package: {} packages are in target/package, and cargo would upload them", packages.len());
            if packages.iter().any(|package| !package.has_repository) {
                println!("package: before the first upload, set `repository` in [workspace.package] of Cargo.toml");
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("package: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The packages of the workspace that are published.
fn published(root: &Path) -> Result<Vec<Package>, String> {
    let mut command = cargo(root);
    let metadata = output(command.args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata = serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(published_in(&metadata, |manifest, file| manifest.with_file_name(file).is_file()))
}

/// The published packages in what `cargo metadata` prints. `has` says whether a file is beside a manifest.
fn published_in(metadata: &Value, has: impl Fn(&Path, &str) -> bool) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let default = list(&metadata["workspace_default_members"]);
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    // `publish = false` is an empty list of registries.
    let packages = list(&metadata["packages"]).into_iter().filter(|package| package["publish"].is_null());
    packages
        .map(|package| {
            let mut missing = Vec::new();
            for field in ["description", "license", "documentation", "keywords", "categories"] {
                if !is_set(&package[field]) {
                    missing.push(field);
                }
            }
            let has_features = package["features"].as_object().is_some_and(|features| !features.is_empty());
            if has_features && package["metadata"]["docs"]["rs"].is_null() {
                missing.push("[package.metadata.docs.rs], which says with which features docs.rs documents it");
            }
            let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
            missing.extend(LICENCES.into_iter().filter(|licence| !has(manifest, licence)));
            Package {
                name: package["name"].as_str().unwrap_or_default().to_owned(),
                is_default: default.contains(&package["id"]),
                missing,
                has_repository: is_set(&package["repository"]),
            }
        })
        .collect()
}

/// Fails if a manifest lacks something. The address of the repository may still be unknown.
fn complete(packages: &[Package]) -> Result<(), String> {
    let lacking = packages.iter().filter(|package| !package.missing.is_empty());
    let lines: Vec<_> =
        lacking.map(|package| format!("{} has no {}", package.name, package.missing.join(", no "))).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\npackage: ")) }
}

/// Writes the packages to `target/package`, and lets cargo do what it would do before it uploads them.
fn pack(root: &Path, packages: &[Package]) -> Result<(), String> {
    let folder = root.join("target/package");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    for words in [["package"].as_slice(), &["publish", "--dry-run"]] {
        let mut command = cargo(root);
        command.args(words).args(["--quiet", "--no-verify", "--allow-dirty", "--target-dir"]).arg(root.join("target"));
        packages.iter().for_each(|package| {
            command.args(["--package", &package.name]);
        });
        output(&mut command)?;
    }
    Ok(())
}

/// Unpacks the packages and checks them together, with the versions of `Cargo.lock`.
fn check(root: &Path, packages: &[Package], built: Built) -> Result<(), String> {
    let folder = root.join("target/package");
    let tree = folder.join("tree");
    fs::create_dir_all(&tree).map_err(|error| format!("cannot create {}: {error}", tree.display()))?;
    let manifest = fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let version = crate::semver::version(&manifest).ok_or("Cargo.toml names no version")?;
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"larch-*\"]\n\n[patch.crates-io]\n".to_owned();
    for Package { name, .. } in packages {
        let archive = folder.join(format!("{name}-{version}.crate"));
        // All files in an archive have the same modification time. With this time, cargo would not notice that a
        // file is newer than the last build. So the files get the present time.
        output(Command::new("tar").args(["--touch", "-xzf"]).arg(archive).arg("-C").arg(&tree))?;
        manifest.push_str(&format!("{name} = {{ path = \"{name}-{version}\" }}\n"));
    }
    let failed = |error| format!("cannot write to {}: {error}", tree.display());
    fs::write(tree.join("Cargo.toml"), manifest).map_err(failed)?;
    fs::copy(root.join("Cargo.lock"), tree.join("Cargo.lock")).map_err(failed)?;
    let mut command = cargo(&tree);
    command.args(["check", "--quiet", "--lib", "--bins", "--target-dir"]).arg(root.join("target/packages"));
    packages.iter().filter(|package| package.is_default || built == Built::All).for_each(|package| {
        command.args(["--package", &package.name]);
    });
    command.args([
        "--features",
        if built == Built::All { "larch-cli/bench,larch-cli/parquet" } else { "larch-cli/bench" },
    ]);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("the packages in {} do not build", tree.display())),
        Err(error) => Err(format!("cannot start cargo: {error}; install Rust or put cargo in PATH")),
    }
}

fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

//! `cargo x package`: packs the libraries as they are published, and checks that each of them builds from its
//! package.
//!
//! `cargo package` could build the packages itself. But when one of them needs another, cargo takes the latter for
//! a package of the registry, whose content never changes. So a second run, after a change of the sources, would
//! still build the old sources of the latter. Therefore this command unpacks the packages and checks them in a
//! separate workspace.

use crate::history::output;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The packages. Each package comes after the packages that it needs.
const PACKAGES: [&str; 6] = ["larch-os", "larch-pages", "larch-sst", "larch-db", "larch-rows", "larch-extractors"];

/// Packs and checks all packages.
pub fn run(root: &Path) -> ExitCode {
    match pack(root).and_then(|()| check(root)) {
        Ok(()) => {
            println!("package: {} build from their packages, which are in target/package", PACKAGES.join(", "));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("package: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the packages to `target/package`.
fn pack(root: &Path) -> Result<(), String> {
    let packages = root.join("target/package");
    if packages.exists() {
        fs::remove_dir_all(&packages).map_err(|error| format!("cannot remove {}: {error}", packages.display()))?;
    }
    let mut command = cargo(root);
    command.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--target-dir"]).arg(root.join("target"));
    PACKAGES.iter().for_each(|package| {
        command.args(["--package", package]);
    });
    output(&mut command).map(drop)
}

/// Unpacks the packages and checks them together, with the versions of `Cargo.lock`.
fn check(root: &Path) -> Result<(), String> {
    let tree = root.join("target/package/tree");
    fs::create_dir_all(&tree).map_err(|error| format!("cannot create {}: {error}", tree.display()))?;
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"larch-*\"]\n\n[patch.crates-io]\n".to_owned();
    for package in PACKAGES {
        let files =
            fs::read_dir(root.join("target/package")).map_err(|error| format!("cannot list packages: {error}"))?;
        let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
        let name = names.into_iter().find(|name| name.starts_with(package) && name.ends_with(".crate"));
        let name = name.ok_or_else(|| format!("cargo wrote no package {package}"))?;
        let archive = root.join("target/package").join(&name);
        // All files in an archive have the same modification time. With this time, cargo would not notice that a
        // file is newer than the last build. So the files get the present time.
        output(Command::new("tar").args(["--touch", "-xzf"]).arg(archive).arg("-C").arg(&tree))?;
        manifest.push_str(&format!("{package} = {{ path = \"{}\" }}\n", name.trim_end_matches(".crate")));
    }
    let failed = |error| format!("cannot write to {}: {error}", tree.display());
    fs::write(tree.join("Cargo.toml"), manifest).map_err(failed)?;
    fs::copy(root.join("Cargo.lock"), tree.join("Cargo.lock")).map_err(failed)?;
    let mut command = cargo(&tree);
    command.args(["check", "--quiet", "--workspace", "--lib", "--target-dir"]).arg(root.join("target/packages"));
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

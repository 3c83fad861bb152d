//! `cargo x archive`: what a release offers for download: the program with its manual pages and completions in an
//! archive and in a package for Debian, and the folder in which `packaging/Containerfile` is built.
//!
//! The program of a release needs no library, so it runs on each Linux of its processor. `--check` packs the program
//! that the tests have built, which is quick, and runs what it has packed.

use crate::history::output;
use crate::tools::{cargo, target_of};
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where shells look for completions, and what `larch completions` calls the shell.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/larch"),
    ("fish", "share/fish/vendor_completions.d/larch.fish"),
    ("zsh", "share/zsh/site-functions/_larch"),
];

/// Texts of the repository that each archive has.
const TEXTS: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Builds, packs and, with `check`, tries what was packed.
pub fn run(root: &Path, check: bool) -> ExitCode {
    let folder = root.join("target/archives");
    let made = empty(&folder).and_then(|()| {
        let program = if check { build(root, &["--features", "bench"], "debug")? } else { build_static(root)? };
        let packed = Packed::make(root, &folder, &program)?;
        if check { packed.check(&folder.join("tried")) } else { Ok(()) }.map(|()| packed)
    });
    match made {
        Ok(packed) => {
            println!("archive: {}", packed.archive.display());
            println!("archive: {}", packed.debian.display());
            println!("archive: {}, for packaging/Containerfile", packed.container.display());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("archive: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Builds `larch` with the profile `dist`, with the C library in the program.
fn build_static(root: &Path) -> Result<PathBuf, String> {
    // With a target, cargo does not give these flags to build scripts, which need a dynamic C library.
    let target = format!("{ARCH}-unknown-linux-gnu");
    let flags = format!("target.{target}.rustflags=[\"-C\", \"target-feature=+crt-static\"]");
    build(root, &["--profile", "dist", "--target", &target, "--config", &flags], &format!("{target}/dist"))
}

/// Builds `larch`. Returns its path, which is in the folder `kind` of cargo's target folder.
fn build(root: &Path, arguments: &[&str], kind: &str) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.current_dir(root).args(["build", "--quiet", "--locked", "--package", "larch-cli"]).args(arguments);
    output(&mut command)?;
    Ok(target_of(root, std::env::var_os("CARGO_TARGET_DIR")).join(kind).join("larch"))
}

/// What is offered for download.
struct Packed {
    version: String,
    archive: PathBuf,
    debian: PathBuf,
    container: PathBuf,
}

impl Packed {
    fn make(root: &Path, folder: &Path, program: &Path) -> Result<Packed, String> {
        let version = output(Command::new(program).arg("--version"))?;
        let version = version.trim().strip_prefix("larch ").ok_or("`larch --version` prints no version")?.to_owned();
        let name = format!("larch-{version}-{ARCH}-linux");
        let tree = folder.join(&name);
        install(root, program, &tree)?;
        let archive = folder.join(format!("{name}.tar.gz"));
        // The same files make the same archive, byte by byte.
        let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=2000-01-01", "-czf"];
        output(Command::new("tar").args(same).arg(&archive).arg("-C").arg(folder).arg(&name))?;
        let container = folder.join("container");
        empty(&container)?;
        copy(&tree.join("bin/larch"), &container.join("larch"))?;
        for text in ["LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&root.join(text), &container.join(text))?;
        }
        let debian = pack_for_debian(root, folder, &tree, &version)?;
        Ok(Packed { version, archive, debian, container })
    }

    /// Unpacks both packages in `tried`, and uses the program of each.
    fn check(&self, tried: &Path) -> Result<(), String> {
        let (plain, debian) = (tried.join("archive"), tried.join("debian"));
        empty(&plain)?;
        output(Command::new("tar").arg("-xzf").arg(&self.archive).args(["--strip-components=1", "-C"]).arg(&plain))?;
        output(Command::new("dpkg-deb").arg("--extract").arg(&self.debian).arg(&debian))?;
        for installed in [plain, debian.join("usr")] {
            let program = installed.join("bin/larch");
            let database = installed.join("database");
            for (arguments, expected) in [
                (["put", "people", "lovelace", "1815"].as_slice(), ""),
                (["get", "people", "lovelace"].as_slice(), "1815\n"),
            ] {
                let mut command = Command::new(&program);
                command.arg(arguments[0]).arg(&database).args(&arguments[1..]);
                let printed = output(&mut command)?;
                if printed != expected {
                    return Err(format!("{command:?} printed {printed:?} and not {expected:?}"));
                }
            }
            for file in ["share/man/man1/larch.1", "share/man/man1/larch-get.1"] {
                let length = fs::metadata(installed.join(file)).map_or(0, |file| file.len());
                if length == 0 {
                    return Err(format!("{} has no {file}", installed.display()));
                }
            }
        }
        let control = output(Command::new("dpkg-deb").args(["--field"]).arg(&self.debian).arg("Version"))?;
        if control.trim() != self.version {
            return Err(format!("{} is of version {control}", self.debian.display()));
        }
        Ok(())
    }
}

/// Lays out the program and what belongs to it below `tree` as below `/usr`.
fn install(root: &Path, program: &Path, tree: &Path) -> Result<(), String> {
    let (binaries, manual, texts) = (tree.join("bin"), tree.join("share/man/man1"), tree.join("share/doc/larch"));
    for folder in [&binaries, &manual, &texts] {
        create(folder)?;
    }
    let installed = binaries.join("larch");
    copy(program, &installed)?;
    output(Command::new("strip").arg(&installed))?;
    output(Command::new(program).arg("man").arg(&manual))?;
    for (shell, place) in COMPLETIONS {
        let place = tree.join(place);
        create(place.parent().expect("a place is in a folder"))?;
        write(&place, &output(Command::new(program).args(["completions", shell]))?)?;
    }
    TEXTS.iter().try_for_each(|text| copy(&root.join(text), &texts.join(text)))
}

/// Packs `tree` for Debian. The package needs the C library that the program was linked with, if any.
fn pack_for_debian(root: &Path, folder: &Path, tree: &Path, version: &str) -> Result<PathBuf, String> {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let staged = folder.join("debian");
    create(&staged.join("DEBIAN"))?;
    output(Command::new("cp").arg("-r").arg(tree).arg(staged.join("usr")))?;
    let copyright = staged.join("usr/share/doc/larch/copyright");
    write(&copyright, &fs::read_to_string(root.join("LICENSE-MIT")).map_err(|error| format!("LICENSE-MIT: {error}"))?)?;
    let needs = match needed_c_library(&tree.join("bin/larch"))? {
        Some(library) => format!("Depends: libc6 (>= {library}), libgcc-s1\n"),
        None => String::new(),
    };
    write(
        &staged.join("DEBIAN/control"),
        &format!(
            "Package: larch\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: The authors of Larch\nSection: database\nPriority: optional\n{needs}Description: ordered, transactional \
             storage engine for data larger than memory\n The command line of Larch imports, reads, writes, inspects, \
             copies and\n repairs its databases.\n"
        ),
    )?;
    let package = folder.join(format!("larch_{version}_{architecture}.deb"));
    output(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&staged).arg(&package))?;
    Ok(package)
}

/// The oldest version of the C library that has all symbols which `program` asks for; `None` if it asks for none.
fn needed_c_library(program: &Path) -> Result<Option<String>, String> {
    let symbols = output(Command::new("readelf").args(["--dyn-syms", "--wide"]).arg(program))?;
    Ok(newest_c_library(&symbols))
}

fn newest_c_library(symbols: &str) -> Option<String> {
    let named = symbols.split("GLIBC_").skip(1);
    let versions = named.filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>()
    });
    versions.max().map(|version| version.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// Makes `folder`, or removes what is in it.
fn empty(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    create(folder)
}

fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))
}

fn write(to: &Path, text: &str) -> Result<(), String> {
    fs::write(to, text).map_err(|error| format!("cannot write {}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::newest_c_library;

    #[test]
    fn versions_of_the_c_library_are_compared_as_numbers() {
        let symbols = "1: FUNC UND read@GLIBC_2.4 (2)\n2: FUNC UND write@GLIBC_2.34 (3)\n3: FUNC UND unwind@GCC_3.0 (4)\n4: FUNC UND open@GLIBC_2.2.5";
        assert_eq!(newest_c_library(symbols).as_deref(), Some("2.34"));
        assert_eq!(newest_c_library("no symbols\n"), None);
    }
}

//! `cargo x compat`: a program of a release and a program of this tree open databases that the other program wrote.
//! The release is a commit that `CHANGELOG.md` names; its program is built from history.
//!
//! ```text
//! this tree writes under compat ─► the release reads all of it, and writes ─► this tree reads all of it, and writes
//! under compat ─► the release reads all of it
//! ```

use crate::history::{self, output};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo x compat [RELEASE] [--commit COMMIT]

  RELEASE          as in CHANGELOG.md; default 0.1
  --commit COMMIT  what the release is, where CHANGELOG.md does not name it yet

cargo x compat --write-golden RELEASE

  writes the small database of this tree that is kept for ever as one of RELEASE, under testkit/tests/testdata
";

/// The folder of the databases that each release wrote.
const GOLDEN: &str = "testkit/tests/testdata/releases";

/// The program of a release is built without optimization, because it only reads a few rows.
const UNOPTIMIZED: [(&str, &str); 2] = [("CARGO_PROFILE_DEV_OPT_LEVEL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0")];

/// Runs the command.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let outcome = match arguments {
        [] => compare(root, "0.1", None),
        ["--commit", commit] => compare(root, "0.1", Some(commit)),
        ["--write-golden", release] => write_golden(root, release),
        [release] if !release.starts_with('-') => compare(root, release, None),
        [release, "--commit", commit] => compare(root, release, Some(commit)),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(said) => {
            println!("compat: {said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("compat: {why}");
            ExitCode::FAILURE
        }
    }
}

fn write_golden(root: &Path, release: &str) -> Result<String, String> {
    let folder = root.join(GOLDEN).join(release);
    if folder.exists() {
        let folder = folder.display();
        return Err(format!("{folder} is there; what a release wrote is never written again"));
    }
    let specimen = Programs::build_in(root, &root.join("target"), &["larch-testkit"], &[])?.join("specimen");
    fs::create_dir_all(root.join(GOLDEN)).map_err(|error| format!("cannot create {GOLDEN}: {error}"))?;
    output(Command::new(specimen).arg("write").arg(&folder).arg(release))?;
    // Only a process that has the database open needs the lock file, and the file is empty. So the specimen does
    // not keep it.
    fs::remove_file(folder.join("db/LOCK")).map_err(|error| format!("cannot remove the lock: {error}"))?;
    Ok(format!("{} is written; add it to the commit", folder.display()))
}

/// The program of this tree, the program of the release, and the name of the release.
struct Programs {
    ours: PathBuf,
    theirs: PathBuf,
    release: String,
}

fn compare(root: &Path, release: &str, commit: Option<&str>) -> Result<String, String> {
    let commit = match commit {
        Some(commit) => commit.to_owned(),
        None => history::commit_of(&history::changes(root)?, release)?,
    };
    let work = root.join("target/compat");
    let ours = Programs::build_in(root, &root.join("target"), &["larch-cli", "larch-testkit"], &[])?;
    let theirs = build_from_history(root, &work, &commit)?;
    let programs = Programs { ours: ours.join("larch"), theirs: theirs.join("larch"), release: release.to_owned() };
    let databases = work.join("databases");
    remove(&databases)?;
    fs::create_dir_all(&databases).map_err(|error| format!("cannot create {}: {error}", databases.display()))?;
    let tables = programs.go_back_and_forth(&ours.join("specimen"), &databases)?;
    remove(&databases)?;
    Ok(format!("{release} ({commit}) and this tree read each other's {tables} tables"))
}

impl Programs {
    /// Builds all binaries of `packages` in the tree at `root`, with these environment variables. Returns the folder
    /// of the binaries.
    fn build_in(root: &Path, target: &Path, packages: &[&str], variables: &[(&str, &str)]) -> Result<PathBuf, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--bins"]).current_dir(root).arg("--target-dir").arg(target);
        command.envs(variables.iter().copied());
        packages.iter().for_each(|package| {
            command.args(["--package", package]);
        });
        match command.status() {
            Ok(status) if status.success() => Ok(target.join("debug")),
            Ok(_) => Err(format!("the programs in {} do not build", root.display())),
            Err(error) => Err(format!("cannot start cargo: {error}; install Rust or put cargo in PATH")),
        }
    }

    /// Writes a specimen with this tree's program. Then the release's program puts rows into it and compacts it, and
    /// after that this tree's program does the same. After each of the three, both programs check the specimen. Returns
    /// the number of tables that were compared.
    fn go_back_and_forth(&self, specimen: &Path, databases: &Path) -> Result<usize, String> {
        output(Command::new(specimen).arg("write").arg(databases.join("written")).arg(&self.release))?;
        let db = databases.join("written/db");
        let tables = self.same_rows(&db, &databases.join("a"))?;
        let put = |program: &Path, key: &str, options: &[&str]| {
            output(Command::new(program).arg("put").arg(&db).args(["plain", key, "as said"]).args(options))
        };
        put(&self.theirs, "went back", &[])?;
        output(Command::new(&self.theirs).arg("compact").arg(&db))?;
        put(&self.theirs, "and wrote", &[])?;
        self.same_rows(&db, &databases.join("b"))?;
        put(&self.ours, "went on", &["--compat", &self.release])?;
        output(Command::new(&self.ours).arg("compact").arg(&db).args(["--compat", &self.release]))?;
        put(&self.ours, "and wrote more", &["--compat", &self.release])?;
        self.same_rows(&db, &databases.join("c"))?;
        let rows = output(Command::new(&self.theirs).arg("scan").arg(&db).arg("plain"))?;
        let written = ["went back", "and wrote", "went on", "and wrote more"];
        match written.iter().find(|key| !rows.contains(**key)) {
            None => Ok(tables),
            Some(key) => Err(format!("the row {key:?} is missing in {}", db.display())),
        }
    }

    /// Lets both programs check copies of `db`, and compares all rows that they read. Returns the number of tables.
    fn same_rows(&self, db: &Path, beside: &Path) -> Result<usize, String> {
        let copies = [(&self.ours, "ours"), (&self.theirs, "theirs")].map(|(program, name)| {
            let copy = beside.with_extension(name);
            copy_folder(db, &copy)?;
            output(Command::new(program).arg("check").arg(&copy))?;
            let tables = output(Command::new(program).arg("tables").arg(&copy))?;
            let names: Vec<String> =
                tables.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name.to_owned()).collect();
            let scan = |table: &String| output(Command::new(program).arg("scan").arg(&copy).arg(table));
            let rows = names.iter().map(scan).collect::<Result<Vec<_>, _>>()?;
            Ok::<_, String>((names, rows))
        });
        let [ours, theirs] = copies;
        let ((names, ours), (their_names, theirs)) = (ours?, theirs?);
        if names != their_names {
            return Err(format!("this tree lists the tables {names:?}, the release {their_names:?}"));
        }
        match names.iter().zip(ours.iter().zip(&theirs)).find(|(_, (a, b))| a != b) {
            None if names.is_empty() => Err(format!("{} has no tables", db.display())),
            None => Ok(names.len()),
            Some((name, _)) => Err(format!("table {name} of {} has other rows for each program", beside.display())),
        }
    }
}

/// Builds the program of `commit` and then removes its sources. Returns the folder with the binary.
fn build_from_history(root: &Path, work: &Path, commit: &str) -> Result<PathBuf, String> {
    let tree = work.join("tree");
    history::in_tree_of(root, &tree, commit, || {
        Programs::build_in(&tree, &work.join("build"), &["larch-cli"], &UNOPTIMIZED)
    })
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot copy {} to {}: {error}", from.display(), to.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(failed)?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}

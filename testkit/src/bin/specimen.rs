//! Writes and checks small databases of a release. It is called by `cargo x compat`.

use larch::options::Release;
use os::Machine;
use std::path::Path;
use std::process::ExitCode;
use testkit::specimen;

const USAGE: &str = "\
specimen write DIR RELEASE   a small database with all features, for readers of RELEASE and later ones
specimen check DIR           that the database in DIR has the rows that the text beside it says
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let machine = Machine::real();
    match words.as_slice() {
        ["write", folder, release] => write(&machine, Path::new(folder), release),
        ["check", folder] => {
            specimen::check(&machine, Path::new(folder), true);
            specimen::check(&machine, Path::new(folder), false);
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn write(machine: &Machine, folder: &Path, release: &str) -> ExitCode {
    let release: Release = match release.parse() {
        Ok(release) => release,
        Err(why) => {
            eprintln!("specimen: {why}");
            return ExitCode::from(2);
        }
    };
    let made = machine.disk.create_dir(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()));
    let written = made.and_then(|()| specimen::write(machine, folder, release).map_err(|error| error.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("specimen: {why}; remove {} and try again", folder.display());
            ExitCode::FAILURE
        }
    }
}

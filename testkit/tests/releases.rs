//! Databases that earlier releases wrote stay readable for ever. `testdata/releases` has a folder for each release,
//! written by `cargo x compat --write-golden` and never again.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the databases lie in the source tree")]

use larch::options::Release;
use os::sim::SimDisk;
use os::{Access, Disk, Machine};
use std::path::{Path, PathBuf};
use testkit::specimen;

fn folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/releases");
    let entries = std::fs::read_dir(folder).expect("it is in the source tree");
    entries.map(|entry| entry.expect("it can be listed").path()).collect()
}

/// Copies `folder` to a disk of its own.
fn copied(folder: &Path, disk: &SimDisk, to: &Path) {
    disk.create_dir(to).expect("the disk works");
    for entry in std::fs::read_dir(folder).expect("it is in the source tree") {
        let from = entry.expect("it can be listed").path();
        let to = to.join(from.file_name().expect("it has a name"));
        if from.is_dir() {
            copied(&from, disk, &to);
        } else {
            let file = disk.open(&to, Access::Create).expect("the disk works");
            file.write_at(&std::fs::read(&from).expect("it can be read"), 0).expect("the disk works");
        }
    }
}

#[test]
fn a_database_of_every_release_is_read_and_taken_over() {
    let came_out = Release::ALL.iter().filter(|release| **release != Release::NEWEST).count();
    assert!(folders().len() >= came_out, "one for each release; the newest has one once it is out");
    for folder in folders() {
        let (machine, disk) = Machine::simulated(1);
        copied(&folder, &disk, Path::new("release"));
        specimen::check(&machine, Path::new("release"), true);
        // Twice: the second check also reads what the first open has written.
        specimen::check(&machine, Path::new("release"), false);
        specimen::check(&machine, Path::new("release"), false);
    }
}

#[test]
fn a_database_of_every_release_is_read_in_its_place_and_left_as_it_is() {
    for folder in folders() {
        let listed = || {
            let entries = std::fs::read_dir(folder.join("db")).expect("it is in the source tree");
            let mut files: Vec<_> = entries
                .map(|entry| entry.expect("it can be listed"))
                .map(|entry| (entry.path(), entry.metadata().expect("it is there").len()))
                .collect();
            files.sort();
            files
        };
        let before = listed();
        specimen::check(&Machine::real(), &folder, true);
        assert_eq!(listed(), before);
    }
}

#[test]
fn a_specimen_that_is_written_today_has_the_rows_that_went_in() {
    for release in Release::ALL {
        let (machine, disk) = Machine::simulated(1);
        disk.create_dir(Path::new("today")).expect("the disk works");
        specimen::write(&machine, Path::new("today"), *release).expect("the disk works");
        specimen::check(&machine, Path::new("today"), true);
        specimen::check(&machine, Path::new("today"), false);
    }
}

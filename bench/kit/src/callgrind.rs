//! Counts instructions by running the program that asks for them a second time, under valgrind's callgrind. This
//! module does not know what is counted.
//!
//! Counts do not depend on other work of the machine, so two versions of a program can be compared on any machine.

use crate::Scratch;
use crate::hints::on_debian;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

/// Runs `work`, whose instructions are counted. This function is never inlined, so that valgrind finds it by name.
#[inline(never)]
pub fn counted_region(work: &mut dyn FnMut()) {
    work();
    std::hint::black_box(&work);
}

/// Runs this program with `arguments` under callgrind. Returns the number of instructions of each [`counted_region`]
/// that the program enters, in order.
///
/// # Errors
///
/// Returns an error if valgrind is missing, or if the program failed when callgrind ran it. The error is a sentence.
pub fn count(arguments: &[&OsStr], scratch: &Scratch) -> Result<Vec<u64>, String> {
    const NAME: &str = "callgrind";
    let region = concat!(module_path!(), "::counted_region");
    let program = std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
    // Under Valgrind 3.19, no other thread runs while one thread waits for an io_uring. The counted work reads
    // nothing from disk.
    let output = Command::new("valgrind")
        .env("LARCH_READS", "caller")
        .arg("--tool=callgrind")
        .arg("--collect-atstart=no")
        .arg(format!("--toggle-collect={region}"))
        .arg(format!("--dump-after={region}"))
        .arg(format!("--callgrind-out-file={}", scratch.join(NAME).display()))
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind does not start ({error}); {}", on_debian("valgrind")))?;
    if !output.status.success() {
        // Valgrind's own lines begin with `==`.
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("==") && !line.is_empty()).collect();
        return Err(format!("under valgrind, {}: {}", output.status, said.join("; ")));
    }
    // Valgrind writes one file each time the program leaves the region. The files are numbered from 1.
    let mut counts = Vec::new();
    while let Ok(text) = fs::read_to_string(scratch.join(format!("{NAME}.{}", counts.len() + 1))) {
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
        match total.and_then(|total| total.trim().parse().ok()) {
            Some(total @ 1..) => counts.push(total),
            _ => break,
        }
    }
    for i in 1.. {
        if fs::remove_file(scratch.join(format!("{NAME}.{i}"))).is_err() {
            break;
        }
    }
    Ok(counts)
}

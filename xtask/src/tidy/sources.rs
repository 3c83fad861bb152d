//! Checks what a single file must not contain, and the line that it must begin with.

use super::Finding;
use super::source::Source;
use super::tree::{LAYERS, Tree, folder, join};

// Each word is joined from two halves, so that a search of the tree for the word does not find this file.
const NOTES: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];
const MACHINES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "bash")];
const SLEEP: &str = concat!("thread::", "sleep");

/// Every file with shipped code begins with `//!`.
pub fn files_say_what_they_are(tree: &Tree) -> Vec<Finding> {
    let mute = tree.texts(".rs").filter(|(path, text)| !is_exempt(tree, path) && !text.starts_with("//!"));
    let what = "the first line is not `//!`: say what the file is and what it does not know";
    mute.map(|(path, _)| Finding::new(path, 1, what)).collect()
}

/// Nothing is left unfinished, no test is switched off without a reason, and no code except `os` waits by sleeping.
pub fn no_leftovers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".rs") {
        let source = Source::new(text);
        let mut found = |offset: usize, what: String| findings.push(Finding::new(path, source.line(offset), what));
        for name in ["dbg", "todo", "unimplemented"] {
            for at in words(&source.code, &format!("{name}!")) {
                found(at, format!("`{name}!` is left over"));
            }
        }
        for note in NOTES {
            for at in words(&source.comments, note) {
                found(at, format!("{note} is left over: do it, or write an issue"));
            }
        }
        for at in words(&source.code, "ignore") {
            if is_attribute(&source.code[..at]) && !source.code[at + "ignore".len()..].trim_start().starts_with('=') {
                found(at, "an ignored test says why: `#[ignore = \"…\"]`".to_owned());
            }
        }
        if !path.starts_with("engine/os/") {
            for at in words(&source.code, SLEEP) {
                found(at, "sleeping is for `os::Clock` only; wait for what should happen".to_owned());
            }
        }
    }
    findings
}

/// Crates above `os` take their atomics from `os::sync`. Clippy cannot check this, because it looks through
/// re-exports.
pub fn atomics_come_from_os(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let above = |path: &str| {
        let is_engine = path.starts_with("testkit/") || LAYERS.iter().any(|layer| path.starts_with(layer));
        is_engine && !path.starts_with("engine/os/") && !path.starts_with("bench/")
    };
    for (path, text) in tree.texts(".rs").filter(|(path, _)| above(path)) {
        let source = Source::new(text);
        let starts = ["std::sync::", "core::sync::"]
            .into_iter()
            .flat_map(|start| words(&source.code, start).map(move |at| (at, at + start.len())).collect::<Vec<_>>());
        for (at, after) in starts {
            let names = source.code[after..].split(';').next().expect("split gives one part at least");
            let mut atomics = words(names, "atomic");
            if atomics.any(|at| at == 0 || names.starts_with('{')) {
                findings.push(Finding::new(path, source.line(at), "take atomics from `os::sync::atomic`"));
            }
        }
    }
    findings
}

/// No file names a folder of the machine on which it was written.
pub fn no_paths_of_a_machine(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts("").filter(|(path, _)| !path.starts_with(".ci/")) {
        for (index, line) in text.lines().enumerate() {
            let is_start = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.".contains(c));
            if let Some(found) =
                MACHINES.iter().find(|machine| line.match_indices(**machine).any(|(at, _)| is_start(at)))
            {
                findings.push(Finding::new(path, index + 1, format!("`{found}` is a path of one machine")));
            }
        }
    }
    findings
}

/// Whether a file is a test, an example, a benchmark or a fuzz target, or the build script (`build.rs`) of a
/// package.
fn is_exempt(tree: &Tree, path: &str) -> bool {
    let name = path.rsplit('/').next().expect("split gives one part at least");
    let is_test = |part: &str| matches!(part, "tests" | "tests.rs" | "benches" | "examples" | "fuzz_targets");
    let is_build_script =
        name == "build.rs" && join(folder(path), "Cargo.toml").is_some_and(|path| tree.has_file(&path));
    is_build_script || path.split('/').any(is_test)
}

/// The offsets at which `word` stands by itself and not inside a longer word.
fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_inside = move |at: usize| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        before.ends_with(is_word) || (word.ends_with(is_word) && after.starts_with(is_word))
    };
    text.match_indices(word).map(|(at, _)| at).filter(move |at| !is_inside(*at))
}

/// Whether the next word after the text `before` is the name of an attribute. This is so after `#[`, and inside
/// `#[cfg_attr(…, `.
fn is_attribute(before: &str) -> bool {
    let before = before.trim_end();
    let opened = before.rsplit_once("#[").map(|(_, inside)| inside);
    opened.is_some_and(|inside| inside.is_empty() || (inside.starts_with("cfg_attr") && !inside.contains(']')))
        && before.ends_with(['[', ','])
}

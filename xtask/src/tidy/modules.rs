//! Finds files that no `mod` declaration leads to. Such files look as if they were used, but are never compiled.

use super::source::Source;
use super::tree::{Tree, folder, join};
use super::{Finding, manifest};
use std::collections::BTreeSet;

/// Every `.rs` file in the `src` folder of a package belongs to one of its crates.
pub fn files_are_reachable(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.packages() {
        let Some(src) = join(package, "src") else { continue };
        let inside = format!("{src}/");
        let all: Vec<&str> = tree.texts(".rs").map(|(path, _)| path).filter(|path| path.starts_with(&inside)).collect();
        let reached = reached_from(tree, crate_roots(tree, package, &all));
        for path in all.into_iter().filter(|path| !reached.contains(*path)) {
            findings.push(Finding::new(path, 1, "no `mod` declaration leads to this file: declare it or delete it"));
        }
    }
    findings
}

/// Returns the root files of the package's crates. They are `lib.rs`, `main.rs`, the files in `src/bin`, and the
/// files that the manifest names with `path`.
fn crate_roots(tree: &Tree, package: &str, all: &[&str]) -> Vec<String> {
    let src = join(package, "src").expect("a package lies in the repository");
    let text = tree.text(&join(package, "Cargo.toml").expect("a package lies in the repository")).unwrap_or_default();
    let named = manifest::entries(text).into_iter().filter(|entry| entry.key == "path" && entry.section != "package");
    let named: BTreeSet<String> = named.filter_map(|entry| join(package, entry.value.trim_matches('"'))).collect();
    let is_root = |path: &str| {
        let below = path.strip_prefix(&format!("{src}/")).expect("the caller gives files of this package");
        let parts: Vec<&str> = below.split('/').collect();
        matches!(parts.as_slice(), ["lib.rs" | "main.rs"] | ["bin", _] | ["bin", _, "main.rs"]) || named.contains(path)
    };
    all.iter().filter(|path| is_root(path)).map(|path| (*path).to_owned()).collect()
}

fn reached_from(tree: &Tree, roots: Vec<String>) -> BTreeSet<String> {
    let mut reached: BTreeSet<String> = roots.iter().cloned().collect();
    let mut queue: Vec<(String, bool)> = roots.into_iter().map(|path| (path, true)).collect();
    while let Some((path, is_root)) = queue.pop() {
        let Some(text) = tree.text(&path) else { continue };
        for child in children(&path, is_root, text).into_iter().filter(|child| tree.has_file(child)) {
            if reached.insert(child.clone()) {
                queue.push((child, false));
            }
        }
    }
    reached
}

/// The files to which `mod name;` and `include!("…")` in the file `path` may lead. Some of them may not exist.
fn children(path: &str, is_root: bool, text: &str) -> Vec<String> {
    let source = Source::new(text);
    let here = folder(path);
    let name = path.rsplit('/').next().expect("split gives one part at least");
    let home = if is_root || name == "mod.rs" { here.to_owned() } else { path.trim_end_matches(".rs").to_owned() };

    let mut children = Vec::new();
    // The inline modules (`mod name { … }`) that are open at this point of the file. Each module has the depth of
    // braces outside it.
    let mut inline: Vec<(usize, &str)> = Vec::new();
    let mut depth = 0_usize;
    let mut named_path: Option<String> = None;
    let words = words(&source.code);
    for (index, &(at, word)) in words.iter().enumerate() {
        let following = |count: usize| words.get(index + count).map_or("", |(_, word)| *word);
        match word {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.pop_if(|(outside, _)| *outside == depth);
            }
            "path" if index >= 2 && words[index - 2].1 == "#" && words[index - 1].1 == "[" => {
                named_path = string_after(&text[at..]);
            }
            "include" if following(1) == "!" => {
                children.extend(string_after(&text[at..]).and_then(|file| join(here, &file)));
            }
            "mod" if following(2) == "{" => inline.push((depth, following(1))),
            "mod" if following(2) == ";" => {
                let around: String = inline.iter().map(|(_, name)| format!("{name}/")).collect();
                match named_path.take() {
                    Some(file) if inline.is_empty() => children.extend(join(here, &file)),
                    Some(file) => children.extend(join(&home, &format!("{around}{file}"))),
                    None => {
                        let child = following(1).trim_start_matches("r#");
                        children.extend(join(&home, &format!("{around}{child}.rs")));
                        children.extend(join(&home, &format!("{around}{child}/mod.rs")));
                    }
                }
            }
            _ => {}
        }
    }
    children
}

/// The words and single signs in code, with their offsets.
fn words(code: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(c) = code[at..].chars().next() {
        let bytes = match code[at..].find(|c| !is_word(c)) {
            Some(0) => c.len_utf8(),
            Some(bytes) => bytes,
            None => code.len() - at,
        };
        if !c.is_whitespace() {
            words.push((at, &code[at..at + bytes]));
        }
        at += bytes;
    }
    words
}

/// The contents of the first plain string literal in `text`.
fn string_after(text: &str) -> Option<String> {
    text.split('"').nth(1).map(String::from)
}

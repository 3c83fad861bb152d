//! All files of the repository, by path, with their text. This module does not know the rules.
//!
//! Paths are relative to the root and joined with `/`. Files that a `.gitignore` names are not part of the tree.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// The folders whose folders are crates of one layer.
pub const LAYERS: [&str; 4] = ["bench/", "cloud/", "engine/", "query/"];

/// All files of the repository, ordered by path.
pub struct Tree {
    /// For each path the text, or `None` if the file is not UTF-8.
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads the folder `root` and all folders below it. If reading fails, the error names the path.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        read_folder(root, "", &[".git".to_owned()], &mut files)?;
        Ok(Self { files })
    }

    /// A tree that exists only in memory.
    #[cfg(test)]
    pub fn from_texts<'t>(texts: impl IntoIterator<Item = (&'t str, String)>) -> Self {
        Self { files: texts.into_iter().map(|(path, text)| (path.to_owned(), Some(text))).collect() }
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The paths of all files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The paths and texts of the files whose names end with `ending`. Files that are not text are left out.
    pub fn texts(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)));
        texts.filter(move |(path, _)| path.ends_with(ending))
    }

    /// The text of a file. `None` if the file does not exist or is not text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether a file has this path.
    pub fn has_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether a file lies in this folder or below it. The root is the empty path.
    pub fn has_folder(&self, path: &str) -> bool {
        let inside = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.files.range(inside.clone()..).next().is_some_and(|(first, _)| first.starts_with(&inside))
    }

    /// The folders whose `Cargo.toml` describes a package. The root is the empty path.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        let manifests =
            self.texts("Cargo.toml").filter(|(_, text)| text.lines().any(|line| line.trim() == "[package]"));
        manifests.map(|(path, _)| folder(path))
    }
}

/// The folder part of a path. For a file in the root it is empty.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the path that `relative` means in `folder`, without `.` and `..`. Returns `None` if the path leads out
/// of the repository.
pub fn join(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Adds the files of the folder `root/at` and of all folders below it. `ignored` are names that are left out in these
/// folders.
fn read_folder(
    root: &Path,
    at: &str,
    ignored: &[String],
    files: &mut BTreeMap<String, Option<String>>,
) -> io::Result<()> {
    let named = |error: io::Error, path: &Path| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let here = root.join(at);
    let rules = fs::read_to_string(here.join(".gitignore")).unwrap_or_default();
    let rules = || rules.lines().map(|rule| rule.trim().trim_end_matches('/')).filter(|rule| !rule.is_empty());
    let only_here: Vec<&str> = rules().filter_map(|rule| rule.strip_prefix('/')).collect();
    let below: Vec<String> =
        ignored.iter().cloned().chain(rules().filter(|rule| !rule.contains('/')).map(String::from)).collect();

    for entry in fs::read_dir(&here).map_err(|error| named(error, &here))? {
        let entry = entry.map_err(|error| named(error, &here))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if below.contains(&name) || only_here.contains(&name.as_str()) {
            continue;
        }
        let path = if at.is_empty() { name } else { format!("{at}/{name}") };
        let kind = entry.file_type().map_err(|error| named(error, &entry.path()))?;
        if kind.is_dir() {
            read_folder(root, &path, &below, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).map_err(|error| named(error, &entry.path()))?;
            files.insert(path, String::from_utf8(bytes).ok());
        }
    }
    Ok(())
}

//! Checks that Markdown pages refer only to files that exist.

use super::Finding;
use super::tree::{LAYERS, Tree, folder, join};

/// In a `.md` file, every relative link, and every source of a picture, leads to an existing file or folder.
pub fn links_lead_to_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".md") {
        for (line_number, line) in prose(text) {
            for target in targets(&without_code(line)) {
                let file = target.split('#').next().expect("split gives one part at least");
                if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                    continue;
                }
                let place = join(folder(path), file).filter(|_| !file.starts_with('/'));
                if !place.is_some_and(|place| tree.has_file(&place) || tree.has_folder(&place)) {
                    findings.push(Finding::new(path, line_number, format!("the link `{target}` leads nowhere")));
                }
            }
        }
    }
    findings
}

/// README.md has a link to every page of the guide.
pub fn guide_is_linked(tree: &Tree) -> Vec<Finding> {
    let linked: Vec<String> = prose(tree.text("README.md").unwrap_or_default())
        .flat_map(|(_, line)| targets(line))
        .filter_map(|target| join("", target.split('#').next()?))
        .collect();
    let pages = tree.texts(".md").map(|(path, _)| path).filter(|path| path.starts_with("docs/guide/"));
    let lost = pages.filter(|page| !linked.iter().any(|link| link == page));
    lost.map(|page| Finding::new(page, 1, "README.md has no link to this page")).collect()
}

/// If a text in backticks in ARCHITECTURE.md looks like a path of this repository, this path exists. Such a path may
/// leave out its beginning and the folder `src`: `sst/read/cursor.rs` and `cursor.rs` both name
/// `engine/sst/src/read/cursor.rs`.
pub fn architecture_names_what_exists(tree: &Tree) -> Vec<Finding> {
    let path = "ARCHITECTURE.md";
    let mut findings = Vec::new();
    for (line_number, line) in prose(tree.text(path).unwrap_or_default()) {
        for name in line.split('`').skip(1).step_by(2).filter(|name| looks_like_a_path(tree, name)) {
            for one in braces(name) {
                if !exists(tree, one.trim_end_matches('/')) {
                    findings.push(Finding::new(path, line_number, format!("`{one}` does not exist")));
                }
            }
        }
    }
    findings
}

/// The lines outside code blocks, with their line numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// The line without the texts in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The targets in `[text](target)`, in `[name]: target`, and in the HTML attributes `src="target"` and
/// `srcset="target"`.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|after| after.split_once(')')).map(|(target, _)| target);
    let named = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:")).map(|(_, target)| target);
    let pictures = ["src=\"", "srcset=\""].into_iter().flat_map(|start| line.split(start).skip(1));
    let pictures = pictures.filter_map(|after| after.split_once('"')).map(|(target, _)| target);
    inline
        .chain(named)
        .chain(pictures)
        .filter_map(|target| target.split_whitespace().next())
        .map(|word| word.trim_matches(['<', '>']))
        .collect()
}

fn looks_like_a_path(tree: &Tree, name: &str) -> bool {
    let is_file = [".rs", ".md", ".toml"].iter().any(|ending| name.ends_with(ending));
    let first = name.split_once('/').map(|(first, _)| first);
    let in_known_folder = first.is_some_and(|first| {
        !first.is_empty()
            && (tree.has_folder(first) || LAYERS.iter().any(|layer| tree.has_folder(&format!("{layer}{first}"))))
    });
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},".contains(c));
    is_plain && !name.starts_with('/') && (is_file || in_known_folder || (name.ends_with('/') && first != Some("")))
}

fn exists(tree: &Tree, name: &str) -> bool {
    let wanted = format!("/{name}/");
    tree.paths().any(|path| {
        let path = format!("/{path}/");
        path.contains(&wanted) || path.replace("/src/", "/").contains(&wanted)
    })
}

/// Expands braces: `a/{b,c}.rs` gives `a/b.rs` and `a/c.rs`.
fn braces(name: &str) -> Vec<String> {
    let Some((before, rest)) = name.split_once('{') else { return vec![name.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![name.to_owned()] };
    choices.split(',').flat_map(|choice| braces(&format!("{before}{}{after}", choice.trim()))).collect()
}

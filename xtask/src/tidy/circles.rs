//! Finds files and folders of a crate that import each other in a circle. Files in a circle cannot be read or tested
//! without each other.
//!
//! A folder and the file of the same name count as one, for example `read/` and `read.rs`. In the engine's own
//! crates, this file must also not be in a circle with files of its folder. In other crates, this file may hold what
//! the files of its folder share, as the root of a crate may.

use super::Finding;
use super::imports::{Crate, Names};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Crates with a stricter rule. If a file has a folder of the same name, the file may import from that folder or be
/// imported by it, but not both.
const STRICT: [&str; 6] = ["engine/larch", "cloud/objects", "engine/os", "engine/pages", "engine/rows", "engine/sst"];

/// For each file or folder, the files or folders that it imports.
pub type Edges<T> = BTreeMap<T, BTreeSet<T>>;

/// In every crate, no files and no folders import each other in a circle.
pub fn no_file_imports_in_a_circle(tree: &Tree) -> Vec<Finding> {
    sources(tree).iter().flat_map(|src| circles_in(tree, src)).collect()
}

/// The source folders of all packages, each with `/` at its end.
pub fn sources(tree: &Tree) -> Vec<String> {
    let packages =
        tree.packages().map(|package| if package.is_empty() { "src/".to_owned() } else { format!("{package}/src/") });
    packages.filter(|src| tree.has_folder(src.trim_end_matches('/'))).collect()
}

fn circles_in(tree: &Tree, src: &str) -> Vec<Finding> {
    let crate_ = match Crate::read(tree, src) {
        Ok(crate_) => crate_,
        Err(finding) => return vec![finding],
    };
    let imports = crate_.imports();
    let files: Edges<&Names> = imports.iter().map(|(&from, to)| (from, to.keys().copied().collect())).collect();
    let mut findings = Vec::new();
    if STRICT.iter().any(|crate_| src.strip_suffix("/src/") == Some(crate_)) {
        for circle in circles(&files) {
            let shown: Vec<&str> = circle.iter().chain(circle.first()).map(|file| &*crate_.files[*file]).collect();
            let what = format!("files import each other in a circle: {}", shown.join(" -> "));
            findings.push(Finding::new(shown[0], 1, what));
        }
    }
    let folders = crate_.files.keys().flat_map(|file| (0..file.len()).map(|length| &file[..length]));
    for folder in folders.collect::<BTreeSet<&[String]>>() {
        for circle in circles(&edges_in(folder, &files)) {
            let shown: Vec<String> =
                circle.iter().chain(circle.first()).map(|room| format!("{src}{}", room.join("/"))).collect();
            let what = format!("files or folders import each other in a circle: {}", shown.join(" -> "));
            findings.push(Finding::new(&shown[0], 1, what));
        }
    }
    findings
}

/// What the files and folders directly in `folder` import from each other.
fn edges_in<'n>(folder: &[String], files: &Edges<&'n Names>) -> Edges<&'n [String]> {
    let room =
        |file: &'n Names| (file.len() > folder.len() && file.starts_with(folder)).then(|| &file[..=folder.len()]);
    let mut edges = Edges::new();
    for (from, to) in files.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to))) {
        if let (Some(from), Some(to)) = (room(from), room(to))
            && from != to
        {
            edges.entry(from).or_insert_with(BTreeSet::new).insert(to);
        }
    }
    edges
}

/// Returns circles that together cover every file or folder that is in a circle: for each one that no circle found
/// before covers, the shortest circle through it.
fn circles<T: Ord + Copy>(edges: &Edges<T>) -> Vec<Vec<T>> {
    let mut done = BTreeSet::new();
    let mut circles = Vec::new();
    for &start in edges.keys() {
        if !done.contains(&start)
            && let Some(circle) = shortest_circle(start, edges)
        {
            done.extend(circle.iter().copied());
            circles.push(circle);
        }
    }
    circles
}

/// The shortest way from `start` over `edges` back to `start`.
fn shortest_circle<T: Ord + Copy>(start: T, edges: &Edges<T>) -> Option<Vec<T>> {
    let mut came_from: BTreeMap<T, T> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for &next in edges.get(&at).into_iter().flatten() {
            if next == start {
                let mut circle = vec![at];
                while let Some(&before) = came_from.get(&circle[circle.len() - 1]) {
                    circle.push(before);
                }
                circle.reverse();
                return Some(circle);
            }
            came_from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                at
            });
        }
    }
    None
}

/// The strongly connected components of two or more files or folders.
pub fn knots<T: Ord + Copy>(edges: &Edges<T>) -> Vec<Vec<T>> {
    let reached = |start: T| {
        let (mut reached, mut queue) = (BTreeSet::new(), vec![start]);
        while let Some(at) = queue.pop() {
            queue.extend(edges.get(&at).into_iter().flatten().filter(|next| reached.insert(**next)));
        }
        reached
    };
    let reached: BTreeMap<T, BTreeSet<T>> = edges.keys().map(|&at| (at, reached(at))).collect();
    let reach = |from: &T, to: &T| reached.get(from).is_some_and(|reached| reached.contains(to));
    let mut knots: Vec<Vec<T>> = Vec::new();
    for at in edges.keys().filter(|at| reach(at, at)) {
        match knots.iter_mut().find(|knot| reach(&knot[0], at) && reach(at, &knot[0])) {
            Some(knot) => knot.push(*at),
            None => knots.push(vec![*at]),
        }
    }
    knots
}

//! Shows each crate as a house, with figures about its rooms (see `floors.rs`), floors and circles. It can also
//! print the imports of some crates, file by file.

use super::circles::{self, Edges};
use super::imports::{Crate, Imports, Names};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Returns the figures of all crates. If `places` names crates, returns the imports of these crates instead, one
/// on each line: from, to, names, with tabs between them.
///
/// # Errors
///
/// Fails if a place is no crate, or if a file cannot be parsed.
pub fn shown(tree: &Tree, places: &[&str]) -> Result<String, String> {
    let mut text = String::new();
    if !places.is_empty() {
        for place in places {
            let src = format!("{}/src/", place.trim_end_matches('/'));
            if !tree.has_folder(src.trim_end_matches('/')) {
                return Err(format!("{place} has no folder src; name the folder of a crate, as engine/larch"));
            }
            let crate_ = Crate::read(tree, &src).map_err(|finding| finding.to_string())?;
            imports(&crate_, &mut text);
        }
        return Ok(text);
    }
    text.push_str("crate                      files   lines  rooms  floors  in circles  largest  public at the root\n");
    for src in circles::sources(tree) {
        let crate_ = Crate::read(tree, &src).map_err(|finding| finding.to_string())?;
        figures(tree, src.trim_end_matches("/src/"), &crate_, &mut text);
    }
    Ok(text)
}

fn imports(crate_: &Crate, text: &mut String) {
    for (from, imports) in crate_.imports() {
        for (to, names) in imports {
            let names = names.into_iter().collect::<Vec<_>>().join(",");
            writeln!(text, "{}\t{}\t{names}", crate_.files[from], crate_.files[to]).expect("a string takes all");
        }
    }
}

fn figures(tree: &Tree, name: &str, crate_: &Crate, text: &mut String) {
    let lines: usize = crate_.files.values().filter_map(|path| Some(tree.text(path)?.lines().count())).sum();
    let edges = rooms(&crate_.imports());
    let rooms: BTreeSet<&str> = crate_.files.keys().filter_map(|file| file.first()).map(String::as_str).collect();
    let knots = circles::knots(&edges);
    let (knotted, largest) = (knots.iter().map(Vec::len).sum::<usize>(), knots.iter().map(Vec::len).max().unwrap_or(0));
    let floors = if knots.is_empty() { floors(&edges).to_string() } else { "-".to_owned() };
    writeln!(
        text,
        "{name:<26} {:>5} {lines:>7} {:>6} {floors:>7} {knotted:>11} {largest:>8} {:>19}",
        crate_.files.len(),
        rooms.len(),
        crate_.public_at_root()
    )
    .expect("a string takes all");
}

/// What the rooms of a crate import from each other. The root of the crate, which combines the rooms, is not a room.
fn rooms<'c>(imports: &Imports<'c>) -> Edges<&'c str> {
    let room = |file: &'c Names| file.first().map(String::as_str);
    let mut edges = Edges::new();
    for (from, imports) in imports {
        for to in imports.keys() {
            if let (Some(from), Some(to)) = (room(from), room(to)) {
                let imported: &mut BTreeSet<&str> = edges.entry(from).or_default();
                imported.extend((from != to).then_some(to));
            }
        }
    }
    edges
}

/// The number of floors that the rooms need. A room stands above everything that it imports, and rooms in a circle
/// are not counted.
fn floors(edges: &Edges<&str>) -> usize {
    fn floor<'n>(room: &'n str, edges: &Edges<&'n str>, known: &mut BTreeMap<&'n str, usize>) -> usize {
        if let Some(&floor) = known.get(room) {
            return floor;
        }
        let below = edges.get(room).into_iter().flatten().map(|below| floor(below, edges, known)).max();
        let floor = below.unwrap_or(0) + 1;
        known.insert(room, floor);
        floor
    }
    let mut known = BTreeMap::new();
    edges.keys().map(|room| floor(room, edges, &mut known)).max().unwrap_or(1)
}

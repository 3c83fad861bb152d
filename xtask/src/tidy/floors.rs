//! Checks that the folders of a crate keep the order that `docs/floors.md` states: imports go from higher floors to
//! lower floors. A *room* is a folder directly below `src`, with the file of the same name, or such a file alone.

use super::Finding;
use super::imports::{Crate, Names};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// The page that states the order.
const PAGE: &str = "docs/floors.md";

/// The greatest number of floors that a crate may have.
const MOST_FLOORS: usize = 9;

/// The rooms of one crate, with the floor of each.
struct Order<'t> {
    /// The folder of the crate.
    crate_: &'t str,
    /// The line of the page where the part about this crate begins.
    line: usize,
    floors: BTreeMap<&'t str, usize>,
}

/// If `docs/floors.md` names a crate, every room of this crate has a floor there, and imports only rooms of lower
/// floors.
pub fn imports_go_down(tree: &Tree) -> Vec<Finding> {
    let orders = tree.text(PAGE).map(orders).unwrap_or_default();
    orders.iter().flat_map(|order| findings(tree, order)).collect()
}

/// Reads the page. A heading names a crate, and each row of the table below the heading has a floor and rooms in
/// backticks.
fn orders(page: &str) -> Vec<Order<'_>> {
    let mut orders: Vec<Order<'_>> = Vec::new();
    for (number, line) in page.lines().enumerate() {
        if let Some(crate_) = line.strip_prefix("## ") {
            orders.push(Order { crate_: crate_.trim(), line: number + 1, floors: BTreeMap::new() });
        }
        let mut cells = line.split('|').map(str::trim).skip(1);
        if let (Some(Ok(floor)), Some(rooms), Some(order)) =
            (cells.next().map(str::parse), cells.next(), orders.last_mut())
        {
            order.floors.extend(rooms.split('`').skip(1).step_by(2).map(|room| (room, floor)));
        }
    }
    orders
}

fn findings(tree: &Tree, order: &Order<'_>) -> Vec<Finding> {
    let crate_ = match Crate::read(tree, &format!("{}/src/", order.crate_)) {
        Ok(crate_) => crate_,
        Err(finding) => return vec![finding],
    };
    let of_page = |what: String| Finding::new(PAGE, order.line, what);
    let mut findings = Vec::new();
    let floors: BTreeSet<usize> = order.floors.values().copied().collect();
    if floors.len() > MOST_FLOORS {
        findings.push(of_page(format!("`{}` has {} floors; {MOST_FLOORS} are the most", order.crate_, floors.len())));
    }
    let rooms: BTreeSet<&str> = crate_.files.keys().filter_map(|file| room(file)).collect();
    let missing = rooms.iter().filter(|room| !order.floors.contains_key(*room));
    findings.extend(missing.map(|room| of_page(format!("`{room}` of `{}` has no floor", order.crate_))));
    let gone = order.floors.keys().filter(|room| !rooms.contains(*room));
    findings.extend(gone.map(|room| of_page(format!("`{}` has no `{room}`", order.crate_))));
    for (from, imports) in crate_.imports() {
        for (to, names) in imports {
            let (Some(above), Some(below)) = (room(from), room(to)) else { continue };
            let floor = |room| order.floors.get(room).copied();
            if above == below || floor(above) > floor(below) {
                continue;
            }
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            let what = format!("it imports {names} of {}, which is not on a lower floor: see {PAGE}", crate_.files[to]);
            findings.push(Finding::new(&crate_.files[from], 1, what));
        }
    }
    findings
}

/// The room of a file. The root of a crate, which combines the crate's rooms, belongs to none.
fn room(file: &Names) -> Option<&str> {
    file.first().map(String::as_str).filter(|room| *room != "fuzz")
}

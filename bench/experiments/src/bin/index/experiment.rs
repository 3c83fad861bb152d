//! The benchmark as an experiment: its cells, how each is measured, and its tables and goals. A cell is the operations
//! on data of one shape, the searches in nodes, or the goals of one subject.

use crate::data::{DataSet, Shape};
use crate::goals::Named;
use crate::instructions::Counter;
use crate::operations::{self, Cost, NodeSearch, Part, Parts};
use crate::{Extent, Result, failure};
use experiments::experiment::{Experiment, Kept};
use experiments::ground::Ground;
use experiments::outcome::{About, Column, Goal, table};
use harness::Failure;
use harness::report::Environment;
use kit::Scratch;
use kit::goals::word;
use page::{Block, figure};
use std::fmt;
use suite::results::VERSION;

#[cfg(test)]
mod tests;

/// The benchmark of the index.
pub struct Index {
    extent: Extent,
    cells: Vec<Cell>,
    counter: Counter,
}

/// A measurement.
#[derive(Clone, Copy)]
pub enum Cell {
    /// Single operations on data of a shape.
    Operations(Shape),
    /// Searches in nodes.
    Nodes,
    /// The goals of a subject.
    Goals(Named),
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operations(shape) => shape.fmt(out),
            Self::Nodes => out.write_str("node search"),
            Self::Goals((name, _)) => out.write_str(name),
        }
    }
}

impl Index {
    /// The benchmark of these cells.
    pub fn of(extent: Extent, cells: Vec<Cell>) -> Self {
        Self { extent, cells, counter: Counter::find() }
    }

    fn measured(&self, cell: &Cell, scratch: &Scratch) -> Result<Kept> {
        Ok(match cell {
            Cell::Operations(shape) => {
                let data = DataSet::build(scratch, *shape)?;
                let measured = operations::measure(&data, &self.counter, scratch, self.extent)?;
                let get = measured.parts.iter().find(|part| part.operation == "get").ok_or("no get was measured")?;
                let line = format!("get {} ns by the B-tree, {} by the flat list", nanos(&get.btree), nanos(&get.flat));
                Kept::new(&measured, line)
            }
            Cell::Nodes => {
                let searches = operations::measure_nodes(&self.counter, self.extent)?;
                let all: Vec<String> = searches.iter().map(|search| nanos(&search.cost)).collect();
                Kept::new(&searches, format!("{} ns", all.join(", ")))
            }
            Cell::Goals((_, measure)) => {
                let goals = measure(scratch, self.extent)?;
                let told = |goal: &Goal| format!("{}: {}", word(goal.is_reached), goal.shown());
                Kept::new(&goals, goals.iter().map(told).collect::<Vec<_>>().join("; "))
            }
        })
    }

    /// Where and how the figures were made. `counted` says how instructions were.
    fn conditions(&self, ground: &Ground, counted: Option<&str>) -> Vec<Block> {
        let on = Environment::gather(VERSION, ground.directory()).machine;
        let (processor, processors, gib, caches) = (on.processor, on.processors, on.memory_bytes >> 30, caches());
        let machine = format!("machine: {processor}, {processors} cores, {caches}, {gib} GiB, Linux {}", on.kernel);
        let quick = "quick: a tenth of the rows and of the time, so these are not results to keep";
        let times = "times: of the processor, medians of turns, B-tree and flat list in turns; +- is between quartiles";
        let quick = self.extent.quick.then(|| quick.to_owned());
        let operations = counted.map(|counted| format!("instructions: {counted}\n{times}\n"));
        [Some(machine), quick, operations].into_iter().flatten().map(Block::Text).collect()
    }
}

impl Experiment for Index {
    const ABOUT: About = About {
        name: "bench-index",
        title: "The index: what its parts cost, and its goals",
        text: &[
            "What single operations cost with the B-tree and with the flat list of the same data pages, with everything in memory, and whether the \
             index reaches its goals. docs/benchmarks/index.md says how each figure is made.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        self.extent.of(3 << 30)
    }

    fn cells(&self) -> Vec<Cell> {
        self.cells.clone()
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> std::result::Result<Kept, Failure> {
        // A run that was killed has left its files.
        ground.remove_data()?;
        let scratch = Scratch::new_in(&ground.data("")?, "index").map_err(|why| failure(why.into()))?;
        self.measured(cell, &scratch).map_err(failure)
    }

    fn tables(&self, ground: &Ground) -> std::result::Result<Vec<Block>, Failure> {
        let operations: Vec<Parts> = self.cells.iter().filter_map(|cell| ground.known(cell)).collect();
        let counted = operations.first().map(|measured| &measured.counted[..]);
        let mut blocks = self.conditions(ground, counted);
        blocks.extend(operations.into_iter().map(of_operations));
        blocks.extend(ground.known(Cell::Nodes).map(of_nodes));
        Ok(blocks)
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        let subjects = self.cells.iter().filter(|cell| matches!(cell, Cell::Goals(_)));
        subjects.filter_map(|cell| ground.known::<Vec<Goal>>(cell)).flatten().collect()
    }
}

fn of_operations(measured: Parts) -> Block {
    let columns: [Column<'_, Part>; 8] = [
        ("", &|part| part.operation.clone()),
        ("B-tree ns", &|part| nanos(&part.btree)),
        ("+-", &|part| spread(&part.btree)),
        ("instr", &|part| instructions(&part.btree)),
        ("flat ns", &|part| nanos(&part.flat)),
        ("+-", &|part| spread(&part.flat)),
        ("instr", &|part| instructions(&part.flat)),
        ("flat/B-tree", &|part| format!("{:.2}", part.flat.time.nanos / part.btree.time.nanos)),
    ];
    table(format!("{}: {}", measured.shape, measured.sizes), measured.parts, &columns)
}

fn of_nodes(searches: Vec<NodeSearch>) -> Block {
    let columns: [Column<'_, NodeSearch>; 6] = [
        ("", &|search| search.keys.clone()),
        ("ns", &|search| nanos(&search.cost)),
        ("+-", &|search| spread(&search.cost)),
        ("children", &|search| search.children.to_string()),
        ("node bytes", &|search| search.bytes.to_string()),
        ("bytes a child", &|search| format!("{:.1}", search.bytes as f64 / search.children as f64)),
    ];
    table("node search, 32 nodes of 16 KiB in L2, keys of 24 bytes", searches, &columns)
}

fn nanos(cost: &Cost) -> String {
    figure(cost.time.nanos)
}

fn spread(cost: &Cost) -> String {
    format!("{:.0} %", cost.time.spread * 100.0)
}

fn instructions(cost: &Cost) -> String {
    cost.instructions.map_or("-".to_owned(), figure)
}

/// The sizes of the processor's caches, as Linux reports them.
fn caches() -> String {
    let cache = |i: usize| {
        let file = |name: &str| format!("/sys/devices/system/cpu/cpu0/cache/index{i}/{name}");
        let of = |name: &str| Some(std::fs::read_to_string(file(name)).ok()?.trim().to_owned());
        (of("type")? != "Instruction").then_some(format!("L{} {}", of("level")?, of("size")?))
    };
    (0..4).filter_map(cache).collect::<Vec<_>>().join(", ")
}

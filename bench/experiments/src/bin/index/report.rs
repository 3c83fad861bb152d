//! The results as text and as JSON. A run takes minutes, so each line of text is printed as soon as it is known.

use crate::Result;
use crate::data::{DataSet, Shape};
use crate::digits::count;
use crate::goals::MeasuredGoal;
use crate::instructions::Counter;
use crate::operations::{Cost, NodeSearch, Part};
use kit::goals::word;
use serde::Serialize;
use std::path::Path;

/// Everything measured so far.
#[derive(Serialize)]
pub struct Report {
    quick: bool,
    machine: String,
    parts: Vec<Parts>,
    nodes: Vec<NodeSearch>,
    goals: Vec<MeasuredGoal>,
}

#[derive(Serialize)]
struct Parts {
    #[serde(flatten)]
    shape: Shape,
    parts: Vec<Part>,
}

impl Report {
    /// An empty report.
    pub fn new(quick: bool) -> Self {
        Self { quick, machine: machine(), parts: Vec::new(), nodes: Vec::new(), goals: Vec::new() }
    }

    /// Prints the machine.
    pub fn print_machine(&self) {
        println!("machine       {}", self.machine);
        if self.quick {
            println!("quick         a tenth of the rows and of the time: not results to keep");
        }
    }

    /// Prints how instructions are counted.
    pub fn print_counter(&self, counter: &Counter) {
        let how = match counter {
            Counter::Hardware(_) => "counted by the processor, in the timed process, few operations".to_owned(),
            Counter::Valgrind => {
                "counted by callgrind in a process of its own on fewer operations, the loop around them subtracted"
                    .into()
            }
            Counter::None(why) => format!("not counted here: {why}"),
        };
        println!("instructions  {how}");
        println!(
            "times         of the processor, medians of turns, B-tree and flat list in turns; +- is between quartiles"
        );
    }

    /// Prints and adds the operations on one data set.
    pub fn print_parts(&mut self, data: &DataSet, parts: Vec<Part>) -> Result<()> {
        let shape = data.shape;
        let (height, index, bytes) = data.open(false)?.index();
        let (_, flat_index, _) = data.open(true)?.index();
        let mib = |bytes: u64| bytes as f64 / (1u64 << 20) as f64;
        println!(
            "\nrows {}, files {}, column groups {}, older versions {}: {:.0} MiB of data, index {:.2} MiB in {height} levels, \
             flat list {:.2} MiB",
            count(shape.rows),
            shape.files,
            if shape.groups { 2 } else { 1 },
            if shape.history { "of 0.7 of the rows" } else { "none" },
            mib(bytes),
            mib(index),
            mib(flat_index)
        );
        println!(
            "{:<34}{:>11}{:>7}{:>11}{:>13}{:>7}{:>11}{:>13}",
            "", "B-tree ns", "+-", "instr", "flat ns", "+-", "instr", "flat/B-tree"
        );
        for Part { operation, btree, flat } in &parts {
            println!(
                "{operation:<34}{:>11}{:>7}{:>11}{:>13}{:>7}{:>11}{:>13.2}",
                nanos(btree),
                spread(btree),
                instructions(btree),
                nanos(flat),
                spread(flat),
                instructions(flat),
                flat.time.nanos / btree.time.nanos
            );
        }
        self.parts.push(Parts { shape, parts });
        Ok(())
    }

    /// Prints and adds the searches in nodes.
    pub fn print_nodes(&mut self, nodes: Vec<NodeSearch>) {
        println!("\nnode search, 32 nodes of 16 KiB in L2, keys of 24 bytes");
        println!("{:<34}{:>11}{:>7}{:>9}{:>13}{:>16}", "", "ns", "+-", "children", "node bytes", "bytes a child");
        for NodeSearch { keys, children, bytes, cost } in &nodes {
            println!(
                "{keys:<34}{:>11}{:>7}{:>9}{:>13}{:>16.1}",
                nanos(cost),
                spread(cost),
                children,
                bytes,
                *bytes as f64 / *children as f64
            );
        }
        self.nodes = nodes;
    }

    /// Prints the head of the table of goals.
    pub fn print_goals_head(&self) {
        println!("\nmetric | goal | measured | verdict\n--- | --- | --- | ---");
    }

    /// Prints and adds the goals of one subject.
    pub fn print_goals(&mut self, lines: Vec<MeasuredGoal>) {
        for line in lines {
            println!("{} | {} | {} | {}", line.metric, line.goal, line.measured, word(line.is_reached));
            for note in &line.notes {
                println!("    {note}");
            }
            self.goals.push(line);
        }
    }

    /// The number of goals that are not reached.
    pub fn falls_short(&self) -> usize {
        self.goals.iter().filter(|line| !line.is_reached).count()
    }

    /// Writes everything to `path`.
    pub fn write_json(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
    }
}

fn nanos(cost: &Cost) -> String {
    let nanos = cost.time.nanos;
    if nanos < 100.0 { format!("{nanos:.1}") } else { count(nanos.round() as u64) }
}

fn spread(cost: &Cost) -> String {
    format!("{:.0} %", cost.time.spread * 100.0)
}

fn instructions(cost: &Cost) -> String {
    cost.instructions.map_or("-".to_owned(), |instructions| count(instructions.round() as u64))
}

/// Processor, cores, memory and system, as Linux reports them.
fn machine() -> String {
    let line = |path: &str, name: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        found.map(|rest| rest.trim_start_matches([':', ' ', '\t']).trim().to_owned())
    };
    let processor = line("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = line("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let caches: Vec<String> = (0..4)
        .filter_map(|i| {
            let of = |name: &str| {
                std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{i}/{name}")).ok()
            };
            (of("type")?.trim() != "Instruction").then_some(())?;
            Some(format!("L{} {}", of("level")?.trim(), of("size")?.trim()))
        })
        .collect();
    let memory = memory.map_or("?".to_owned(), |kib| (kib >> 20).to_string());
    format!("{processor}, {cores} cores, {}, {memory} GiB, Linux {}", caches.join(", "), release.trim())
}

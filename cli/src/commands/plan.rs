//! `larch plan`: predicts how much room a table of a given size takes, and what a get from this table costs. It
//! opens no database.

use crate::args::{self, Common};
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use crate::size;
use larch::options::FilterKind;
use serde::Serialize;
use sst::plan::{FilterBits, Plan, Sizes};

/// A database that is open for writing needs its write buffer and this much more memory than one that is only read.
const WORK_BYTES: u64 = 16 << 20;

/// The prediction, and the sizes on which it is based.
#[derive(Serialize)]
struct Report {
    rows: u64,
    row_bytes: u64,
    key_bytes: u64,
    separator_bytes: Option<u64>,
    page_bytes: u64,
    node_bytes: u64,
    most_file_bytes: u64,
    #[serde(flatten)]
    plan: Plan,
    memory_bytes: u64,
    written_memory_bytes: u64,
}

/// Runs the command.
pub fn run(common: &Common, args: &args::Plan) -> Result<()> {
    let sizes = Sizes {
        rows: args.rows,
        row_bytes: args.row_bytes,
        key_bytes: args.key_bytes.unwrap_or(args.row_bytes.min(16)),
        separator_bytes: args.separator_bytes,
        page_bytes: args.page,
        node_bytes: args.node,
        file_bytes: args.file_bytes,
        filter: match args.filters.deepest {
            FilterKind::None => FilterBits::None,
            FilterKind::Bits12 => FilterBits::Twelve,
            FilterKind::Bits20 => FilterBits::Twenty,
        },
        cache_bytes: common.cache.least_bytes(),
    };
    sizes.check().map_err(CommandFailure::Usage)?;
    let plan = sizes.plan();
    let memory_bytes = plan.cache_bytes + plan.outside_bytes;
    let report = Report {
        rows: sizes.rows,
        row_bytes: sizes.row_bytes,
        key_bytes: sizes.key_bytes,
        separator_bytes: sizes.separator_bytes,
        page_bytes: sizes.page_bytes,
        node_bytes: sizes.node_bytes,
        most_file_bytes: sizes.file_bytes,
        memory_bytes,
        written_memory_bytes: memory_bytes + common.write_buffer + WORK_BYTES,
        plan,
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        print(&report, &mut output)?;
    }
    output.finish()
}

fn print(report: &Report, output: &mut Output) -> Result<()> {
    let plan = &report.plan;
    let of_data = |bytes: u64| format!("{} ({:.3} % of data)", size::bytes(bytes), percent(bytes, plan.data_bytes));
    let (nodes, data) = plan.levels.split_at(plan.levels.len() - 1);
    let levels = match plan.height {
        1 => "1 level".to_owned(),
        height => format!("{height} levels"),
    };
    let shares = nodes.iter().chain(data).map(|level| format!("{:.1} %", level.in_memory * 100.0));
    let lines = [
        ("rows", format!("{}, {} of keys and values", size::count(report.rows), size::bytes(plan.user_bytes))),
        ("files", format!("{}, {}", size::count(plan.files), size::bytes(plan.file_bytes))),
        ("data", format!("{} in {}", size::bytes(plan.data_bytes), size::of(plan.data_pages, "page"))),
        ("index", format!("{}, {levels}, up to {} a node", of_data(plan.index_bytes), children(plan.node_children))),
        ("filters", of_data(plan.filter_bytes)),
        (
            "get",
            format!(
                "{:.3} pages read, {}, of a row that is there",
                plan.reads_a_get,
                size::bytes(plan.read_bytes_a_get as u64)
            ),
        ),
        (
            "in memory",
            format!("{} of the pages, from the roots down to the data", shares.collect::<Vec<_>>().join(", ")),
        ),
        (
            "memory",
            format!(
                "{}: {} of cache, {} outside of it; {} while it is written",
                size::bytes(report.memory_bytes),
                size::bytes(plan.cache_bytes),
                size::bytes(plan.outside_bytes),
                size::bytes(report.written_memory_bytes)
            ),
        ),
    ];
    lines.iter().try_for_each(|(name, text)| output.line(format!("{name:<16}{text}")))
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn children(count: u64) -> String {
    format!("{} children", size::count(count))
}

//! TPC-C runs on the page, by TPC-C's own rules: tpmC, efficiency, the mix, and the values that must be within
//! bounds.

use super::{Shown, table};
use crate::tpcc_runs::figures;
use harness::report::text::grouped;
use page::{Block, figure};
use tpcc::figures::{Figures, Kind, NOTICE, QUANTILES};
use tpcc::summary::MOST_TPMC;

/// The blocks about TPC-C runs. Empty if there are none.
pub fn blocks(shown: &[Shown<'_>]) -> Vec<Block> {
    let runs: Vec<(&str, Figures)> =
        shown.iter().filter_map(|one| Some((one.name.as_str(), figures(one.run)?))).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    let notice = format!(
        "{NOTICE} tpmC is the number of new orders a minute, with those that are rolled back as the specification wants it. Efficiency is \
         tpmC for {MOST_TPMC} a warehouse, and there is none where terminals do not wait."
    );
    let mut blocks = vec![Block::Text(notice), Block::Table(wholes(&runs))];
    blocks.push(Block::Table(kinds(&runs)));
    blocks.push(Block::Table(limits(&runs)));
    for (name, figures) in &runs {
        let deviations = figures.deviations.iter().map(|deviation| vec![(*deviation).to_owned()]).collect();
        let caption = format!("In what {name} differs from TPC-C 5.11");
        blocks.push(Block::Folded(caption.clone(), vec![Block::Table(table(&caption, &["deviation"], deviations))]));
    }
    blocks
}

fn wholes(runs: &[(&str, Figures)]) -> page::Table {
    let row = |(name, of): &(&str, Figures)| {
        vec![
            (*name).to_owned(),
            of.mode.to_owned(),
            of.warehouses.to_string(),
            of.new_orders.to_string(),
            format!("{:.0}", of.tpmc),
            of.efficiency.map_or("none".to_owned(), |efficiency| format!("{efficiency:.2} %")),
            figure(of.throughput_per_second),
            figure(of.goodput_per_second),
        ]
    };
    let columns = ["run", "mode", "warehouses", "new orders", "tpmC", "efficiency", "throughput/s", "goodput/s"];
    table("TPC-C", &columns, runs.iter().map(row).collect())
}

fn kinds(runs: &[(&str, Figures)]) -> page::Table {
    let row = |name: &str, kind: &Kind| {
        let mut row = vec![format!("{name}, {}", kind.name)];
        row.extend([kind.ok, kind.retries, kind.rolled_back, kind.failed].map(grouped));
        row.push(kind.share.map_or("-".to_owned(), |share| format!("{share:.2} %")));
        row.extend(kind.millis.all().map(|millis| millis.map_or("-".to_owned(), figure)));
        row
    };
    let rows = runs.iter().flat_map(|(name, of)| of.transactions.iter().map(|kind| row(name, kind)));
    let rows = rows.collect();
    let mut columns =
        ["transaction", "ok", "retries", "of ok rolled back", "failed", "share"].map(str::to_owned).to_vec();
    columns.extend(QUANTILES.map(|(percent, _)| format!("{percent} %, ms")));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    table("Transactions of TPC-C", &columns, rows)
}

fn limits(runs: &[(&str, Figures)]) -> page::Table {
    let rows = runs.iter().flat_map(|(name, of)| {
        of.limits.iter().map(move |limit| {
            vec![format!("{name}: {}", limit.name), limit.measured(), limit.bounds(), limit.said().to_owned()]
        })
    });
    table("What TPC-C has bounds for", &["what", "measured", "bounds", "verdict"], rows.collect())
}

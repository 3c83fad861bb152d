//! `larch bench transactions`: the cost of a transaction beside the same calls without one, of conflicts, of synced
//! commits and commits in flight, and of an index build. Each part has its own databases. RocksDB runs as an
//! `OptimisticTransactionDB`.

mod increments;
mod indexed;
mod mixed;
mod synced;
#[cfg(test)]
mod tests;

use super::herd::Peer;
use super::orders::{Deed, Order, Sample, Transact};
use super::table::Table;
use super::{Ending, Tale, absent, check_room, failed, place, thousands, verdict_of};
use crate::args::TransactionsArgs;
use harness::Scheme;
use kit::Scratch;
use std::time::Duration;

/// Larch comes first: the goals are those of the first engine.
const ENGINES: [(&str, &str); 2] = [("larch", "cache=4GiB"), ("rocksdb", "cache=4GiB&transactions=optimistic")];

/// The warm-up is the measured time divided by this.
const WARMUP: u32 = 4;

/// Figures about transactions that other commands measure.
const ELSEWHERE: &str = "\
* instructions of a get and an insert in a transaction: `cargo x instructions`
* allocations of a get and an insert, in a transaction and without: `cargo test -p larch-bench-stores --test larch_allocations -- --nocapture`
";

/// How large a run is.
struct Scale {
    records: u64,
    repeats: usize,
    /// The number of index builds.
    builds: usize,
    time: Duration,
}

impl Scale {
    fn of(args: &TransactionsArgs) -> Self {
        let (records, repeats, builds, time) = match args.quick {
            true => (100_000, 1, 1, Duration::from_millis(300)),
            false => (1_000_000, 7, 3, Duration::from_secs(2)),
        };
        Self { records: args.records.unwrap_or(records), repeats, builds, time: args.time.unwrap_or(time) }
    }

    /// An order to measure transactions.
    fn order(&self, what: Deed, records: u64, threads: usize, seed: u64) -> Order {
        let (warmup, time) = (self.time / WARMUP, self.time);
        let (warmup_millis, millis) = (warmup.as_millis() as u64, time.as_millis().max(1) as u64);
        Order::Transact(Transact { what, records, threads, warmup_millis, millis, seed })
    }
}

/// What all parts share.
struct Ground<'a> {
    scale: Scale,
    /// The engines that this binary has: name, options.
    engines: Vec<(&'static str, &'static str)>,
    place: &'a Scratch,
    tale: Tale,
    /// The engines' settings, a line for each engine and durability.
    settings: Vec<String>,
}

impl Ground<'_> {
    /// A table without rows, with a column for each engine and one for `more`.
    fn table(&self, more: Option<&'static str>) -> Table {
        Table::new(self.engines.iter().map(|(name, _)| *name).chain(more))
    }

    /// Starts the engines with empty databases for the part called `part`.
    fn start(&mut self, part: &str, durability: &str) -> Result<Vec<Peer>, String> {
        self.start_some(part, durability, |_| true)
    }

    /// [`Ground::start`] for some of the engines.
    fn start_some(&mut self, part: &str, durability: &str, is_wanted: fn(&str) -> bool) -> Result<Vec<Peer>, String> {
        let mut peers = Vec::new();
        for (name, options) in self.engines.iter().filter(|(name, _)| is_wanted(name)) {
            let directory = self.place.join(format!("{name}-{part}"));
            let target = format!("{name}:{}?{options}&durability={durability}", directory.display());
            let mut peer = Peer::start(name, &target, None)?;
            let opened = peer.obey(&Order::Open { anew: true })?;
            let list: Vec<String> = opened.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let line = format!("{name}: {}", list.join("; "));
            if !self.settings.contains(&line) {
                self.settings.push(line);
            }
            peers.push(peer);
        }
        Ok(peers)
    }
}

/// Measures the tables on the engines that this binary has.
pub fn run(args: &TransactionsArgs, schemes: &[Scheme]) -> Result<Ending, String> {
    let scale = Scale::of(args);
    let is_here = |(name, _): &(&str, &str)| schemes.iter().any(|known| known.name == *name);
    let engines: Vec<_> = ENGINES.into_iter().filter(is_here).collect();
    let place = place(args.dir.as_deref(), "bench-transactions")?;
    check_room(&place, needed_bytes(&scale, engines.len()))?;
    let mut ground = Ground { scale, engines, place: &place, tale: Tale::new(), settings: Vec::new() };
    let parts = [
        ("A get and a put, cached and buffered", mixed::measure(&mut ground)?),
        ("Increments of 1,000 counters, buffered", increments::measure(&mut ground)?),
        ("Durable when the call returns, or in flight", synced::measure(&mut ground)?),
        ("10,000 overwrites a second while an index is built", indexed::measure(&mut ground)?),
    ];
    let mut ending = verdict_of(&parts);
    ending.text = format!("{}\n{}\n{ELSEWHERE}", head(args, &ground), ending.text);
    ending.leave_out(&absent(&ENGINES.map(|(name, _)| name), schemes));
    Ok(ending)
}

/// The disk space needed: four times the rows of each engine plus a gigabyte for logs and the other parts, and four
/// times the rows of the table with an index, which is ten times as large.
fn needed_bytes(scale: &Scale, engines: usize) -> u64 {
    engines as u64 * (4 * 120 * scale.records + (1 << 30)) + 4 * 120 * indexed::TIMES * scale.records
}

fn head(args: &TransactionsArgs, ground: &Ground<'_>) -> String {
    let Scale { records, repeats, time, .. } = &ground.scale;
    let mut text = format!(
        "{records} rows of 20-byte keys and 100-byte values, {repeats} repeats of {:.2} s after {:.2} s of warm-up, sides in turns{}\n\n",
        time.as_secs_f64(),
        (*time / WARMUP).as_secs_f64(),
        if args.quick { " (quick: figures are rough)" } else { "" }
    );
    ground.settings.iter().for_each(|line| text.push_str(&format!("* {line}\n")));
    text
}

/// Measures every task on every peer in each round, so that a machine that gets slower or faster changes all
/// figures alike. `name` names the row for a task's rate. `order` returns the order for a task, a peer's name and a
/// seed, or `None` if the peer cannot do it. `put` enters the task's other figures into their rows. A peer that
/// fails in a row has no figures there.
fn in_rounds<T>(
    ground: &Ground<'_>,
    peers: &mut [Peer],
    table: &mut Table,
    tasks: &[T],
    name: fn(&T) -> &'static str,
    order: &dyn Fn(&T, &str, u64) -> Option<Order>,
    put: &dyn Fn(&mut Table, &T, usize, &Sample),
) {
    for repeat in 0..ground.scale.repeats {
        for (number, task) in tasks.iter().enumerate() {
            for (at, peer) in peers.iter_mut().enumerate() {
                let row = table.row(name(task));
                if row.failed.contains(&at) {
                    continue;
                }
                // No two tasks draw the same keys.
                let seed = 1000 * (number as u64 + 1) + repeat as u64;
                let Some(order) = order(task, peer.name(), seed) else { continue };
                match peer.obey(&order) {
                    Ok(sample) => {
                        let rate = thousands(&sample);
                        ground.tale.tell(&format!("{:36} {:12} {rate:12.2} K/s", row.name, peer.name()));
                        row.figures[at].push(rate);
                        put(table, task, at, &sample);
                    }
                    Err(why) => {
                        row.fail(at);
                        failed(name(task), why, &mut table.failures, &ground.tale);
                    }
                }
            }
        }
    }
}

//! Uniform gets by one thread with many in flight, beside the disk alone with the same number of reads in flight
//! and the same page size.

use super::gets::uniform;
use super::ground::{ColdEngine, Ground};
use crate::peers::table::{Against, Goal, Row, Table};

/// The number of gets in flight, and the names of its three rows.
const DEPTHS: [(usize, [&str; 3]); 4] = [
    (1, ["K gets/s, 1 under way", "reads a get, 1 under way", "CPU us a get, 1 under way"]),
    (8, ["K gets/s, 8 under way", "reads a get, 8 under way", "CPU us a get, 8 under way"]),
    (32, ["K gets/s, 32 under way", "reads a get, 32 under way", "CPU us a get, 32 under way"]),
    (128, ["K gets/s, 128 under way", "reads a get, 128 under way", "CPU us a get, 128 under way"]),
];

const OURS: &str = "larch 16K";

/// Measures the table, under the memory limit.
pub fn measure(ground: &mut Ground) -> Table {
    let disk = ground.disk();
    let mut table = table(disk.name);
    let Some(ours) = ground.engine(OURS).filter(|ours| ground.has_option(ours.scheme, "flights")) else {
        ground.note("this binary has no store of Larch with many gets under way on one thread");
        return table;
    };
    for (number, (depth, names)) in DEPTHS.into_iter().enumerate() {
        // Without fio, the store `disk` uses a thread for each read.
        let flights = if disk.scheme == "fio" { "flights=1" } else { "" };
        let both: [(ColdEngine, String); 2] = [(ours, format!("flights={depth}")), (disk, flights.to_owned())];
        let mut peers = ground.start_all(&both, true, &mut table);
        uniform(ground, &mut peers, &mut table, names, depth, 10 + number);
    }
    table
}

/// The table with its goals, some of them against `disk`.
pub fn table(disk: &'static str) -> Table {
    let mut table = Table::new([OURS, disk]);
    for (_, names) in DEPTHS {
        table.add(Row::new(names[0], "K/s", vec![Goal { against: Against::Engine(disk), ratio: 0.9 }]));
        let goals = vec![Goal { against: Against::Figure, ratio: 1.02 }];
        table.add(Row::new(names[1], "reads", goals).less_is_better());
        let goals = vec![Goal { against: Against::Above(disk), ratio: 4.0 }];
        table.add(Row::new(names[2], "us", goals).less_is_better());
    }
    table
}

//! Measures the cost of many range erases: of compacting them, compared with the same number of rows; and of reading
//! a range without erased rows, compared with the same range of a table without range erases.

use crate::rows::{sequential_key, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use harness::report::text::grouped;
use kit::Scratch;
use kit::median;
use larch::options::LevelOptions;
use larch::{Database, Durability, Table};
use std::time::Instant;

const MOST_COMPACTION: f64 = 1.5;
const MOST_RANGE: f64 = 1.1;
const ROUNDS: usize = 7;
/// Rows in a short range.
const SHORT: u64 = 100;

pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let mut lines = vec![compaction(scratch, extent)?];
    lines.extend(ranges(scratch, extent)?);
    Ok(lines)
}

/// What is written for each number, in scattered order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Nothing,
    /// A row with a short value.
    Rows,
    /// A range erase over a single key, right after that of the number.
    Erases,
}

/// Makes a table of `rows` rows, then writes for each of `numbers` what `written` says, into newer files. Flushes
/// everything.
fn table(
    scratch: &Scratch,
    (name, cache_bytes): (&str, u64),
    rows: u64,
    written: Written,
    numbers: &[u64],
) -> Result<(Database, Table)> {
    // No compaction runs by itself.
    let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
    let builder = Database::builder(scratch.join(name)).cache_bytes(cache_bytes).levels(levels);
    let database = builder.durability(Durability::Buffered).open()?;
    let table = database.table("t")?;
    let mut import = table.import()?;
    for number in 0..rows {
        import.add(&sequential_key(number), &value(number)[..100])?;
    }
    import.finish(|_| {})?;
    for numbers in numbers.chunks(500) {
        let mut batch = database.batch();
        for &number in numbers {
            let key = sequential_key(number);
            let (start, end) = ([&key[..], b"a"].concat(), [&key[..], b"b"].concat());
            match written {
                Written::Nothing => {}
                Written::Rows => batch.insert(&table, start, b"v"),
                Written::Erases => batch.remove_range(&table, start..end),
            }
        }
        batch.commit()?;
    }
    database.flush()?;
    Ok((database, table))
}

/// All numbers below `count`, scattered.
fn scattered(count: u64) -> Vec<u64> {
    (0..count).map(|i| i * 7919 % count).collect()
}

fn compaction(scratch: &Scratch, extent: Extent) -> Result<Goal> {
    let erases = extent.of(200_000);
    let mut ratios = Vec::new();
    let mut millis = [Vec::new(), Vec::new()];
    let mut figures = String::new();
    for cache_bytes in [16 << 20, 1 << 20] {
        let mut of_this = Vec::new();
        for round in 0..3 {
            let mut took = [0.0; 2];
            for (i, written) in [Written::Rows, Written::Erases].into_iter().enumerate() {
                let name = format!("compaction {cache_bytes} {round} {i}");
                let (database, table) = table(scratch, (&name, cache_bytes), erases, written, &scattered(erases))?;
                // The snapshot sees the rows under the range erases, so the compaction must keep the range erases.
                let snapshot = database.snapshot();
                let start = Instant::now();
                table.compact()?;
                took[i] = start.elapsed().as_secs_f64() * 1e3;
                millis[i].push(took[i]);
                drop(snapshot);
                drop(table);
                database.close()?;
                std::fs::remove_dir_all(scratch.join(&name))?;
            }
            of_this.push(took[1] / took[0]);
        }
        let ratio = median(&of_this);
        figures += &format!("{ratio:.2} with a cache of {} MiB; ", cache_bytes >> 20);
        ratios.push(ratio);
    }
    let [rows, erased] = millis;
    let worst = ratios.into_iter().fold(0.0, f64::max);
    let goal = format!("<= {MOST_COMPACTION} of the time of as many rows");
    let note = format!(
        "{} of each over as many rows of 100 bytes, three times, in turns: {figures}median {:.0} ms with rows, {:.0} ms \
         with range erases",
        grouped(erases),
        median(&rows),
        median(&erased)
    );
    Ok(Goal::in_words("compaction of range erases", goal, format!("{worst:.2}"), worst <= MOST_COMPACTION).note(note))
}

fn ranges(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let rows = extent.of(400_000);
    // The numbers outside the half that is read.
    let elsewhere: Vec<u64> =
        scattered(rows).into_iter().filter(|number| *number < rows / 4 || *number >= rows / 4 * 3).collect();
    let mut lines = Vec::new();
    for (cache_bytes, metric) in [
        (64 << 20, "ranges beside range erases, 64 MiB of cache"),
        (1 << 20, "ranges beside range erases, 1 MiB of cache"),
    ] {
        let mib = cache_bytes >> 20;
        let (names, kinds) = (["without", "with", "among"], [Written::Nothing, Written::Erases, Written::Erases]);
        let mut tables = Vec::new();
        for (i, (name, written)) in names.into_iter().zip(kinds).enumerate() {
            let all = scattered(rows);
            let numbers = if i == 2 { &all } else { &elsewhere };
            tables.push(table(scratch, (&format!("ranges {mib} {name}"), cache_bytes), rows, written, numbers)?);
        }
        let mut longs = [Vec::new(), Vec::new(), Vec::new()];
        let mut shorts = [Vec::new(), Vec::new(), Vec::new()];
        let mut gets = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..=ROUNDS {
            for (i, (_, table)) in tables.iter().enumerate() {
                let figures = [long(table, rows)?, short(table, rows, round as u64)?, get(table, rows, round as u64)?];
                // The first round fills the cache.
                if round > 0 {
                    for (kept, micros) in [&mut longs, &mut shorts, &mut gets].into_iter().zip(figures) {
                        kept[i].push(micros);
                    }
                }
            }
        }
        let ratio = |all: &[Vec<f64>; 3], i: usize| {
            let ratios: Vec<f64> = all[i].iter().zip(&all[0]).map(|(with, without)| with / without).collect();
            median(&ratios)
        };
        let (long, short) = (ratio(&longs, 1), ratio(&shorts, 1));
        let worst = long.max(short);
        let note = format!(
            "median of {ROUNDS} rounds in turns, {} range erases elsewhere: a range of {} rows {long:.2}, ranges of {SHORT} \
             {short:.2}, gets {:.2}",
            grouped(elsewhere.len() as u64),
            grouped(rows / 2),
            ratio(&gets, 1)
        );
        let among = format!(
            "with one between every two rows, which has no goal: {:.2}, {:.2}, {:.2}",
            ratio(&longs, 2),
            ratio(&shorts, 2),
            ratio(&gets, 2)
        );
        let nanos: Vec<f64> = longs[0].iter().map(|micros| micros * 1e3 / (rows / 2) as f64).collect();
        let goal = format!("<= {MOST_RANGE} of the time without any");
        let line = Goal::in_words(metric, goal, format!("{worst:.2}"), worst <= MOST_RANGE).note(note).note(among);
        lines.push(line.note(format!("without any a row of the long range takes {:.0} ns", median(&nanos))));
        for ((database, table), name) in tables.into_iter().zip(names) {
            drop(table);
            database.close()?;
            std::fs::remove_dir_all(scratch.join(format!("ranges {mib} {name}")))?;
        }
    }
    Ok(lines)
}

/// Microseconds of a range over the middle half of the rows.
fn long(table: &Table, rows: u64) -> Result<f64> {
    let start = Instant::now();
    let mut range = table.range(sequential_key(rows / 4)..sequential_key(rows / 4 * 3 - 1));
    let mut found = 0;
    while range.next_row()?.is_some() {
        found += 1;
    }
    if found != rows / 4 * 3 - 1 - rows / 4 {
        return Err(format!("{found} rows were found in the middle of {rows}").into());
    }
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// A number in the middle half. Consecutive `i` give distant numbers.
fn somewhere(rows: u64, i: u64) -> u64 {
    rows / 4 + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (rows / 2 - SHORT - 1)
}

/// Microseconds of many short ranges.
fn short(table: &Table, rows: u64, round: u64) -> Result<f64> {
    let start = Instant::now();
    for i in 0..1000 {
        let first = somewhere(rows, round * 1000 + i);
        let mut range = table.range(sequential_key(first)..sequential_key(first + SHORT));
        let mut found = 0;
        while range.next_row()?.is_some() {
            found += 1;
        }
        if found != SHORT {
            return Err(format!("{found} rows were found of {SHORT}").into());
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Microseconds of many gets.
fn get(table: &Table, rows: u64, round: u64) -> Result<f64> {
    let start = Instant::now();
    for i in 0..2000 {
        let number = somewhere(rows, round * 2000 + i);
        table.get(sequential_key(number))?.ok_or("a row is gone")?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

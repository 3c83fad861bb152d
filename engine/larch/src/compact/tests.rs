//! Tests what a table takes on disk while it is written, whatever way its rows are removed.

use crate::options::LevelOptions;
use crate::{Database, Durability, Table};
use os::Machine;
use std::time::Duration;

/// How the rows of a window that is over are removed.
#[derive(Clone, Copy, Debug)]
enum Removal {
    ByRange,
    OneByOne,
    ByTime,
}

const WINDOW_ROWS: u32 = 1000;
const WINDOWS: u32 = 8;
const VALUE_BYTES: usize = 800;
const ROW_BYTES: u64 = 12 + VALUE_BYTES as u64;

/// Inserts windows of rows one after the other, and removes each once seven newer ones are there. `order` puts the rows
/// of a window in an order.
fn roll(removal: Removal, order: impl Fn(u32) -> u32) {
    let (machine, _) = Machine::simulated(1);
    let clock = machine.clock.clone();
    let levels = LevelOptions { base_bytes: 1 << 20, file_bytes: 256 << 10, growth: 4, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(machine).durability(Durability::Buffered);
    let db = builder.levels(levels).write_buffer_bytes(512 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let key = |window: u32, row: u32| [window.to_be_bytes(), row.to_be_bytes(), [7; 4]].concat();
    let window_time = Duration::from_secs(100);
    let bytes = |table: &Table| {
        let view = table.core().views.newest();
        let files = view.files_of(table.identity()).expect("it is there");
        files.files().map(|(_, file)| file.bytes()).sum::<u64>()
    };
    let mut worst = 0.0_f64;
    for window in 0..3 * WINDOWS {
        let value = [window as u8; VALUE_BYTES];
        let until = db.clock() + window_time * WINDOWS;
        for row in 0..WINDOW_ROWS {
            let key = key(window, order(row));
            match removal {
                Removal::ByTime => table.insert_until(key, value, until),
                Removal::ByRange | Removal::OneByOne => table.insert(key, value),
            }
            .expect("the disk works");
        }
        clock.sleep(window_time);
        if let Some(over) = (window + 1).checked_sub(WINDOWS) {
            match removal {
                Removal::ByRange => table.remove_range(key(over, 0)..key(over + 1, 0)).expect("the disk works"),
                Removal::OneByOne => {
                    (0..WINDOW_ROWS).for_each(|row| table.remove(key(over, row)).expect("the disk works"));
                }
                Removal::ByTime => {}
            }
        }
        if window >= WINDOWS {
            let live = u64::from(WINDOWS - 1) * u64::from(WINDOW_ROWS) * ROW_BYTES;
            worst = worst.max(bytes(&table) as f64 / live as f64);
        }
    }
    println!("{removal:?}: at most {worst:.2} times the bytes of the rows");
    assert!(worst <= 1.5, "{removal:?}: {worst:.2} times the bytes of the rows");
}

#[test]
fn a_table_of_windows_that_are_erased_by_range_takes_one_and_a_half_of_its_rows() {
    roll(Removal::ByRange, |row| row);
    roll(Removal::ByRange, |row| row * 617 % WINDOW_ROWS);
}

#[test]
fn a_table_of_windows_that_are_erased_row_by_row_takes_one_and_a_half_of_its_rows() {
    roll(Removal::OneByOne, |row| row);
    roll(Removal::OneByOne, |row| row * 617 % WINDOW_ROWS);
}

#[test]
fn a_table_of_windows_that_expire_takes_one_and_a_half_of_its_rows() {
    roll(Removal::ByTime, |row| row);
    roll(Removal::ByTime, |row| row * 617 % WINDOW_ROWS);
}
